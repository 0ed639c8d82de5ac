"""What a hook answered, what it means for its event, and how the answers of several become one.

The protocol: exit 0 proceeds, 2 blocks with standard error as the reason, anything else proceeds with a
warning unless a JSON object on standard output decides. Before a tool runs, a hook that failed blocks; on
other occasions it only warns. Answers are folded in configuration order, so the outcome never depends on
which hook was faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject
from robota.core.plain_text import clip, frame, strip_controls

PermissionDecision: TypeAlias = Literal["allow", "deny", "ask", "defer"]

TEXT_LIMIT = 10_000
"""Characters kept of each text that reaches the model or the screen."""
DEFAULT_REASON = "Blocked by hook"

_STRICTNESS: dict[PermissionDecision | None, int] = {None: 0, "allow": 1, "defer": 2, "ask": 3, "deny": 4}
"""`defer` leaves the decision to the rules, so it lifts an `allow` and never an `ask`."""
_OLD_DECISIONS: dict[str, PermissionDecision] = {
    "approve": "allow",
    "allow": "allow",
    "ask": "ask",
    "block": "deny",
    "deny": "deny",
}
_BLOCKING = frozenset(
    {"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "PreCompact"}
    | {"Stop", "SubagentStop", "WorktreeCreate", "ConfigChange", "Elicitation", "ElicitationResult"}
)
"""Events on which a hook can say no. For Stop and SubagentStop that means: go on."""
_FAILS_CLOSED = frozenset({"PreToolUse", "WorktreeCreate"})
_TEXT_FOR_MODEL = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events whose plain standard output is meant for the model."""


class HookResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one handler returned."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    failure: str | None = None
    """Why there is no usable answer: timed out, could not start, was killed."""


class HookRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """One handler's part in an outcome, for logs."""

    type: str
    label: str
    result: HookResult


class HookOutcome(Struct, frozen=True, kw_only=True, rename="camel"):
    """What all hooks of one occasion say together."""

    event: str
    blocked: bool = False
    """The tool, prompt or compaction may not go on; after Stop: the turn must go on."""
    reason: str = ""
    permission_decision: PermissionDecision | None = None
    updated_input: JsonObject | None = None
    """Replaces the tool's input, which must then be judged again."""
    updated_output: Json = None
    """Replaces what the tool returned, unless `None`."""
    additional_context: tuple[str, ...] = ()
    stop: bool = False
    """Some hook said `continue: false`: end the run."""
    stop_reason: str = ""
    system_messages: tuple[str, ...] = ()
    """For the user."""
    warnings: tuple[str, ...] = ()
    """For the user: hooks that failed or said something odd."""
    stdout: str = ""
    """Plain standard output of hooks that succeeded."""
    specific: Mapping[str, Json] = field(default_factory=dict)
    """Further fields of `hookSpecificOutput`, such as `sessionTitle` or `worktreePath`."""
    runs: tuple[HookRun, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """One hook's answer, read for its event."""

    decision: PermissionDecision | None = None
    reason: str = ""
    updated_input: JsonObject | None = None
    updated_output: Json = None
    context: str = ""
    stop: bool = False
    stop_reason: str = ""
    system_message: str = ""
    warning: str = ""
    text: str = ""
    specific: Mapping[str, Json] = field(default_factory=dict)


class _Specific(Struct, rename="camel"):
    hook_event_name: str | None = None
    permission_decision: PermissionDecision | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Json] | None = None
    additional_context: str | None = None
    updated_tool_output: Json = None
    decision: dict[str, Json] | None = None


class _Answer(Struct, rename="camel"):
    go_on: bool | None = field(default=None, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: Literal["approve", "allow", "ask", "block", "deny"] | None = None
    reason: str | None = None
    hook_specific_output: dict[str, Json] | None = None


class _PermissionAnswer(Struct, rename="camel"):
    behavior: Literal["allow", "deny"]
    message: str | None = None
    updated_input: dict[str, Json] | None = None


_READ_FIELDS = frozenset(_Specific.__struct_encode_fields__)


def record_run(hook_type: str, label: str, result: HookResult) -> HookRun:
    """A run for the log, its texts cut like everything else that is kept."""
    kept = msgspec.structs.replace(
        result, stdout=clip(result.stdout, TEXT_LIMIT), stderr=clip(result.stderr, TEXT_LIMIT)
    )
    return HookRun(type=hook_type, label=label, result=kept)


def read_result(event: str, label: str, result: HookResult) -> Verdict:
    """The meaning of one hook's result for its event."""
    if result.failure is not None:
        return _failed(event, f"Hook {label!r} {result.failure}")
    try:
        answer = _read_answer(event, result.stdout)
    except ValueError as error:
        if result.exit_code == 0:
            return _failed(event, f"Hook {label!r} gave an answer that cannot be read: {error}")
        answer = None
    if result.exit_code == 2:
        return _blocked(event, label, result, answer)
    if answer is not None:
        return answer
    if result.exit_code != 0:
        said = _shown(result.stderr or result.stdout)
        warning = f"Hook {label!r} ended with exit code {result.exit_code}{f': {said}' if said else ''}"
        if event == "WorktreeCreate":  # the hook makes the worktree, so there is none
            return _failed(event, warning)
        return Verdict(warning=warning)
    text = _shown(result.stdout)
    path = {"worktreePath": text.splitlines()[-1].strip()} if event == "WorktreeCreate" and text else {}
    return Verdict(text=text, specific=path)


def fold(event: str, verdicts: Sequence[Verdict]) -> HookOutcome:
    """All verdicts as one: the strictest decision, the first reason for it, the last change of input."""
    strictest = max(verdicts, key=lambda verdict: _STRICTNESS[verdict.decision], default=Verdict())
    stopper = next((verdict for verdict in verdicts if verdict.stop), None)
    denied = strictest.decision == "deny" and event in _BLOCKING
    if stopper is None:
        blocked, reason = denied, strictest.reason
    else:  # a Stop hook that wants the end outweighs one that wants to go on
        blocked = event not in ("Stop", "SubagentStop") and event in _BLOCKING
        reason = strictest.reason if denied and blocked else stopper.stop_reason
    inputs = [verdict.updated_input for verdict in verdicts if verdict.updated_input is not None]
    outputs = [verdict.updated_output for verdict in verdicts if verdict.updated_output is not None]
    warnings = [verdict.warning for verdict in verdicts if verdict.warning]
    if any(change != inputs[0] for change in inputs):
        warnings.append(f"Several {event} hooks changed the input in different ways; the last one counts.")
    return HookOutcome(
        event=event,
        blocked=blocked,
        reason=reason,
        permission_decision=strictest.decision if event in ("PreToolUse", "PermissionRequest") else None,
        updated_input=inputs[-1] if inputs else None,
        updated_output=outputs[-1] if outputs else None,
        additional_context=tuple(verdict.context for verdict in verdicts if verdict.context),
        stop=stopper is not None,
        stop_reason=stopper.stop_reason if stopper else "",
        system_messages=tuple(verdict.system_message for verdict in verdicts if verdict.system_message),
        warnings=tuple(warnings),
        stdout="\n".join(verdict.text for verdict in verdicts if verdict.text),
        specific={name: value for verdict in verdicts for name, value in verdict.specific.items()},
    )


def as_context(*outcomes: HookOutcome) -> str:
    """What hooks have to say to the model, framed as theirs; empty if they have nothing to say."""
    parts: list[str] = []
    for outcome in outcomes:
        if outcome.event in _TEXT_FOR_MODEL and outcome.stdout:
            parts.append(outcome.stdout)
        parts += outcome.additional_context
    return frame(parts)


def _read_answer(event: str, stdout: str) -> Verdict | None:
    """The JSON answer in standard output, `None` for plain text; `ValueError` for a broken one."""
    if not stdout.lstrip("\ufeff \t\n").startswith("{"):
        return None
    answer = msgspec.convert(decode(stdout.strip("\ufeff \t\n")), _Answer)
    raw = answer.hook_specific_output or {}
    specific = msgspec.convert(raw, _Specific)
    if specific.hook_event_name not in (None, event):
        raise ValueError(f"it speaks of {specific.hook_event_name!r}, not of {event!r}")
    decision: PermissionDecision | None = _OLD_DECISIONS.get(answer.decision or "")
    reason, changed = answer.reason, specific.updated_input
    if event == "PreToolUse" and specific.permission_decision:
        decision, reason = specific.permission_decision, specific.permission_decision_reason or reason
    if event == "PermissionRequest" and specific.decision:
        permission = msgspec.convert(specific.decision, _PermissionAnswer)
        decision, reason = permission.behavior, permission.message
        changed = permission.updated_input
    output = specific.updated_tool_output
    return Verdict(
        decision=decision,
        reason=_shown(reason) or (DEFAULT_REASON if decision == "deny" else ""),
        updated_input=changed,
        updated_output=raw.get("updatedMCPToolOutput") if output is None else output,
        context=_shown(specific.additional_context),
        stop=answer.go_on is False,
        stop_reason=_shown(answer.stop_reason),
        system_message=_shown(answer.system_message),
        specific={name: value for name, value in raw.items() if name not in _READ_FIELDS}
        | ({"decision": specific.decision} if specific.decision else {}),
    )


def _blocked(event: str, label: str, result: HookResult, answer: Verdict | None) -> Verdict:
    """Exit code 2. Nothing in the JSON can lift it."""
    said = _shown(result.stderr)
    if event not in _BLOCKING:
        return Verdict(warning=f"Hook {label!r} ended with exit code 2{f': {said}' if said else ''}")
    base = answer or Verdict()
    return msgspec.structs.replace(base, decision="deny", reason=said or base.reason or DEFAULT_REASON)


def _failed(event: str, why: str) -> Verdict:
    why = _shown(why)
    closed = event in _FAILS_CLOSED
    return Verdict(decision="deny" if closed else None, reason=why if closed else "", warning=why)


def _shown(text: str | None) -> str:
    return clip(strip_controls(text or "").strip(), TEXT_LIMIT)
