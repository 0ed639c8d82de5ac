"""Options of sessions and enforcers by their plain names, put into their groups: tests set one or two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from robota.core.bus import EventBus
from robota.core.robota import RunLimits
from robota.sessions.options import (
    CompactionOptions,
    HookOptions,
    JournalOptions,
    PermissionOptions,
    SessionOptions,
)
from robota.sessions.questions import Questions
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore

RENAMED = {
    "hooks": "config",
    "hook_executors": "executors",
    "hook_port": "port",
    "auto_compact_threshold": "threshold",
    "compact_instructions": "instructions",
    "compaction_sections": "sections",
}
GROUPS: dict[str, Callable[..., Any]] = {
    "permissions": PermissionOptions,
    "hooks": HookOptions,
    "limits": RunLimits,
    "compaction": CompactionOptions,
    "journal": JournalOptions,
}


def session_options(**flat: Any) -> SessionOptions:
    given: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    for name, value in flat.items():
        own = RENAMED.get(name, name)
        home = next((group for group, kind in GROUPS.items() if own in kind.__struct_fields__), None)  # type: ignore[attr-defined]
        if home is None:
            given[name] = value
        else:
            groups[home][own] = value
    made = {name: GROUPS[name](**values) for name, values in groups.items() if values}
    return SessionOptions(**given, **made)


def resume_session(store: SessionStore, session_id: str, **given: Any) -> Session:
    return Session(store=store, start=restore(store, session_id), **given)


def fork_session(store: SessionStore, session_id: str, *, step: int | None = None, **given: Any) -> Session:
    return Session(store=store, start=restore(store, session_id, fork=True, step=step), **given)


class Log:
    """A `PermissionLog` of the functions that a test is interested in."""

    def __init__(self, **functions: Callable[..., None]) -> None:
        for name in ("notice", "record_decision", "record_original"):
            setattr(self, name, functions.get(name, lambda *_: None))
        self._before_effects = functions.get("before_effects", lambda *_: None)

    async def before_effects(self, call: object) -> None:
        told = self._before_effects(call)
        if isinstance(told, Awaitable):
            await told


def enforcer_ports(**flat: Any) -> dict[str, Any]:
    """Arguments of a `PermissionEnforcer` from those of its parts."""
    names = {"record": "record_decision"}
    log = {
        names.get(name, name): flat.pop(name)
        for name in ("notice", "record", "record_original", "before_effects")
        if name in flat
    }
    options = {name: flat.pop(name) for name in list(flat) if name in PermissionOptions.__struct_fields__}
    handler = flat.pop("handler", None)
    if handler is not None:
        flat["questions"] = questions = Questions(EventBus())
        questions.attach(handler)
    return {"options": PermissionOptions(**options), "log": Log(**log), **flat}
