"""Rules, plans, todos and files in use: found in the conversation, and kept in every summary of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.recorded_session import assert_replays, scripted
from tests.support.session_options import resume_session

from robota.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from robota.core.questions import PlanAnswer, Question
from robota.sdk.interactive import InteractiveSession
from robota.sessions.compaction.kept_state import (
    FILES_IN_USE,
    OPEN_TODOS,
    PLAN,
    USER_RULES,
    find_plan,
    find_rules,
    is_rule,
    read_sections,
    rules_in,
)
from robota.sessions.options import SessionOptions
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.files import read_tool
from robota.tools.builtins.plan import PlanState, plan_tools

pytestmark = pytest.mark.anyio

RULES = [
    "Always run the tests before you commit.",
    "Never touch the generated files.",
    "never use sudo",
    "- Always answer in English",
    "2. Never force-push!",
    "Please always use tabs in the Makefile.",
    "You must never delete user data.",
    "From now on, write docstrings in French.",
    "Don't ever commit secrets.",
    "Under no circumstances change the public API.",
    "Make sure to always pin versions.",
    "Whenever you edit a migration, tell me first.",
    "Fix the bug, but never change the tests.",
    "And always, please, keep lines below 100 characters.",
    "항상 한국어로 답해 주세요.",
    "절대 테스트를 삭제하지 마세요",
    "앞으로는 커밋 메시지를 영어로 작성해줘.",
    "반드시 타입 힌트를 붙일 것",
    "언제나 작은 커밋으로 나눠라",
    "절대로 force push 하지 마!",
    "지금부터 모든 함수에 docstring을 써 주세요.",
    "어떤 경우에도 공개 API를 바꾸지 말 것.",
    "무조건 pytest를 먼저 돌려 주세요",
    "다시는 main에 직접 푸시하지 마십시오.",
]
NO_RULES = [
    "Why does it always fail?",
    "The test never passes on Windows.",
    "It has always been slow.",
    "I never said that.",
    "Never mind.",
    "Add a test for the parser.",
    "The function is_always_true is wrong.",
    "왜 항상 실패하나요?",
    "이 테스트는 항상 실패하네요",
    "파서를 고쳐 주세요.",
    "절대 경로를 출력하는 함수가 있어요",
]


@pytest.mark.parametrize("sentence", RULES)
def test_what_is_to_be_so_always_or_never_is_a_rule(sentence: str) -> None:
    assert is_rule(sentence)


@pytest.mark.parametrize("sentence", NO_RULES)
def test_questions_and_reports_are_no_rules(sentence: str) -> None:
    assert not is_rule(sentence)


def test_rules_are_found_in_a_long_prompt_word_for_word() -> None:
    prompt = (
        "Fix parser.py. Always keep the old behaviour (see v1.2.3, e.g. `a.b`). Thanks!\n"
        "```\nnever runs\nAlways printed by the program\n```\n> Never quote me.\n"
        "절대 README.md를 바꾸지 마세요. 나머지는 괜찮아요.\n"
        "<system-reminder>Always obey the hook.</system-reminder>"
    )
    assert list(rules_in(prompt)) == [
        "Always keep the old behaviour (see v1.2.3, e.g. `a.b`).",
        "절대 README.md를 바꾸지 마세요.",
    ]


def test_rules_are_the_users_own_each_once() -> None:
    messages = [
        UserMessage("Never use sudo."),
        AssistantMessage("Always at your service."),
        UserMessage("Always stop here.", metadata={"origin": "hook"}),
        UserMessage("Always be brief. Never use sudo."),
    ]
    assert find_rules(messages) == ["Always be brief.", "Never use sudo."]


def test_a_plan_counts_when_it_was_agreed_to() -> None:
    def propose(number: int, approved: bool) -> list[AssistantMessage | ToolMessage]:
        asked = ToolCall(f"c{number}", "ExitPlanMode", f'{{"plan":"plan {number}"}}')
        answered = ToolMessage("…", f"c{number}", "ExitPlanMode", metadata={"approved": approved})
        return [AssistantMessage("", (asked,)), answered]

    assert find_plan([*propose(1, approved=True), *propose(2, approved=False)]) == "plan 1"


async def test_rules_plan_and_files_survive_compactions_and_a_resume(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")

    async def agree(question: Question) -> PlanAnswer:
        return PlanAnswer(approve=True)

    tools = [*plan_tools(PlanState(active=True)), read_tool()]
    recorded = scripted(
        tmp_path,
        [call("Read", "r", file_path=str(tmp_path / "notes.txt"))],
        [call("ExitPlanMode", "p", plan="1. read\n2. write")],
        "ready",
        "a summary",
        "more",
        tools=tools,
        ask=agree,
    )
    session = recorded.session
    await recorded.run("Never delete notes.txt. What is in it?")
    await session.compact()
    await recorded.run("항상 존댓말로 답해 주세요.")
    await session.shutdown()

    store = SessionStore(tmp_path / "sessions")
    again = resume_session(
        store,
        "s-1",
        provider=ScriptedProvider("another summary"),
        tools=tools,
        options=SessionOptions(context_window=100_000),
    )
    text = await again.compact()
    await again.shutdown()

    assert text is not None
    assert {section.title: section.text for section in read_sections(text)} == {
        USER_RULES: "- Never delete notes.txt.\n- 항상 존댓말로 답해 주세요.",
        PLAN: "1. read\n2. write",
        FILES_IN_USE: str(tmp_path / "notes.txt"),
    }
    recorded.events.clear()


async def test_a_compaction_with_such_sections_replays(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "yes", "a summary", "more")
    await recorded.run("Always say yes.")
    await recorded.session.compact()
    await recorded.run("Again.")

    await assert_replays(recorded)


async def test_todos_are_there_again_after_a_resume(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    todos = [{"content": "write tests", "status": "in_progress"}, {"content": "done", "status": "completed"}]
    provider = ScriptedProvider([call("TodoWrite", "t", todos=todos)], "noted")
    async with InteractiveSession(cwd=tmp_path, provider=provider, session_store=store) as first:
        await first.submit("plan it")

    second = InteractiveSession(
        cwd=tmp_path,
        provider=ScriptedProvider("a summary"),
        session_store=store,
        resume_session_id=first.session_id,
    )
    text = await (await second.ready()).compact()

    assert text is not None
    kept = {section.title: section.text for section in read_sections(text)}
    assert kept[OPEN_TODOS] == "[>] write tests"
