"""What went wrong with a server, in one sentence."""

from __future__ import annotations

from robota.core.errors import ConfigurationError, RobotaError, describe_exception
from robota.core.plain_text import clean_sentence
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.noise import Noise

MAX_SENTENCE = 600


class ServerError(RobotaError):
    """A server could not do what it was asked."""

    code = "MCP_SERVER"
    category = "provider"


class LoginNeededError(ServerError):
    """A server wants to know who asks."""


def explain(error: BaseException, definition: ServerDefinition, noise: Noise) -> str:
    """For people and models. What a server said last comes with it."""
    name, cause = definition.name, _cause(error)
    match cause:
        case ServerError() | ConfigurationError():
            return str(cause)
        case FileNotFoundError() | NotADirectoryError() | PermissionError():
            why = cause.strerror or "it is not there"
            return f"The MCP server {name!r} cannot be started: {definition.command!r}: {why}."
        case TimeoutError():
            seconds = definition.start_timeout
            return _with_words(f"The MCP server {name!r} did not answer within {seconds:g} seconds.", noise)
    if _is_closed(cause):
        return _with_words(f"The MCP server {name!r} ended.", noise)
    if type(cause).__name__ == "MCPError":
        return _cut(f"The MCP server {name!r} refused: {cause}")
    if type(cause).__name__ == "ValidationError":
        return _cut(f"The MCP server {name!r} sent what is not of the protocol: {describe_exception(cause)}")
    return _with_words(f"The MCP server {name!r} failed: {describe_exception(cause)}.", noise)


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _is_closed(error: BaseException) -> bool:
    return getattr(error, "code", None) == -32000 or type(error).__name__ in (
        "ClosedResourceError", "BrokenResourceError", "EndOfStream",
    )  # fmt: skip


def _with_words(sentence: str, noise: Noise) -> str:
    words = noise.last_words
    return _cut(f"{sentence} Its last words: {words}" if words else sentence)


def _cut(sentence: str) -> str:
    sentence = clean_sentence(sentence)
    return sentence if len(sentence) <= MAX_SENTENCE else sentence[: MAX_SENTENCE - 1] + "…"
