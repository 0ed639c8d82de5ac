"""Journals damaged at random: what is whole is found, what is not is named, and writing goes on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.journal_files import JournalFile

from robota.core.jsontext import encode
from robota.sessions.journal.file.line import Line
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalProblem

CASES = 40


def open_journal(path: Path) -> JournalFile:
    """Without waiting for the disk."""
    return JournalFile(str(path), "s1", files=FaultyFiles(str(path.parent)), now=lambda: 1_800_000_000.0)


def write_journal(path: Path, rng: random.Random) -> bytes:
    journal = open_journal(path)
    for _ in range(rng.randint(1, 30)):
        text = "".join(rng.choices('abc{}"\\ \n\0ä🙂', k=rng.choice((0, 5, 50, 5_000))))
        nested = {"crc": "00000000", "v": 1, "seq": 1, "timestamp": "2026-01-01T00:00:00.000Z"}
        journal.append(b'"event":"user","text":%b,"nested":%b}' % (encode(text), encode(nested)))
    journal.close()
    return path.read_bytes()


def damage(content: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(content) + 1)
        end = min(len(content), start + rng.choice((1, 3, 100, 3_000)))
        piece = content[start:end]
        other = rng.randrange(len(content) + 1)
        content = rng.choice(
            (
                content[:start] + content[end:],
                content[:start] + bytes(len(piece)) + content[end:],
                content[:start] + rng.randbytes(len(piece)) + content[end:],
                content[:other] + piece + content[other:],
                content[:start] + piece.replace(b"\n", b"") + content[end:],
                content[:start] + piece.replace(b'"', b"") + content[end:],
                content[:start] + b"\n" + content[start:],
                content[:start],
            )
        )
    return content


@pytest.mark.parametrize("seed", range(8))
def test_every_whole_line_of_a_damaged_journal_is_found_and_the_session_goes_on(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    for case in range(CASES):
        path = tmp_path / str(case) / "s1.jsonl"
        path.parent.mkdir()
        original = write_journal(path, rng).splitlines()
        damaged = damage(b"\n".join(original) + b"\n", rng)
        path.write_bytes(damaged)

        found = [item.line for item in read_lines(str(path), session_id="s1") if isinstance(item, Line)]

        assert set(found) <= set(original)
        assert set(damaged.split(b"\n")) & set(original) <= set(found)
        assert set(found) == set(original) or damaged.strip() == b"" or names_damage(path)

        journal = open_journal(path)
        seq = journal.append(b'"event":"user"}')
        journal.close()
        records = [item for item in read_lines(str(path)) if isinstance(item, Line)]
        assert [record.line for record in records[:-1]] == found
        assert all(record.seq < seq for record in records[:-1])
        assert records[-1].seq == seq


def names_damage(path: Path) -> bool:
    """Whether a problem is told; records cut off cleanly at the end cannot be missed by anybody."""
    items = list(read_lines(str(path), session_id="s1"))
    whole = b"".join(item.line + b"\n" for item in items if isinstance(item, Line))
    return any(isinstance(item, JournalProblem) for item in items) or whole == path.read_bytes()
