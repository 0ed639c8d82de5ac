from __future__ import annotations

import uuid

import pytest

from robota.testing import fixed_ports


def test_ids_count_and_are_uuids():
    ports = fixed_ports()
    ids = [ports.new_id() for _ in range(2)]
    assert ids == ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"]
    assert uuid.UUID(ids[0]).version == 4


def test_the_clock_moves_when_it_is_looked_at():
    ports = fixed_ports(start=100, tick=2)
    assert [ports.now(), ports.now(), ports.monotonic()] == [100, 102, 4]


def test_chance_is_always_the_same():
    assert [fixed_ports().random(), fixed_ports(fraction=0.25).random()] == [0.5, 0.25]


@pytest.mark.anyio
async def test_waits_are_recorded_and_move_the_clock():
    ports = fixed_ports(start=100, tick=0)
    await ports.sleep(3600)
    await ports.sleep(0.5)
    assert ports.sleeps == [3600, 0.5]
    assert ports.now() == 3700.5
