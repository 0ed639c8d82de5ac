"""The doors to the outside world that a replay must control: clock, ids, randomness, waiting.

Everything nondeterministic that the engine itself needs comes through one `Ports` value, passed in at
construction. A replay hands in the recorded answers; tests hand in counters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from msgspec import Struct


def new_uuid() -> str:
    """A random UUID (version 4); `import uuid` would cost every start 3 ms for this one function."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{_VARIANT[text[16]]}{text[17:20]}-{text[20:]}"


_VARIANT = {f"{digit:x}": f"{digit & 0b0011 | 0b1000:x}" for digit in range(16)}
"""The two bits that say what kind of UUID it is, in the hexadecimal digit that has them."""


def random_fraction() -> float:
    """A number in [0, 1); enough randomness for jitter without importing `random`."""
    return int.from_bytes(os.urandom(6), "big") / (1 << 48)


async def sleep(seconds: float) -> None:
    """Wait; the backend is loaded with the first wait, not with the module."""
    import anyio  # noqa: PLC0415 - see the docstring

    await anyio.sleep(seconds)


class Ports(Struct, frozen=True):
    """What a run may ask of the world. The defaults are the real world."""

    now: Callable[[], float] = time.time
    """Wall clock, seconds since the epoch."""
    monotonic: Callable[[], float] = time.monotonic
    new_id: Callable[[], str] = new_uuid
    random: Callable[[], float] = random_fraction
    sleep: Callable[[float], Awaitable[None]] = sleep


REAL_WORLD = Ports()


def timestamp(seconds: float) -> datetime:
    """Clock seconds as the UTC time stamp that messages carry."""
    return datetime.fromtimestamp(seconds, UTC)


def utc_now() -> datetime:
    return datetime.now(UTC)
