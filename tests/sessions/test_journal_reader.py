from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.journal_files import JournalFile

from robota.core.jsontext import encode
from robota.sessions.journal.file.line import Line, checksum_of
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalError, JournalProblem


def write_lines(path: Path, count: int = 5, session_id: str = "s1") -> list[bytes]:
    journal = JournalFile(str(path), session_id, now=lambda: 1_800_000_000.123)
    for number in range(1, count + 1):
        journal.append(b'"event":"user","text":%b}' % encode(f"text {number} ä"))
    journal.close()
    return path.read_bytes().splitlines(keepends=True)


def with_checksum(rest: bytes) -> bytes:
    line = b'{"crc":"00000000",' + rest
    return b'{"crc":"%08x",%b\n' % (checksum_of(line), rest)


def read(path: Path, session_id: str | None = "s1") -> tuple[list[int], list[tuple[str, str]]]:
    """Numbers of the records and kind with message of the problems."""
    items = list(read_lines(str(path), session_id=session_id))
    numbers = [item.seq for item in items if isinstance(item, Line)]
    return numbers, [(item.kind, item.message) for item in items if isinstance(item, JournalProblem)]


def kinds(path: Path) -> tuple[list[int], list[str]]:
    numbers, problems = read(path)
    for _, message in problems:
        assert "byte" in message
        assert "kept" in message
    return numbers, [kind for kind, _ in problems]


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)

    records = [item for item in read_lines(str(path)) if isinstance(item, Line)]

    assert [(record.seq, record.event, record.checked) for record in records] == [
        (number, "user", True) for number in range(1, 6)
    ]
    assert [record.line + b"\n" for record in records] == lines
    assert records[1].offset == len(lines[0])
    fields = records[0].fields()
    assert fields.pop("crc") == f"{checksum_of(records[0].line):08x}"
    assert fields == {
        "v": 1,
        "seq": 1,
        "timestamp": "2027-01-15T08:00:00.123Z",
        "sessionId": "s1",
        "event": "user",
        "text": "text 1 ä",
    }


def test_only_the_events_asked_for_are_given_out_but_all_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    for event in ("user", "stream", "message", "stream"):
        journal.append(b'"event":"%b"}' % event.encode())
    journal.close()
    path.write_bytes(path.read_bytes().replace(b'"seq":4', b'"seq":9'))

    items = list(read_lines(str(path), events={"message", "user"}))

    assert [item.event for item in items if isinstance(item, Line)] == ["user", "message"]
    assert [item.kind for item in items if isinstance(item, JournalProblem)] == ["checksum"]


def test_the_last_record_may_be_cut_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    whole = b"".join(lines)
    before = len(whole) - len(lines[-1])

    for size in range(before, len(whole)):
        path.write_bytes(whole[:size])
        numbers, problems = read(path)
        if size == before:
            assert (numbers, problems) == ([1, 2, 3, 4], [])
        elif size == len(whole) - 1:
            assert (numbers, problems) == ([1, 2, 3, 4, 5], [])  # only the newline is missing
        else:
            assert (numbers, [kind for kind, _ in problems]) == ([1, 2, 3, 4], ["torn"])
            assert "record being written" in problems[0][1]


def test_two_records_on_one_line_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join([lines[0], lines[1].rstrip(), lines[2].rstrip(), lines[3], lines[4]]))

    assert kinds(path) == ([1, 2, 3, 4, 5], ["joined"])


def test_a_file_that_lost_all_its_newlines_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"".join(write_lines(path, 300)).replace(b"\n", b""))

    assert kinds(path) == (list(range(1, 301)), ["joined"])


def test_a_record_written_into_the_middle_of_another_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(lines[0] + lines[1][:40] + lines[2].rstrip() + lines[1][40:] + lines[3] + lines[4])

    assert kinds(path) == ([1, 3, 4, 5], ["spliced", "gap"])


def test_the_half_of_a_record_costs_nothing_but_itself(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(lines[0] + lines[1][:50] + b"\n" + lines[2] + lines[3][50:] + lines[4])

    assert kinds(path) == ([1, 3, 5], ["bad-json", "bad-json", "gap", "gap"])


@pytest.mark.parametrize("zeros", [1, 4096, 3_000_000])
def test_records_around_a_zero_filled_place_are_kept(tmp_path: Path, zeros: int) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(
        lines[0] + lines[1].rstrip() + bytes(zeros) + lines[2] + lines[3][:60] + bytes(zeros) + lines[4]
    )

    numbers, problems = read(path)

    assert numbers == [1, 2, 3, 5]
    assert [kind for kind, _ in problems] == ["zero-filled", "bad-json", "zero-filled", "gap"]
    assert f"{zeros} bytes from byte {len(lines[0]) + len(lines[1]) - 1}" in problems[0][1]


def test_a_zero_filled_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"".join(write_lines(path)) + bytes(5000))

    assert kinds(path) == ([1, 2, 3, 4, 5], ["zero-filled"])


def test_a_tampered_record_is_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join(lines).replace(b"text 3", b"lies 3"))

    numbers, problems = read(path)

    assert numbers == [1, 2, 4, 5]
    assert problems[0] == (
        "checksum",
        f"Record 3 at byte {len(lines[0]) * 2} is not what was written: its checksum does not match. "
        "It was skipped; all others were kept.",
    )
    assert problems[1:] == [
        ("gap", f"Record 3 is missing before byte {len(lines[0]) * 3}; all others were kept.")
    ]


def test_reordered_records_are_kept_and_a_gap_they_fill_is_none(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join([lines[0], lines[3], lines[2], lines[1], lines[4]]))

    assert kinds(path) == ([1, 4, 3, 2, 5], ["reordered", "reordered"])


def test_an_exact_copy_is_dropped_and_a_number_used_twice_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    other = with_checksum(lines[1].rstrip()[18:].replace(b"text", b"more"))
    path.write_bytes(b"".join([*lines[:3], lines[1], other, *lines[3:]]))

    assert kinds(path) == ([1, 2, 3, 2, 4, 5], ["repeated", "repeated"])


def test_a_number_from_nowhere_neither_costs_memory_nor_the_records_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    wild = with_checksum(b'"v":1,"seq":999999999999999999,"timestamp":"","sessionId":"s1","event":"user"}')
    path.write_bytes(b"".join([*lines[:2], wild, *lines[2:]]))

    assert kinds(path) == ([1, 2, 999999999999999999, 3, 4, 5], ["reordered"] * 3 + ["gap"])


def test_records_of_another_session_are_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    foreign = write_lines(tmp_path / "s2.jsonl", session_id="s2")
    lines = write_lines(path)
    path.write_bytes(b"".join([*lines[:2], foreign[2], *lines[2:]]))

    assert kinds(path) == ([1, 2, 3, 4, 5], ["foreign"])
    assert read(path, session_id=None)[0] == [1, 2, 3, 4, 5]
    assert read(path, session_id="s2")[0] == [3]


def test_a_later_version_is_named_once_and_read_as_far_as_it_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    same_checksum = with_checksum(
        b'"v":2,"seq":6,"timestamp":"t","sessionId":"s1","event":"new_event","x":1}'
    )
    other_order = b'{"v":2,"seq":7,"event":"new_event","sessionId":"s1","crc":"abc"}\n'
    path.write_bytes(b"".join(lines) + same_checksum + other_order)

    numbers, problems = read(path)

    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    assert [kind for kind, _ in problems] == ["version"]
    assert "newer robota (journal version 2, known is 1)" in problems[0][1]


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join(lines).replace("3 ä".encode(), b"3 \xff\xfe"))

    assert kinds(path) == ([1, 2, 4, 5], ["encoding", "gap"])


def test_bytes_that_were_never_utf8_do_not_cost_a_record_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    journal.append(b'"event":"stream","text":"a\xffb"}')
    journal.close()

    (record,) = read_lines(str(path))

    assert isinstance(record, Line)
    assert record.fields()["text"] == "a\ufffdb"


def test_a_journal_whose_line_ends_were_converted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"".join(write_lines(path)).replace(b"\n", b"\r\n"))

    assert kinds(path) == ([1, 2, 3, 4, 5], [])


def test_lines_of_the_original_are_accepted_as_unchecked(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    old = b'{"timestamp":"2026-01-01T00:00:00.000Z","sessionId":"s1","event":"user","content":"hi"}\r\n'
    path.write_bytes(old + old.rstrip() + old)
    journal = JournalFile(str(path), "s1")
    journal.append(b'"event":"user","content":"new"}')
    journal.close()

    records = [item for item in read_lines(str(path)) if isinstance(item, Line)]

    assert [(record.seq, record.checked) for record in records] == [(0, False)] * 3 + [(1, True)]
    assert [record.fields()["content"] for record in records] == ["hi", "hi", "hi", "new"]


def test_a_record_whose_checksum_lost_its_name_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join(lines).replace(b'"crc"', b'""', 1))

    assert kinds(path) == ([2, 3, 4, 5], ["bad-json", "gap"])


def test_a_record_without_checksum_among_checked_ones_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join(lines) + b'{"timestamp":"x","sessionId":"s1","event":"user"}\n')

    assert kinds(path) == ([1, 2, 3, 4, 5, 0], ["unchecked"])


@pytest.mark.parametrize(
    "rubbish", [b"rubbish", b"{}", b"[1]", b"null", b"{" * 100_000, b'{"event":7}', b'"']
)
def test_rubbish_between_records_is_named(tmp_path: Path, rubbish: bytes) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    path.write_bytes(b"".join([*lines[:2], rubbish, b"\n\n \n", *lines[2:]]))

    assert kinds(path) == ([1, 2, 3, 4, 5], ["bad-json"])


def test_a_gigabyte_of_zeros_costs_no_memory_and_hides_no_record(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    size = 1 << 30
    with open(path, "r+b") as file:
        file.truncate(len(lines[0]))
        file.seek(size)
        file.write(b"".join(lines[2:]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    numbers, problems = read(path)

    assert numbers == [1, 3, 4, 5]
    assert problems[0] == (
        "zero-filled",
        f"{size - len(lines[0])} bytes from byte {len(lines[0])} on were lost: all zero. "
        "It was skipped; all others were kept.",
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_line_beyond_the_limit_is_skipped_with_its_size_and_place(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    lines = write_lines(path)
    size = 65 * 1024 * 1024
    with open(path, "wb") as file:
        file.write(lines[0])
        file.writelines(b"x" * (size // 65) for _ in range(65))
        file.write(b"\n")
        file.writelines(lines[1:])

    numbers, problems = read(path)

    assert numbers == [1, 2, 3, 4, 5]
    assert [kind for kind, _ in problems] == ["oversized"]
    assert problems[0][1].startswith(f"The line at byte {len(lines[0])} is too long with {size} bytes. ")


def test_records_longer_than_a_block_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    texts = [
        str(number) * length for number, length in enumerate((3, 700_000, 262_144, 1, 262_143, 5_000_000, 9))
    ]
    for text in texts:
        journal.append(b'"event":"user","text":%b}' % encode(text))
    journal.close()

    records = [item for item in read_lines(str(path)) if isinstance(item, Line)]

    assert [record.fields()["text"] for record in records] == texts
    content = path.read_bytes()
    assert all(content[record.offset :].startswith(record.line) for record in records)


def test_an_event_name_may_need_escapes(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), 'a"b\\', now=lambda: 0.0)
    for event in ('a"b', 'a"c', "ä", "\\"):
        journal.append(b'"event":%b}' % encode(event))
    journal.close()

    assert [item.event for item in read_lines(str(path)) if isinstance(item, Line)] == [
        'a"b',
        'a"c',
        "ä",
        "\\",
    ]


def test_a_file_that_cannot_be_read_never_looks_empty(tmp_path: Path) -> None:
    directory = tmp_path / "directory.jsonl"
    directory.mkdir()
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)

    for path in (tmp_path / "missing.jsonl", directory, pipe):
        with pytest.raises(JournalError, match=f"The journal {path} cannot be read at all: "):
            list(read_lines(str(path)))


def test_a_disk_error_in_the_middle_is_raised_after_what_was_read(tmp_path: Path) -> None:
    from tests.support.faulty_files import FaultyFiles

    path = tmp_path / "s1.jsonl"
    write_lines(path, 3000)
    found: list[object] = []
    items = read_lines(str(path), files=FaultyFiles(str(tmp_path), fail_at=1, only=("read_at",)))

    with pytest.raises(JournalError, match="cannot be read beyond byte 262144: the disk reports an error"):
        found.extend(items)

    assert len(found) > 1000


def test_a_forged_record_that_is_no_json_says_so_when_asked_for_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(with_checksum(b'"v":1,"seq":1,"timestamp":"t","sessionId":"s1","event":"user",oops'))

    (record,) = read_lines(str(path))

    assert isinstance(record, Line)
    with pytest.raises(JournalError, match="byte 0 of the journal is not valid JSON"):
        record.fields()
