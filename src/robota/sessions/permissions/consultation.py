"""Asking foreign code: handlers, hooks and other ports that may break in any way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import CoroutineType

from msgspec import Struct

from robota.core.errors import describe_exception
from robota.core.run_task import is_cancelled


class Fault(Struct, frozen=True):
    """What went wrong, in one line; the log has the rest."""

    text: str


async def consult(who: str, function: Callable[..., object], *args: object, **named: object) -> object:
    """What the function answers, awaited where it has to be; a `Fault` if it breaks.

    Only cancellation from outside passes through.
    """
    try:
        answer = function(*args, **named)
        if type(answer) is CoroutineType or isinstance(answer, Awaitable):
            return await answer
        return answer
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        return _log(who, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; the caller decides what it means
        return _log(who, error)


def attempt(who: str, function: Callable[..., object], *args: object) -> object:
    """The same for functions that are not asynchronous, which no cancellation can reach."""
    try:
        return function(*args)
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
        return _log(who, error)


def report_unusable(given: object) -> None:
    """A handler meant something by it: whoever wrote it has to hear that nothing came of it."""
    import logging  # noqa: PLC0415 - only when something is wrong

    logging.getLogger("robota.permissions").warning(
        "The handler of a question returned %.80r, which is not an answer to it: about a call return True, "
        "False, 'allow-session', 'allow-project' or a PermissionAnswer.",
        given,
    )


def _log(who: str, error: BaseException) -> Fault:
    import logging  # noqa: PLC0415 - only when something is wrong

    try:
        text = describe_exception(error)
    except Exception:  # noqa: BLE001 - an exception that cannot even say what it is
        text = type(error).__name__
    logging.getLogger("robota.permissions").warning("%s failed: %s", who, text, exc_info=error)
    return Fault(text)
