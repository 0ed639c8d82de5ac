"""The doors to the outside world."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from robota.core.ports import new_uuid


def test_ids_are_random_uuids_of_version_four() -> None:
    ids = [new_uuid() for _ in range(200)]
    read = [UUID(id) for id in ids]
    assert [str(each) for each in read] == ids
    assert {(each.version, each.variant) for each in read} == {(4, RFC_4122)}
    assert len(set(ids)) == len(ids)
    assert {id[19] for id in ids} == set("89ab")
