"""Several front ends on one session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from robota import InteractiveSession
from robota.core.events import QuestionAsked, QuestionClosed, TurnEvent
from robota.core.questions import PermissionQuestion, Question
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


class FrontEnd:
    """Sees events, and answers questions when it is told to."""

    def __init__(self, session: InteractiveSession) -> None:
        self.seen: list[tuple[int, str]] = []
        self.asked: list[Question] = []
        self.withdrawn = 0
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.was_asked = asyncio.Event()
        session.events.subscribe(self.see)
        session.questions.attach(self.ask)

    def see(self, event: TurnEvent) -> None:
        self.seen.append((event.seq, event.name))

    async def ask(self, question: Question) -> bool:
        self.asked.append(question)
        self.was_asked.set()
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.mark.parametrize("who", [0, 1])
async def test_both_see_the_same_and_either_may_answer(project: Path, tmp_path: Path, who: int) -> None:
    provider = ScriptedProvider([call("Write", file_path="a.txt", content="x")], "written")
    store = SessionStore(str(tmp_path / "sessions"))
    session = InteractiveSession(cwd=project, provider=provider, session_store=store)
    ends = [FrontEnd(session), FrontEnd(session)]
    turn = asyncio.create_task(session.submit("write it"))
    await asyncio.gather(*(end.was_asked.wait() for end in ends))

    ends[who].answer.set_result(True)

    assert (await turn).text == "written"
    assert ends[0].seen == ends[1].seen
    numbers = [number for number, name in ends[0].seen if name in ("question_asked", "question_closed")]
    assert numbers == sorted(set(numbers))
    names = [name for _, name in ends[0].seen]
    assert names.count(QuestionAsked.name) == names.count(QuestionClosed.name) == 1
    assert [len(end.asked) for end in ends] == [1, 1]
    assert ends[1 - who].withdrawn == 1
    assert isinstance(ends[0].asked[0], PermissionQuestion)

    late = [(event.seq, event.name) async for event in take(session, len(set(dict(ends[0].seen))))]
    told = dict(ends[0].seen)
    assert {number for number, _ in late} <= set(told)
    await session.shutdown()


async def take(session: InteractiveSession, count: int):  # type: ignore[no-untyped-def]
    follower = session.session.follow(after=0)
    for _ in range(count):
        yield await anext(follower)
    await follower.aclose()


async def test_an_abort_closes_the_question_for_both(project: Path) -> None:
    provider = ScriptedProvider([call("Write", file_path="a.txt", content="x")], "unused")
    session = InteractiveSession(cwd=project, provider=provider)
    ends = [FrontEnd(session), FrontEnd(session)]
    closed: list[QuestionClosed] = []
    session.events.on(QuestionClosed, closed.append)
    turn = asyncio.create_task(session.submit("write it"))
    await asyncio.gather(*(end.was_asked.wait() for end in ends))

    session.abort()

    assert (await turn).interrupted
    assert [(each.reason, each.answer) for each in closed] == [("aborted", None)]
    assert [end.withdrawn for end in ends] == [1, 1]
    assert not (project / "a.txt").exists()
    await session.shutdown()
