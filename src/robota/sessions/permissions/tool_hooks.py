"""What hooks are told about a tool call, and results as they are kept: commented on, replaced, cut."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject, TextPart
from robota.core.permissions.subjects import PATHS, declared_touches, kind_of
from robota.core.plain_text import CLOSING, OPENING, disarm
from robota.core.tool import ToolResult, tool_class
from robota.core.tool_call import PreparedCall
from robota.sessions.permissions.judgement import Terms

if TYPE_CHECKING:
    from robota.core.hooks.outcome import HookOutcome


MAX_TOOL_OUTPUT_CHARACTERS = 30_000
_NOTE_NEEDS = 128
"""Below this there is no room for head, note and tail."""


def truncate_text(text: str, limit: int = MAX_TOOL_OUTPUT_CHARACTERS) -> str:
    """Head and tail of a text longer than `limit`, and how many characters were left out between them."""
    if len(text) <= limit:
        return text
    if limit < _NOTE_NEEDS:
        return text[: max(limit, 0)]
    from robota.core.plain_text import shorten  # noqa: PLC0415 - most texts are short

    return shorten(text, limit, dropped=_left_out_before(text, limit // 2))


def _left_out_before(text: str, half: int) -> int:
    """What a tool's own cut left out: its note lies in the middle, where this cut removes it."""
    import re  # noqa: PLC0415 - see above

    middle = text[half - _NOTE_NEEDS : len(text) - half + _NOTE_NEEDS]
    note = re.search(r"\n\[\.\.\. (\d[\d,]{,19}) characters left out \.\.\.\]\n", middle)
    return int(note[1].replace(",", "")) - len(note[0]) if note else 0


def truncate_result(result: ToolResult, limit: int = MAX_TOOL_OUTPUT_CHARACTERS) -> ToolResult:
    """The result with a `text` within the limit; images and files stay, and the metadata tells of the cut."""
    length = len(result.text)
    if length <= limit:
        return result
    content, error = result.content, result.error
    if result.ok:
        content = truncate_text(content, limit)
    else:  # the error matters most: it gets what the content leaves, and at least half
        words = error or ""
        room = limit - (length - len(content) - len(words))
        error = truncate_text(words, max(room - len(content), room // 2)) or None
        content = truncate_text(content, room - len(error or ""))
    metadata = {**result.metadata, "truncated": True, "originalLength": length}
    return msgspec.structs.replace(result, content=content, error=error, metadata=metadata)


HOOK_BLOCKED = "hook_blocked"


def covers_call(
    call: PreparedCall, terms: Terms, rule: str, tool_name: str, tool_input: Mapping[str, Json]
) -> bool:
    """Whether the rule in a hook's `if` covers the call, or might: a guard rather runs once too often."""
    from robota.core.permissions import evaluate_permission  # noqa: PLC0415 - few hooks have an `if`

    decision = evaluate_permission(
        tool_name,
        tool_input,
        mode="bypassPermissions",
        ask=(rule,),
        cwd=terms.cwd,
        home=terms.home,
        additional_dirs=terms.additional_dirs,
        tool_class=None if call.tool is None else tool_class(call.tool),
        touches=declared_touches(call.tool),
    )
    return decision != "auto"


def copy_json(value: Json) -> Json:
    """A copy that shares nothing with the original, so that nobody changes what was judged."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    return [copy_json(item) for item in value] if isinstance(value, list | tuple) else value


def describe_call(call: PreparedCall, cwd: str) -> JsonObject:
    """A call as hooks know it: arguments by the names of the schema, the path of a file absolute.

    A guard that looks for `file_path` must not be passed by a call that spells it `filePath`.
    """
    properties = {} if call.tool is None else call.tool.parameters.get("properties") or {}
    arguments: JsonObject = {}
    for name, value in call.arguments.items():
        own = name if name in properties else _to_snake_case(name)
        known = own in properties and own not in call.arguments
        arguments[own if known else name] = copy_json(value)
    for name in PATHS if kind_of(call.request.name) in ("read", "write") else ():
        if isinstance(arguments.get(name), str):
            arguments[name] = os.path.join(cwd, arguments[name])
    return {"tool_name": call.request.name, "tool_input": arguments}


def _to_snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def suggest_updates(rules: Sequence[str]) -> list[JsonObject]:
    """Rules an answer would add, as hooks read them."""
    entries = []
    for rule in rules:
        name, _, content = rule.partition("(")
        entries.append({"toolName": name, "ruleContent": content[:-1]} if content else {"toolName": name})
    return [{"type": "addRules", "rules": entries, "behavior": "allow", "destination": "session"}]


def describe_result(call: JsonObject, result: ToolResult, duration: float) -> JsonObject:
    """What a hook hears of a call that ran."""
    told: JsonObject = {
        "tool_response": _describe_response(call, result),
        "duration_ms": round(duration * 1000),
    }
    return told if result.ok else {**told, "error": result.error or "", "is_interrupt": False}


def _describe_response(call: JsonObject, result: ToolResult) -> Json:
    """The result in the form that hooks know; of a failure and of tools they do not know, the words."""
    if result.response is not None or not result.ok:
        return result.text if result.response is None else result.response
    path = call["tool_input"].get("file_path")
    match call["tool_name"]:
        case "Write" | "Edit":
            return {"filePath": path, "success": True}
        case "Read":
            kind = "image" if result.parts else "text"
            return {"type": kind, "file": {"filePath": path, "content": result.content}}
    return result.text


def blocked_result(reason: str) -> ToolResult:
    from robota.core.hooks.outcome import DEFAULT_REASON  # noqa: PLC0415 - few calls have hooks

    why = reason if reason and reason != DEFAULT_REASON else "it gave no reason"
    return ToolResult(ok=False, denied=True, error=f"Blocked by hook: {why}", error_code=HOOK_BLOCKED)


def replace_output(result: ToolResult, outcome: HookOutcome) -> ToolResult:
    """The result with the output that a hook put in the place of everything the model would get."""
    output = outcome.updated_output
    if output is None:
        return result
    text = disarm(output if isinstance(output, str) else encode(output).decode())
    if result.ok:
        return msgspec.structs.replace(result, content=text, parts=())
    return msgspec.structs.replace(result, content="", error=text, parts=())


def without_frames(result: ToolResult) -> ToolResult:
    """The result as it is kept: whatever a tool gives, a file or a page, it cannot speak in a hook's name."""
    content, error = disarm(result.content), None if result.error is None else disarm(result.error)
    parts = result.parts and tuple(
        msgspec.structs.replace(part, text=disarm(part.text)) if isinstance(part, TextPart) else part
        for part in result.parts
    )
    same = content == result.content and error == result.error and parts == result.parts
    if same and result.response is None:
        return result
    return msgspec.structs.replace(result, content=content, error=error, parts=parts, response=None)


def frame_context(outcomes: Sequence[HookOutcome], limit: int) -> str:
    """What the hooks have to say to the model, in a frame that marks it as theirs; at most half the limit."""
    if not outcomes:
        return ""
    from robota.core.hooks.outcome import as_context  # noqa: PLC0415 - few calls have hooks

    told = [
        msgspec.structs.replace(outcome, additional_context=(outcome.reason, *outcome.additional_context))
        if outcome.event != "PreToolUse" and outcome.blocked and outcome.reason
        else outcome
        for outcome in outcomes
    ]
    context = as_context(*told)
    if not context:
        return ""
    inner = context.removeprefix(OPENING).removesuffix(CLOSING)
    return f"\n{OPENING}{truncate_text(inner, limit // 2 - len(OPENING) - len(CLOSING))}{CLOSING}"


def add_context(result: ToolResult, context: str, limit: int) -> ToolResult:
    """The result within the limit, and behind it the hooks' words: the result is cut, never their frame."""
    result = truncate_result(result, limit - len(context))
    if not context:
        return result
    if result.ok:
        return msgspec.structs.replace(result, content=result.content + context)
    return msgspec.structs.replace(result, error=(result.error or "") + context)
