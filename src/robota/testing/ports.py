"""A world without chance: ids count, the clock ticks when it is asked, waits are over at once."""

from __future__ import annotations

from itertools import count

from msgspec import Struct, field

from robota.core.ports import Ports


class FixedPorts(Ports, Struct, frozen=True, kw_only=True):
    """`Ports` that give the same answers in every run of a test."""

    sleeps: list[float] = field(default_factory=list)
    """Every wait that was asked for, in order. None of them took time; each moved the clock."""


def fixed_ports(*, start: float = 1_700_000_000.0, tick: float = 1.0, fraction: float = 0.5) -> FixedPorts:
    """Ids `00000000-0000-4000-8000-000000000001` and up, a clock that moves `tick` seconds per look,
    randomness that is always `fraction`, and waits that are recorded in `sleeps` instead of waited for."""
    clock = start - tick
    numbers = count(1)
    sleeps: list[float] = []

    def now() -> float:
        nonlocal clock
        clock += tick
        return clock

    def monotonic() -> float:
        return now() - start

    def new_id() -> str:
        return f"00000000-0000-4000-8000-{next(numbers):012d}"

    async def sleep(seconds: float) -> None:
        import anyio.lowlevel  # noqa: PLC0415 - most tests never wait

        nonlocal clock
        clock += seconds
        sleeps.append(seconds)
        await anyio.lowlevel.checkpoint()  # still a place where a cancellation arrives

    return FixedPorts(
        now=now, monotonic=monotonic, new_id=new_id, random=lambda: fraction, sleep=sleep, sleeps=sleeps
    )
