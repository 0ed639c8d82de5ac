"""Answers: JSON, and errors that say in one sentence what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from robota.core.errors import RobotaError
from robota.core.jsontext import encode
from robota.core.messages import Json

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
CLOSE = {"connection": "close"}
_STATUS = {
    "SESSION_NOT_FOUND": 404,
    "SESSION_BUSY": 409,
    "AGENT_BUSY": 409,
    "SESSION_LOCKED": 409,
    "TOO_MANY_SESSIONS": 429,
    "VALIDATION_ERROR": 422,
    "CONFIGURATION_ERROR": 422,
    "STORAGE_ERROR": 503,
    "JOURNAL_ERROR": 409,
    "SERVER_CLOSING": 503,
}


class HttpError(Exception):
    """What a client is told, with the status that fits."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def reply(value: Json, status: int = 200) -> Response:
    return Response(encode(value), status, HEADERS, "application/json")


def refuse(error: HttpError) -> Response:
    body = encode({"error": {"code": error.code, "message": error.message}})
    return Response(body, error.status, {**HEADERS, **error.headers}, "application/json")


def explain(error: RobotaError) -> HttpError:
    """An error of ours in the words of HTTP."""
    return HttpError(_STATUS.get(error.code, 500), error.code.lower(), str(error))
