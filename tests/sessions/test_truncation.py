from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from robota.core.messages import ImagePart
from robota.core.tool import ToolResult
from robota.sessions.permissions.tool_hooks import MAX_TOOL_OUTPUT_CHARACTERS, truncate_result, truncate_text

LIMITS = st.integers(200, 400)
TEXTS = st.integers(0, 1_500).flatmap(lambda size: st.text("abc\n ", min_size=size, max_size=size))


def test_head_and_tail_remain_with_a_count_of_what_is_missing() -> None:
    text = "head" + "x" * 100_000 + "tail"
    cut = truncate_text(text)
    assert cut.startswith("headx")
    assert cut.endswith("xtail")
    assert sum(count_missing(cut)) == len(text)


def count_missing(cut: str) -> tuple[int, int]:
    """What the note says is missing, and what is there."""
    [missing] = re.findall(r"\[\.\.\. ([\d,]+) characters left out \.\.\.\]", cut)
    return int(missing.replace(",", "")), len(cut) - len(f"\n[... {missing} characters left out ...]\n")


@given(st.integers(400, 3_000), st.integers(300, 399), st.integers(1, 300))
def test_a_second_cut_counts_what_the_first_left_out(size: int, first: int, added: int) -> None:
    once = truncate_text("x" * size, first)
    twice = truncate_text(once + "y" * added, 300)
    assert sum(count_missing(twice)) == size + added


def test_what_fits_is_not_touched() -> None:
    text = "x" * MAX_TOOL_OUTPUT_CHARACTERS
    assert truncate_text(text) is text
    result = ToolResult(content=text)
    assert truncate_result(result) is result


@given(TEXTS, st.integers(-5, 400))
def test_a_cut_text_fits_and_stays_as_it_is(text: str, limit: int) -> None:
    cut = truncate_text(text, limit)
    assert len(cut) <= max(limit, 0)
    assert truncate_text(cut, limit) == cut


@given(TEXTS, TEXTS | st.none(), st.booleans(), LIMITS)
def test_a_cut_result_fits_and_stays_as_it_is(content: str, error: str | None, ok: bool, limit: int) -> None:
    result = ToolResult(content=content, error=error, ok=ok)
    cut = truncate_result(result, limit)
    assert len(cut.text) <= limit
    assert truncate_result(cut, limit) is cut
    assert (cut.ok, cut is result) == (ok, len(result.text) <= limit)


def test_an_error_is_cut_like_an_output_and_keeps_at_least_half() -> None:
    result = truncate_result(
        ToolResult(ok=False, content="c" * 50_000, error="first" + "e" * 50_000 + "last")
    )
    assert result.error is not None
    assert result.error.startswith("first")
    assert result.error.endswith("last")
    assert len(result.error) > MAX_TOOL_OUTPUT_CHARACTERS // 3 < len(result.content)


def test_the_metadata_tells_of_the_cut_and_images_stay() -> None:
    image = ImagePart("aGk=")
    result = truncate_result(ToolResult(content="x" * 40_000, parts=(image,), metadata={"exitCode": 0}))
    assert result.parts == (image,)
    assert result.metadata == {"exitCode": 0, "truncated": True, "originalLength": 40_000}
