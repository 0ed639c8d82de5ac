from __future__ import annotations

import pytest

from robota.http.errors import HttpError
from robota.http.sse import EventSplitter, ServerSentEvent


def split(*pieces: bytes, limit: int = 1000) -> list[ServerSentEvent]:
    splitter = EventSplitter(limit=limit)
    events = [event for piece in pieces for event in splitter.feed(piece)]
    return events + splitter.flush()


def data_of(*pieces: bytes) -> list[bytes]:
    return [event.data for event in split(*pieces)]


def test_a_chunk_with_one_event_is_that_event() -> None:
    assert split(b"data: {}\n\n") == [ServerSentEvent(b"{}")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_chunk_with_one_named_event_is_that_event(end: bytes) -> None:
    assert split(end.join((b"event: ping", b"data: {}", b"", b""))) == [ServerSentEvent(b"{}", "ping")]
    assert split(end.join((b"data: {}", b"event: ping", b"", b""))) == [ServerSentEvent(b"{}", "ping")]
    two = end.join((b"event: ping", b"data: a", b"data: b", b"", b""))
    assert split(two) == [ServerSentEvent(b"a\nb", "ping")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_counts_wherever_the_chunks_are_cut(end: bytes) -> None:
    lines = (
        "\ufeffdata: one||: keep-alive|||event: ping|id: 7|data:two|data: 2||unknown: x|retry: 5||"
        "data: 세||event: end|data: 3||"
    )
    stream = end.join(lines.encode().split(b"|"))
    whole = [
        ServerSentEvent(b"one"),
        ServerSentEvent(b"two\n2", "ping", "7"),
        ServerSentEvent("세".encode(), "", "7"),
        ServerSentEvent(b"3", "end", "7"),
    ]
    assert split(stream) == whole
    assert split(*(stream[at : at + 1] for at in range(len(stream)))) == whole
    for at in range(len(stream)):
        assert split(stream[:at], stream[at:]) == whole


def test_line_ends_may_be_mixed() -> None:
    assert data_of(b"data: a\r\n\ndata: b\r\r\ndata: c\n\r") == [b"a", b"b", b"c"]


def test_several_events_in_one_chunk_keep_their_order() -> None:
    assert data_of(b"data: a\n\ndata: b\n\nda", b"ta: c\n\n") == [b"a", b"b", b"c"]


def test_only_one_space_after_the_colon_belongs_to_the_grammar() -> None:
    assert data_of(b"data:  x\n\ndata\n\ndata:\n\n") == [b" x", b"", b""]


def test_an_event_without_data_is_none() -> None:
    assert data_of(b"event: ping\n\n: comment\n\nid: 3\n\n\n\n") == []


def test_an_id_with_a_zero_byte_is_ignored() -> None:
    assert [event.id for event in split(b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n")] == ["1", "1"]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    assert data_of(b"data: a\n\n", b"\xef\xbb\xbfdata: b\n\n") == [b"a"]


def test_an_event_cut_by_the_end_is_given_as_far_as_it_came() -> None:
    assert data_of(b"data: a\n\ndata: [DO") == [b"a", b"[DO"]


def test_an_endless_event_is_refused_after_the_events_before_it() -> None:
    splitter = EventSplitter(limit=100)
    assert [event.data for event in splitter.feed(b"data: a\n\ndata: " + b"x" * 90)] == [b"a"]
    with pytest.raises(HttpError, match="more than 100 bytes"):
        splitter.feed(b"x" * 20)
