from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.families.pieces import STOP, assert_same_in_all_cuts, joined, play, text_of, thoughts_of

from robota.core.messages import ReasoningBlock, ToolCall
from robota.core.provider import MetadataChunk, NativePayload, ReasoningChunk, StopChunk, TextChunk
from robota.providers.local_server import ReasoningProjector


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>I add.</think>Three.", "I add.", "Three."),
        ("<think>\nI add.\n</think>\n\nThree.\n", "I add.\n", "Three.\n"),
        ("<|channel>thought\nI add.\n<channel|>Three.", "I add.\n", "Three."),
        ("<think>żółw 🐢 a < b </thin </think>漢字", "żółw 🐢 a < b </thin ", "漢字"),
        ("[THINK]I add.[/THINK]Three.", "I add.", "Three."),
        ("<|START_THINKING|>I add.<|END_THINKING|>Three.", "I add.", "Three."),
        ("<seed:think>I add.</seed:think>Three.", "I add.", "Three."),
        ("<mm:think>I add.</mm:think>Three.", "I add.", "Three."),
        ("<think>one</think>\n<think>two</think> Three.", "onetwo", "Three."),
        ("<think><|channel>thought</think>Three.", "<|channel>thought", "Three."),
    ],
)
def test_thinking_is_taken_out_of_the_text_wherever_it_is_cut(text, thought, answer) -> None:
    expected = [ReasoningChunk(thought), TextChunk(answer), ReasoningBlock(thought), STOP]
    assert_same_in_all_cuts(ReasoningProjector, text, expected)


@pytest.mark.parametrize(
    "text",
    [
        "Three.",
        "Models write <think> and </think> around it.",
        " \n Three.",
        "<thinking>is another mark</thinking>",
        "<thin",
        "<|channel>final\nThree.",
        "</think>",
        "<",
    ],
)
def test_what_is_no_thinking_stays_text(text) -> None:
    assert_same_in_all_cuts(ReasoningProjector, text, [TextChunk(text), STOP])


def test_white_space_before_the_thinking_is_text_of_its_own() -> None:
    expected = [
        TextChunk("\n "), ReasoningChunk("Hm."), TextChunk("Yes."), ReasoningBlock("Hm."), STOP,
    ]  # fmt: skip
    assert_same_in_all_cuts(ReasoningProjector, "\n <think>Hm.</think>Yes.", expected)


def test_an_empty_thought_leaves_nothing() -> None:
    text = "<|channel>thought\n<channel|>\n<think>\n\n</think>\n\nYes."
    assert_same_in_all_cuts(ReasoningProjector, text, [TextChunk("Yes."), STOP])


def test_thinking_that_is_cut_by_the_token_limit_is_thinking() -> None:
    stop = StopChunk("max_tokens", "length")
    chunks = joined(play(ReasoningProjector(), ["<think>I ad", "d </thi"], stop))
    assert chunks == [ReasoningChunk("I add </thi"), ReasoningBlock("I add </thi"), stop]


def test_the_thought_comes_before_the_calls_it_led_to() -> None:
    call = ToolCall("c1", "add", "{}")
    chunks = play(ReasoningProjector(), ["<think>I call.</think>"], call, STOP)
    assert chunks == [ReasoningChunk("I call."), ReasoningBlock("I call."), call, STOP]


def test_other_chunks_pass_and_do_not_disturb_a_mark_that_is_on_its_way() -> None:
    projector, note = ReasoningProjector(), MetadataChunk({"model": "m"})
    chunks = projector.take(TextChunk("<th")) + projector.take(note) + projector.take(TextChunk("ink>Hm"))
    assert chunks == [note, ReasoningChunk("Hm")]


def test_a_reply_that_breaks_off_gives_out_what_was_held_back() -> None:
    outside, inside = ReasoningProjector(), ReasoningProjector()
    assert [*outside.take(TextChunk("<thi")), *outside.release()] == [TextChunk("<thi")]
    assert [*inside.take(TextChunk("<think>a</th")), *inside.release()] == [
        ReasoningChunk("a"),
        ReasoningChunk("</th"),
    ]


def test_native_events_of_texts_that_are_taken_apart_are_kept() -> None:
    chunks = ReasoningProjector().take(TextChunk("<think>a</think>b", b'{"n":1}'))
    native = NativePayload(kind="stream_event", payload=b'{"n":1}', api_surface="openai-chat-completions")
    assert chunks == [native, ReasoningChunk("a"), TextChunk("b")]
    plain = TextChunk("b", b'{"n":2}')
    assert ReasoningProjector().take(plain) == [plain]


THOUGHT = re.compile(
    r"<think>\s*(.*?)(?:</think>\s*|\Z)|<\|channel>thought\s*(.*?)(?:<channel\|>\s*|\Z)", re.DOTALL
)
WORDS = ["<think>", "</think>", "<|channel>thought", "<channel|>", "<", "</thi", " ", "\n", "a", "żółw"]


def split_whole(text: str) -> tuple[str, str]:
    """The text and the thinking of a reply that is all there."""
    at = start = len(text) - len(text.lstrip())
    thoughts = []
    while found := THOUGHT.match(text, at):
        thoughts.append(found[1] or found[2] or "")
        at = found.end()
    return text[:start] + text[at:], "".join(thoughts)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.sets(st.integers(0, 60)))
def test_no_letter_is_lost_or_told_twice(text: str, places: set[int]) -> None:
    edges = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    chunks = play(ReasoningProjector(), pieces)
    assert (text_of(chunks), "".join(thoughts_of(chunks))) == split_whole(text)
    assert joined(chunks) == joined(play(ReasoningProjector(), [text]))
