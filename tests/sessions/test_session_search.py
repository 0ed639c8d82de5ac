from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sessions.stored_sessions import QUESTION, SESSION_INIT, message_event, records_of, write_journal

from robota.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from robota.sessions.files import REAL_FILES
from robota.sessions.store.index import SearchHit, SessionIndex
from robota.sessions.store.search import cut_snippet
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.store.session_store import SessionStore


class Shelf:
    """A directory of sessions, searched with or without full-text search."""

    def __init__(self, directory: Path, *, full_text: bool) -> None:
        self.directory = directory
        self.store = SessionStore(directory)
        self._full_text = full_text

    def put(self, id: str, *messages: Message, cwd: str = "/srv/project") -> None:
        self.store.save(SessionRecord(id=id, cwd=cwd, messages=records_of(*messages), history=[{}]))

    def search(self, text: str, *, cwd: str | None = None, limit: int = 20) -> list[SearchHit]:
        index = SessionIndex(str(self.directory), files=REAL_FILES, redact=str, full_text=self._full_text)
        return list(index.search(text, cwd=cwd, limit=limit))

    def find(self, text: str, **options: object) -> list[str]:
        return [hit.session_id for hit in self.search(text, **options)]  # type: ignore[arg-type] # as above


@pytest.fixture(params=[True, False], ids=["full text", "plain"])
def shelf(tmp_path: Path, request: pytest.FixtureRequest) -> Shelf:
    return Shelf(tmp_path / "sessions", full_text=request.param)


def test_a_hit_says_where_when_who_and_what(shelf: Shelf) -> None:
    answer = AssistantMessage("The parser lives in\n\n  parser.py.", id="m2")
    shelf.put("s1", QUESTION, answer)
    assert shelf.search("lives") == [
        SearchHit(
            session_id="s1",
            message_id="m2",
            role="assistant",
            timestamp=answer.timestamp.isoformat().replace("+00:00", "Z"),
            snippet="The parser lives in parser.py.",
        )
    ]
    assert [hit.role for hit in shelf.search("parser")] == ["assistant", "user"]


def test_several_words_must_all_be_in_one_message_in_any_order(shelf: Shelf) -> None:
    shelf.put("both", UserMessage("a quick brown fox"))
    shelf.put("one", UserMessage("a quick answer"), UserMessage("a brown bear"))
    assert shelf.find("fox quick") == ["both"]
    assert shelf.find("quick brown") == ["both"]


@pytest.mark.parametrize(
    "text", ["PARSER", "parser", "Pars", "ÜBER", "über", "session_store", "Store.save()"]
)
def test_case_does_not_matter_and_the_beginning_of_a_word_is_enough(shelf: Shelf, text: str) -> None:
    shelf.put("s1", UserMessage("Über the Parser: session_store calls store.save() twice"))
    assert shelf.find(text) == ["s1"]


@pytest.mark.parametrize("text", ["検索", "セッション", "索を", "세션", "会话 search"])
def test_scripts_without_spaces_are_found(shelf: Shelf, text: str) -> None:
    shelf.put("s1", UserMessage("セッション検索を直して。 세션을 고쳐줘. 修复会话search功能"))
    assert shelf.find(text) == ["s1"]
    assert "検索を直" in shelf.search("検索")[0].snippet


def test_only_what_people_and_models_said_is_searched(shelf: Shelf) -> None:
    shelf.put(
        "s1",
        SystemMessage("needle"),
        ToolMessage("needle", "c", "needle"),
        AssistantMessage("", id="m3", metadata={"needle": "needle"}),
    )
    assert shelf.find("needle") == []


def test_the_newest_come_first_and_no_more_than_asked_for(shelf: Shelf) -> None:
    for number in range(5):
        shelf.put(f"s{number}", UserMessage(f"needle {number}"))
    assert shelf.find("needle", limit=3) == ["s4", "s3", "s2"]
    assert shelf.find("needle", limit=0) == []


def test_the_search_can_be_held_to_a_working_directory(shelf: Shelf) -> None:
    shelf.put("here", UserMessage("needle"), cwd="/srv/here")
    shelf.put("there", UserMessage("needle"), cwd="/srv/there")
    assert shelf.find("needle", cwd="/srv/there/") == ["there"]


@pytest.mark.parametrize(
    "text",
    ['"', "'", "*", "needle*", '"needle', "needle)", "(", "NOT", "AND needle", "needle OR", "NEAR(",
     "^needle", "body:needle", "-needle", "{needle}", "needle\0", "%", "_", "\\", "\ud83d", ";--", "+", "🐢"],
)  # fmt: skip
def test_special_characters_never_raise(shelf: Shelf, text: str) -> None:
    shelf.put("s1", UserMessage("a needle"))
    shelf.search(text)


@given(st.text(max_size=30))
def test_no_text_raises(text: str) -> None:
    assert isinstance(_SHELF.search(text), list)


def test_signs_that_are_no_words_are_found_as_they_are(shelf: Shelf) -> None:
    shelf.put("s1", UserMessage("a => b, 100 % sure 🐢"))
    shelf.put("s2", UserMessage("a b, 100 sure"))
    for text in ("=>", "%", "🐢", "sure 🐢 =>", "a %"):
        assert shelf.find(text) == ["s1"]
    assert shelf.find("   ") == []


def test_what_changed_is_searched_anew(shelf: Shelf) -> None:
    shelf.put("s1", UserMessage("first needle", id="m1"))
    assert len(shelf.search("needle")) == 1
    shelf.put("s1", UserMessage("first needle", id="m1"), UserMessage("second needle", id="m2"))
    shelf.put("s2", UserMessage("third needle"))
    assert len(shelf.search("needle")) == 3
    shelf.put("s1", UserMessage("second needle", id="m2"))
    assert len(shelf.search("needle")) == 2
    shelf.store.delete("s2")
    assert [hit.message_id for hit in shelf.search("needle")] == ["m2"]


def test_a_session_that_has_only_its_journal_is_searched(shelf: Shelf) -> None:
    write_journal(shelf.directory, "s1", SESSION_INIT, message_event(0, QUESTION))
    assert shelf.find("parser") == ["s1"]


def test_what_the_journal_knows_beyond_the_snapshot_is_searched(shelf: Shelf) -> None:
    shelf.store.save(
        SessionRecord(id="s1", cwd="/w", messages=records_of(QUESTION), history=[{}], journal_seq=2)
    )
    write_journal(shelf.directory, "s1", SESSION_INIT, message_event(0, QUESTION))
    assert len(shelf.search("parser")) == 1
    write_journal(shelf.directory, "s1", message_event(1, AssistantMessage("A parser?", id="m2")))
    assert [hit.message_id for hit in shelf.search("parser")] == ["m2", "m1"]


def test_a_damaged_session_does_not_keep_the_others_from_being_found(shelf: Shelf) -> None:
    shelf.put("s1", UserMessage("needle"))
    (shelf.directory / "s2.json").write_bytes(b"{")
    (shelf.directory / "s3.jsonl").write_bytes(bytes(100))
    assert shelf.find("needle") == ["s1"]


def test_all_of_a_long_message_is_searched(shelf: Shelf) -> None:
    shelf.put("s1", UserMessage("hay " * 50_000 + "needle" + " hay" * 50_000))
    (hit,) = shelf.search("needle")
    assert hit.snippet.startswith("…hay hay")
    assert "needle" in hit.snippet
    assert len(hit.snippet) < 170


def test_a_store_nobody_used_finds_nothing(shelf: Shelf) -> None:
    assert shelf.find("needle") == []
    assert not shelf.directory.exists()


def test_a_snippet_shows_the_words_in_their_surroundings() -> None:
    body = "a" * 100 + " the needle\nis here " + "b" * 300
    snippet = cut_snippet(body, ["nowhere", "NEEDLE"])
    assert snippet.startswith("…aaa")
    assert snippet.endswith("bbb…")
    assert "the needle is here" in snippet
    assert cut_snippet("short", ["nowhere"]) == "short"


@pytest.fixture(scope="module", autouse=True)
def _shared_shelf(tmp_path_factory: pytest.TempPathFactory) -> None:
    global _SHELF
    _SHELF = Shelf(tmp_path_factory.mktemp("shelf"), full_text=True)
    _SHELF.put("s1", UserMessage("a needle"))


_SHELF: Shelf
