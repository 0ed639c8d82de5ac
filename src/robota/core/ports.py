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
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


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
