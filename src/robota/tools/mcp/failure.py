"""What went wrong with a server, in one sentence."""

from __future__ import annotations

from robota.core.errors import ConfigurationError, RobotaError, describe_exception
from robota.core.plain_text import clean_sentence
from robota.core.process import Capture
from robota.tools.mcp.definition import ServerDefinition

KEPT_BYTES = 8 * 1024
"""Of the beginning and again of the end of each."""
SHOWN = 300
"""Characters of its last words in a sentence."""


class Noise:
    """The last connection's; a new one begins anew."""

    __slots__ = ("complaints", "stderr", "stray", "stray_lines", "wants_login")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.stderr = Capture(KEPT_BYTES)
        self.stray = Capture(KEPT_BYTES)
        self.stray_lines = 0
        self.wants_login = False
        """It refused us because it does not know who we are."""
        self.complaints: dict[str, None] = {}
        """What was left out of what it offers, a sentence each."""

    def add_stray(self, line: bytes) -> None:
        self.stray_lines += 1
        self.stray.add(line + b"\n")

    def complain(self, sentence: str) -> None:
        if len(self.complaints) < 100:
            self.complaints[sentence] = None

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error, in one line; empty if there is nothing."""
        for capture in (self.stderr, self.stray):
            lines = [line.strip() for line in capture.text.splitlines() if line.strip()]
            if lines:
                words = clean_sentence(" / ".join(lines[-3:]))
                return words if len(words) <= SHOWN else f"…{words[-SHOWN:]}"
        return ""

    def describe(self) -> list[str]:
        """For people, a line each."""
        lines = list(self.complaints)
        if self.stray_lines:
            lines.append(
                f"It printed {self.stray_lines:,} lines on standard output that are no messages of the "
                f"protocol, such as {clean_sentence(self.stray.text.partition(chr(10))[0])[:SHOWN]!r}."
            )
        if self.last_words:
            lines.append(f"Its last words: {self.last_words}")
        return lines


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
