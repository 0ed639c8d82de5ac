"""The short form of `make fuzz-http`."""

from __future__ import annotations

from fuzz.http_replies import run

CASES = 1500


def test_replies_are_read_as_h11_reads_them_however_they_are_cut() -> None:
    problems, understood = run(CASES, seed=20)

    assert problems == []
    assert understood > CASES / 3  # it is not only nonsense that they agree on
