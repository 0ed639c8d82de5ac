"""Requests as lines for a log: what came, what was answered, and no secret of the client."""

from __future__ import annotations

import msgspec

from robota.core.messages import JsonObject
from robota.core.plain_text import strip_controls
from robota.sessions.redaction import Redactor
from robota.testing.dialect import UNREADABLE
from robota.testing.http_server import ReceivedRequest

LONGEST_TEXT = 60
_SENT_BY_LIBRARIES = ("accept", "accept-encoding", "connection", "content-length", "host")


class RequestLog:
    """Writes one line per request; `verbose` adds headers and body."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._redactor = Redactor()

    def lines(self, request: ReceivedRequest) -> list[str]:
        lines = [f"#{request.number} {request.method} {self._target(request)}{self._facts(request)}"]
        if request.problem:
            lines.append(f"  {self._redactor.text(request.problem)}")
        if self._verbose:
            headers = {
                name: value for name, value in request.headers.items() if name not in _SENT_BY_LIBRARIES
            }
            shown: JsonObject = self._redactor.value(headers)
            lines += [f"  {name}: {value}" for name, value in shown.items()]
            lines += [f"  {line}" for line in self._body(request).splitlines()]
        return [strip_controls(line).replace("\n", " ") for line in lines]

    def _target(self, request: ReceivedRequest) -> str:
        target = f"{request.path}?{request.query}" if request.query else request.path
        return self._redactor.text(target)

    def _facts(self, request: ReceivedRequest) -> str:
        answer = f"{request.status}, {request.reply_size} bytes" if request.status else "no answer"
        if request.dialect is None:
            return f" -> {answer}"
        stream = "streamed" if request.dialect.wants_stream(request.path, request.json) else "whole"
        said = "" if request.problem else self._last_words(request)
        return f" ({request.dialect.name}, {stream}){said} -> {answer}"

    def _last_words(self, request: ReceivedRequest) -> str:
        """What the model was told last, by the user or by a tool."""
        try:
            turns = [turn for turn in request.conversation.turns if turn.role in ("user", "tool")]
        except UNREADABLE:
            return " (unreadable)"
        if not turns:
            return ""
        text = " ".join(self._redactor.text(turns[-1].text).split())
        shown = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
        return f' {turns[-1].role} "{shown}"'

    def _body(self, request: ReceivedRequest) -> str:
        if request.body is None:
            return self._redactor.text(request.raw.decode("utf-8", "replace"))
        encoded = msgspec.json.encode(self._redactor.value(request.body))
        return msgspec.json.format(encoded, indent=2).decode()
