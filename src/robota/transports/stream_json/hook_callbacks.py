"""Hooks that the host has registered: functions there, asked over the pipe."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.hooks import hook
from robota.core.hooks.definition import HOOK_EVENTS, TOOL_EVENTS, HookGroup, HooksConfig, list_names
from robota.core.hooks.executors import HookAnswer, HookFunction
from robota.core.hooks.outcome import HookResult, read_result
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.permissions.rules import find_unknown_tool
from robota.core.plugin import Refusal
from robota.transports.stream_json.host import Host, HostError

if TYPE_CHECKING:
    from robota.transports.stream_json.transcript import Transcript

DEFAULT_SECONDS = 60.0
_GRACE = 5.0
"""The engine's own limit is this much later than ours, which tells what happened."""


class Registration(Struct, frozen=True, kw_only=True):
    """One matcher and its callbacks."""

    event: str
    matcher: str
    callbacks: tuple[str, ...]
    seconds: float = DEFAULT_SECONDS
    on_failure: str | None = None


def read_registrations(raw: Json) -> list[Registration]:
    """The `hooks` of an `initialize` request."""
    if raw is None:
        return []
    if not isinstance(raw, dict) or not all(isinstance(groups or [], list) for groups in raw.values()):
        raise ConfigurationError("`hooks` of initialize is an object of events with lists of hooks, or null.")
    return [_read(event, group) for event, groups in raw.items() for group in groups or ()]


def _read(event: str, group: Json) -> Registration:
    match group:
        case {"hookCallbackIds": list(ids)} if ids and all(isinstance(each, str) for each in ids):
            matcher, seconds = group.get("matcher") or "", group.get("timeout")
            number = isinstance(seconds, int | float) and seconds > 0
            HookGroup(matcher=str(matcher), hooks=())  # raises now, while somebody listens
            return Registration(
                event=event,
                matcher=str(matcher),
                callbacks=tuple(ids),
                seconds=float(seconds) if number else DEFAULT_SECONDS,
                on_failure=group.get("onFailure"),
            )
    raise ConfigurationError(f"A hook for {event} needs `hookCallbackIds`, a list of names.")


class HookCallbacks:
    """Makes hooks of registrations. What takes no effect here is in `notes`."""

    def __init__(
        self, host: Host, registrations: Collection[Registration], transcript: Transcript | None
    ) -> None:
        """Callbacks are pointed to the `transcript`, which clients can read, and find it up to date."""
        self._host = host
        self._registrations = registrations
        self._transcript = transcript
        self.notes: list[str] = []

    def config(self, tools: Collection[str]) -> HooksConfig:
        """For a session that has these tools."""
        config: dict[str, tuple[HookGroup, ...]] = {}
        strange = dict.fromkeys(each.event for each in self._registrations if each.event not in HOOK_EVENTS)
        if strange:  # told at once: some hosts register for every event that they know
            events = "that event" if len(strange) == 1 else "those events"
            self.notes.append(f"Hooks for {', '.join(strange)} never run: robota does not have {events}.")
        for each in self._registrations:
            matcher = None if each.event in strange else self._fit(each, tools)
            if matcher is not None:
                config[each.event] = (*config.get(each.event, ()), *self._groups(each, matcher))
        return config

    def _fit(self, each: Registration, tools: Collection[str]) -> str | None:
        """The matcher without tools that are not there; `None` when it names no others."""
        names = list_names(each.matcher) if each.event in TOOL_EVENTS else ()
        known = [name for name in names if find_unknown_tool(name, tools) is None]
        if len(known) == len(names):
            return each.matcher
        missing = ", ".join(name for name in names if name not in known)
        self.notes.append(f"The {each.event} hooks for {missing} never run: robota has no such tool.")
        return "|".join(known) or None

    def _groups(self, each: Registration, matcher: str) -> Iterator[HookGroup]:
        for callback in each.callbacks:
            yield hook(self._function(each, callback), matcher=matcher, timeout=each.seconds + _GRACE)

    def _function(self, each: Registration, callback: str) -> HookFunction:
        async def call(told: JsonObject) -> HookAnswer:
            told = {name: value for name, value in told.items() if name != "env"}
            if self._transcript is not None:
                # An interrupt must not leave it half written.
                await asyncio.shield(asyncio.ensure_future(self._transcript.flush()))
                told["transcript_path"] = self._transcript.path
            use = told.get("tool_use_id")
            request = {"subtype": "hook_callback", "callback_id": callback, "input": told, "tool_use_id": use}
            try:
                async with asyncio.timeout(each.seconds):
                    output = await self._host.ask(request)
            except TimeoutError:
                # Before a tool runs, a guard that says nothing in time must not be as good as none.
                guards = each.event == "PreToolUse" and each.on_failure is None
                return self._fail(each, callback, f"did not answer within {each.seconds:g} s", guards)
            except HostError as error:
                return self._fail(each, callback, f"failed: {error}", False)
            if output.get("async"):
                return None  # it works on, and decides nothing
            if unread := read_result(
                each.event, callback, HookResult(stdout=encode(output).decode())
            ).warning:
                return self._fail(each, callback, f"failed: {unread}", False)
            return output

        call.__qualname__ = callback
        return call

    def _fail(self, each: Registration, callback: str, what: str, guards: bool) -> HookAnswer:
        why = f"The {each.event} hook {callback} {what}."
        if guards or each.on_failure not in (None, "continue"):
            return Refusal(why)
        return None if self._host.closed else {"systemMessage": why}  # a host that has left need not be told
