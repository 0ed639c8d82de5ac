"""The question before a tool runs: what a person is shown, and what may be answered.

Handlers are foreign code. Only an answer that is exactly one of those described here lets a tool run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from robota.core.messages import Json, JsonObject

AnswerScope: TypeAlias = Literal["once", "session", "project"]
_SCOPES = get_args(AnswerScope)


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """What a person is asked before a tool runs. The input is a copy: changing it changes nothing."""

    tool_name: str
    tool_input: JsonObject
    cwd: str
    reason: str = ""
    """Why it is asked, in one sentence."""
    part: str | None = None
    """The part of the command, the path or the argument that caused the question."""
    rule: str | None = None
    """The narrowest rules an answer for the session or the project would add; `None`: it counts once."""
    diff: str | None = None
    """What would change in a file."""
    agent_id: str = ""
    call_id: str = ""


class PermissionAnswer(Struct, frozen=True, kw_only=True):
    """An answer with more to it than yes or no."""

    allow: bool
    scope: AnswerScope = "once"
    """How long a yes counts."""
    message: str = ""
    """What the model is told with a no."""
    updated_input: JsonObject | None = None
    """The input to run instead. It is judged again, and a changed one is allowed only once."""


PermissionHandler: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool | str | PermissionAnswer | None]]
"""Asks somebody: `True`, `False`, `"allow-session"`, `"allow-project"`, a `PermissionAnswer`, or `None` when
nobody is there to answer."""

RuleSaver: TypeAlias = Callable[[str], Awaitable[None] | None]
"""Keeps a rule for the project."""


def read_answer(given: object) -> PermissionAnswer | None:
    """The answer, if it is one."""
    if given is True or given is False:
        return PermissionAnswer(allow=given)
    if isinstance(given, str):
        scopes: dict[str, AnswerScope] = {"allow-session": "session", "allow-project": "project"}
        return PermissionAnswer(allow=True, scope=scopes[given]) if given in scopes else None
    if not isinstance(given, PermissionAnswer):
        return None
    well_formed = (
        isinstance(given.allow, bool)
        and isinstance(given.message, str)
        and isinstance(given.updated_input, dict | None)
        and isinstance(given.scope, str)
        and given.scope in _SCOPES
    )
    return given if well_formed else None


def answer_to_record(answer: PermissionAnswer) -> JsonObject:
    """The answer as a journal keeps it."""
    record: JsonObject = {"allow": answer.allow, "scope": answer.scope}
    if answer.message:
        record["message"] = answer.message
    if answer.updated_input is not None:
        record["updatedInput"] = answer.updated_input
    return record


def answer_from_record(record: Mapping[str, Json]) -> PermissionAnswer | None:
    """The answer again; `None` for a record that holds none."""
    allow = record.get("allow")
    if not isinstance(allow, bool):
        return None
    given = PermissionAnswer(
        allow=allow,
        scope=record.get("scope", "once"),
        message=record.get("message", ""),
        updated_input=record.get("updatedInput"),
    )
    return read_answer(given)
