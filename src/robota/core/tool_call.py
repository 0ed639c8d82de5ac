"""One tool call: looked up and parsed before it runs, run so that whatever happens is a result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import describe_exception
from robota.core.jsontext import encode
from robota.core.messages import JsonObject, Part, ToolCall
from robota.core.run_task import is_cancelled
from robota.core.schema import check
from robota.core.tool import Tool, ToolContext, ToolResult

UNKNOWN_TOOL = "unknown_tool"
INVALID_ARGUMENTS = "invalid_arguments"
TRUNCATED_ARGUMENTS = "truncated_arguments"
INTERRUPTED_CALL = "interrupted"
NOT_STARTED = "not_started"
"""The run was stopped before it was this call's turn."""
TIMED_OUT = "timeout"
NEVER_RAN = frozenset((UNKNOWN_TOOL, INVALID_ARGUMENTS, TRUNCATED_ARGUMENTS, INTERRUPTED_CALL, NOT_STARTED))
"""Codes of results that no tool gave."""
RAN_WITH = "ranWith"
"""In the metadata of a result: the arguments of a call that somebody changed before it ran."""


class PreparedCall(Struct, frozen=True, kw_only=True):
    """A call ready to run, or already answered because it cannot."""

    index: int
    call_id: str
    """Unique in the session: `<execution>-r<round>-<index>`."""
    request: ToolCall
    tool: Tool | None = None
    arguments: JsonObject = msgspec.field(default_factory=dict)
    answer: ToolResult | None = None
    """Set when the call must not run."""


RunTool: TypeAlias = Callable[[PreparedCall, ToolContext], Awaitable[ToolResult]]
"""How a prepared call is carried out; a session puts permissions and hooks here."""


def prepare_call(
    index: int, call_id: str, request: ToolCall, tools: Mapping[str, Tool], *, truncated: bool = False
) -> PreparedCall:
    """Look the tool up and parse the arguments. `truncated`: the answer was cut at the token limit."""
    tool = tools.get(request.name)
    if tool is not None:
        arguments, answer = _parse(request, tool, truncated)
    else:
        arguments, answer = _read_object(request.arguments), unknown_tool(request.name, tools)
    return PreparedCall(
        index=index, call_id=call_id, request=request, tool=tool, arguments=arguments, answer=answer
    )


def _read_object(arguments: str) -> JsonObject:
    """Arguments of a call that is not made, for those who show it."""
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}


def unknown_tool(name: str, tools: Mapping[str, Tool]) -> ToolResult:
    available = sorted(tools)
    offer = f"Available tools: {', '.join(available)}." if available else "No tools are available."
    return ToolResult.failure(
        f"The tool call was not executed because the tool {name!r} is not registered. {offer}",
        UNKNOWN_TOOL,
        errorCode=UNKNOWN_TOOL,
        requestedTool=name,
        availableTools=available,
    )


def _parse(request: ToolCall, tool: Tool, truncated: bool) -> tuple[JsonObject, ToolResult | None]:
    try:
        arguments = msgspec.json.decode(request.arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        if truncated:
            return {}, ToolResult.failure(
                f"The call of {tool.name!r} was not executed: the answer was cut at the token limit before "
                "its arguments were complete. Make the call again with shorter arguments.",
                TRUNCATED_ARGUMENTS,
                errorCode=TRUNCATED_ARGUMENTS,
            )
        return {}, _invalid(
            f"The arguments of {tool.name!r} (call {request.id}) are not valid JSON: {error}."
        )
    if not isinstance(arguments, dict):
        return {}, _invalid(
            f"The arguments of {tool.name!r} (call {request.id}) must be a JSON object, "
            f"not {type(arguments).__name__}."
        )
    if getattr(tool, "validates_arguments", False):
        return arguments, None
    problems = check(arguments, tool.parameters)
    return arguments, _invalid(
        f"The arguments of {tool.name!r} do not fit: {problems[0]}."
    ) if problems else None


def _invalid(sentence: str) -> ToolResult:
    return ToolResult.failure(sentence, INVALID_ARGUMENTS, errorCode=INVALID_ARGUMENTS)


async def invoke_tool(call: PreparedCall, context: ToolContext) -> ToolResult:
    """Run the tool itself. Whatever it does, the answer is a result; only cancellation passes through."""
    tool = call.tool
    if tool is None or call.answer is not None:
        return call.answer or ToolResult.failure("The call has no tool.")
    try:
        work = tool.run(call.arguments, context)
        result: object = await (work if context.timeout is None else _limit(work, tool.name, context.timeout))
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        return ToolResult.failure(f"{tool.name} was cancelled from within.")
    except (Exception, SystemExit, BaseExceptionGroup) as error:  # foreign code: the model is told why
        if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt):
            raise
        return ToolResult.failure(f"{tool.name} failed: {describe_exception(error)}")
    return checked_result(tool.name, result)


async def _limit(work: Awaitable[ToolResult], name: str, seconds: float) -> ToolResult:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise  # of the tool itself
        return ToolResult.failure(f"{name} did not end within {seconds:g} s and was given up.", TIMED_OUT)


def checked_result(name: str, result: object) -> ToolResult:
    """The result if a conversation can carry it, else a failure that says what is wrong with it."""
    if not isinstance(result, ToolResult):
        return ToolResult.failure(
            f"{name} returned {type(result).__name__} instead of ToolResult; wrap the function with @tool."
        )
    for part, value in (("content", result.content), ("error", result.error), ("code", result.error_code)):
        if not isinstance(value, str) and (value is not None or part == "content"):
            return ToolResult.failure(
                f"{name} returned a ToolResult whose {part} is {type(value).__name__}, not text: {value}"
            )
    if result.parts and not all(isinstance(part, Part) for part in result.parts):
        return ToolResult.failure(f"{name} returned a ToolResult whose parts are not message parts.")
    if result.metadata:
        try:
            encode(result.metadata)
        except (TypeError, ValueError, RecursionError) as error:
            return ToolResult.failure(f"{name} returned a ToolResult whose metadata is not JSON: {error}.")
    if result.error is not None and not result.error.isprintable():
        from robota.core.plain_text import clean_sentence  # noqa: PLC0415 - few quote such things

        return msgspec.structs.replace(result, error=clean_sentence(result.error))
    return result


def result_metadata(result: ToolResult, tool_name: str, round_number: int) -> JsonObject:
    """The metadata of the message that tells the model of a result."""
    metadata = {**result.metadata, "success": result.ok, "toolName": tool_name, "round": round_number}
    return metadata if result.ok else {**metadata, "error": result.error_code or result.error}


@lru_cache(maxsize=256)
def place_of(call_id: str) -> tuple[int, int]:
    """Round and index of a call, from its id `<execution>-r<round>-<index>`."""
    batch, _, at = call_id.rpartition("-")
    return int(batch.rpartition("-r")[2]), int(at)
