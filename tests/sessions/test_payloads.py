from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.support.faulty_files import FaultyFiles

from robota.core.jsontext import decode, encode
from robota.sessions.journal.file.payloads import PayloadReferenceError, PayloadStore

VALUE = encode({"text": "ä" * 40_000})
DIGEST = sha256(VALUE).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> PayloadStore:
    return PayloadStore(str(tmp_path), "s1")


@pytest.fixture
def reference(store: PayloadStore) -> dict[str, Any]:
    found: dict[str, Any] = decode(store.put(VALUE))
    return found


def test_a_reference_says_hash_size_and_place(
    store: PayloadStore, reference: dict[str, Any], tmp_path: Path
) -> None:
    assert reference == {
        "kind": "external-payload",
        "encoding": "json",
        "sha256": DIGEST,
        "byteLength": len(VALUE),
        "relativePath": f"s1.payloads/{DIGEST}.json",
    }
    assert store.get(reference) == VALUE
    place = tmp_path / "s1.payloads"
    assert [path.name for path in place.iterdir()] == [f"{DIGEST}.json"]
    assert (place.stat().st_mode & 0o777, (place / f"{DIGEST}.json").stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_same_value_is_stored_once(store: PayloadStore, tmp_path: Path) -> None:
    first = store.put(VALUE)
    inode = os.stat(tmp_path / "s1.payloads" / f"{DIGEST}.json").st_ino

    assert store.put(VALUE) == PayloadStore(str(tmp_path), "s1").put(VALUE) == first
    assert os.stat(tmp_path / "s1.payloads" / f"{DIGEST}.json").st_ino == inode


def test_a_damaged_payload_is_replaced(reference: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "s1.payloads" / f"{DIGEST}.json").write_bytes(b"")
    fresh = PayloadStore(str(tmp_path), "s1")

    fresh.put(VALUE)

    assert fresh.get(reference) == VALUE


def test_what_a_killed_writer_left_half_written_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "s1.payloads"
    place.mkdir()
    (place / f".{DIGEST}.0123.tmp").write_bytes(b"half")

    PayloadStore(str(tmp_path), "s1").put(VALUE)

    assert [path.name for path in place.iterdir()] == [f"{DIGEST}.json"]


def test_a_refusing_disk_gives_the_value_back_to_the_caller(tmp_path: Path) -> None:
    for fail_at in range(1000):
        files = FaultyFiles(str(tmp_path), fail_at=fail_at)
        store = PayloadStore(str(tmp_path), f"s{fail_at}", files=files)
        try:
            reference = store.put(VALUE)
        except OSError:
            reference = store.put(VALUE)
        assert PayloadStore(str(tmp_path), "any").get(decode(reference)) == VALUE
        if not files.fired:
            break
    assert fail_at > 8


def test_a_payload_whose_name_was_not_yet_safe_is_made_safe_before_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "s1.payloads").mkdir()
    files = FaultyFiles(str(tmp_path), fail_at=0, only=("sync_directory",))
    with pytest.raises(OSError, match="Input/output error"):
        PayloadStore(str(tmp_path), "s1", files=files).put(VALUE)

    reference = decode(PayloadStore(str(tmp_path), "s1", files=files).put(VALUE))

    for seed in range(10):
        files.after_crash(seed)
        assert PayloadStore(str(tmp_path), "s1").get(reference) == VALUE


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"encoding": "gzip"},
        {"sha256": "0" * 64},
        {"sha256": DIGEST.upper()},
        {"sha256": None},
        {"byteLength": len(VALUE) - 1},
        {"byteLength": True},
        {"byteLength": -1},
        {"byteLength": "9"},
        {"relativePath": f"/etc/s1.payloads/{DIGEST}.json"},
        {"relativePath": f"../s1.payloads/{DIGEST}.json"},
        {"relativePath": f"s1.payloads/../s1.payloads/{DIGEST}.json"},
        {"relativePath": f"..\\s1.payloads/{DIGEST}.json"},
        {"relativePath": f"C:s1.payloads/{DIGEST}.json"},
        {"relativePath": f"s1.payloads/{'0' * 64}.json"},
        {"relativePath": f"s2.payloads/{DIGEST}.json"},
        {"relativePath": f"s\0.payloads/{DIGEST}.json"},
        {"relativePath": f"elsewhere/{DIGEST}.json"},
        {"relativePath": 7},
    ],
    ids=str,
)
def test_a_reference_that_leads_elsewhere_is_invalid(
    store: PayloadStore, reference: dict[str, Any], change: dict[str, Any]
) -> None:
    with pytest.raises(PayloadReferenceError, match="A payload reference cannot be followed: ") as refusal:
        store.get(reference | change)

    assert refusal.value.code == "PAYLOAD_REFERENCE_INVALID"


def test_content_that_changed_is_invalid(
    store: PayloadStore, reference: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "s1.payloads" / f"{DIGEST}.json"
    path.write_bytes(VALUE.replace("ä".encode(), "ö".encode(), 1))

    with pytest.raises(PayloadReferenceError, match="was changed: its hash does not match"):
        store.get(reference)


def test_links_are_not_followed(store: PayloadStore, reference: dict[str, Any], tmp_path: Path) -> None:
    place = tmp_path / "s1.payloads"
    elsewhere = tmp_path / "elsewhere"
    (place / f"{DIGEST}.json").rename(tmp_path / "moved.json")
    (place / f"{DIGEST}.json").symlink_to(tmp_path / "moved.json")
    with pytest.raises(PayloadReferenceError, match="cannot be read"):
        store.get(reference)

    (place / f"{DIGEST}.json").unlink()
    (tmp_path / "moved.json").rename(place / f"{DIGEST}.json")
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    with pytest.raises(PayloadReferenceError, match="cannot be read"):
        store.get(reference)


def test_references_anywhere_in_a_value_are_resolved(store: PayloadStore, reference: dict[str, Any]) -> None:
    outer = decode(store.put(encode({"inner": [reference], "pad": "x" * 40_000})))
    value = {"a": [1, outer], "b": {"c": reference}, "d": "x", "e": None}

    resolved = store.resolve(value)

    content = decode(VALUE)
    assert resolved == {
        "a": [1, {"inner": [content], "pad": "x" * 40_000}],
        "b": {"c": content},
        "d": "x",
        "e": None,
    }
    assert value["b"] == {"c": reference}


def test_a_value_nested_deeper_than_the_stack_is_resolved(
    store: PayloadStore, reference: dict[str, Any]
) -> None:
    value: Any = reference
    for _ in range(50_000):
        value = [value]

    resolved = store.resolve(value)

    for _ in range(50_000):
        resolved = resolved[0]
    assert resolved == decode(VALUE)


def test_references_nested_too_deep_or_too_large_together_are_refused(
    store: PayloadStore, reference: dict[str, Any]
) -> None:
    value: Any = "end"
    for _ in range(32):
        value = decode(store.put(encode(value)))
    assert store.resolve(value) == "end"
    with pytest.raises(PayloadReferenceError, match="nested more than 32 deep"):
        store.resolve(decode(store.put(encode(value))))

    with pytest.raises(PayloadReferenceError, match="together have more than 67108864 bytes"):
        store.resolve([reference] * 1000)
