"""Random lives of a session: whatever happens, the journal tells what memory knows."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio
from tests.support.cancel import AwaitCounter
from tests.support.forms import some_of
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import RobotaError
from robota.core.hooks import HookOutcome
from robota.core.messages import HistoryEntry, Json, UserMessage
from robota.core.provider import ChatRequest
from robota.sessions.changes import rewind, take_back_rewind
from robota.testing import Delay, Fail, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

TOO_LONG = RobotaError("prompt is too long")


@tool
async def work(times: int) -> str:
    """Take a while."""
    for _ in range(times):
        await asyncio.sleep(0)
    if times == 3:
        raise ValueError("three is too much")
    return f"done {times}" * times


class RandomHooks:
    """Hooks for everything, with something to say now and then."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def has(self, event: str) -> bool:
        return True

    async def fire(
        self, event: str, hook_input: Mapping[str, Json], *, call_id: str = "", matches_rule: Any = None
    ) -> HookOutcome:
        await asyncio.sleep(0)
        rng = self.rng
        return HookOutcome(
            event=event,
            blocked=event in ("Stop", "UserPromptSubmit", "PreToolUse", "PreCompact") and rng.random() < 0.15,
            reason="because",
            stdout="a word" if rng.random() < 0.3 else "",
            additional_context=("more",) if rng.random() < 0.2 else (),
            updated_output="changed" if event == "PostToolUse" and rng.random() < 0.3 else None,
            stop=event == "PostToolUse" and rng.random() < 0.1,
        )


class RandomLife:
    def __init__(self, home: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.calls = 0
        home.mkdir()
        self.studio = self.begin(home)

    def begin(self, home: Path, **more: Any) -> Studio:
        provider = ScriptedProvider(self.reply, repeat=True)
        options = {"tools": [work], "hook_port": RandomHooks(self.rng), "handler": self.answer, **more}
        return Studio(home, provider=provider, context_window=3_000, **options)

    async def answer(self, request: object) -> bool | str:
        await asyncio.sleep(0)
        return self.rng.choice([True, True, False, "allow-session"])

    def reply(self, request: ChatRequest) -> list[Any]:
        rng = self.rng
        pieces: list[Any] = [
            rng.choice(["word ", Delay(0), "x" * rng.randint(1, 400)]) for _ in range(rng.randint(0, 6))
        ]
        if rng.random() < 0.4 and request.tools:
            for _ in range(rng.randint(1, 3)):
                self.calls += 1
                name = rng.choice(["work", "work", "work", "unknown"])
                pieces.append(call(name, rng.choice(["same", f"c{self.calls}"]), times=rng.randint(0, 3)))
        if rng.random() < 0.1:
            pieces.append(Fail(rng.choice([TOO_LONG, ConnectionError("cut")])))
        return pieces

    async def step(self) -> None:
        session, rng = self.studio.session, self.rng
        await session.open()
        kind = rng.choice(
            ["run"] * 6
            + ["compact", "inject", "entry", "clear", "name", "model", "mode", "resume"]
            + ["rewind", "rewind", "back"]
        )
        if kind in ("run", "compact"):
            await self.run_cut(
                session.compact if kind == "compact" else lambda: session.run("go " * rng.randint(1, 99))
            )
        elif kind == "inject":
            session.inject_message(rng.choice(["user", "assistant", "system"]), "put in")  # type: ignore[arg-type]  # one of them
        elif kind == "entry":
            session.add_history_entry(HistoryEntry(category="event", type="note", data={"n": 1}))
        elif kind == "clear" and rng.random() < 0.4:
            session.clear_history()
        elif kind == "rewind":
            prompts = [at for at, message in enumerate(session.messages) if isinstance(message, UserMessage)]
            if prompts:
                rewind(session, rng.choice(prompts))
        elif kind == "back":
            take_back_rewind(session)
        elif kind == "name":
            session.name = rng.choice([None, "a", "b"])
        elif kind == "model":
            session.model = rng.choice(["one", "two"])
        elif kind == "mode":
            session.permission_mode = rng.choice(["default", "plan", "bypassPermissions"])
        elif kind == "resume" and self.studio.path.exists():
            await session.shutdown()
            self.studio = self.begin(self.studio.home, conversation=self.studio.restored().conversation)

    async def run_cut(self, work: Any) -> None:
        """Run it, and sometimes abort it or cancel it on the way."""
        rng, session = self.rng, self.studio.session
        counter: AwaitCounter
        cut = rng.choice([session.abort, lambda: counter.task.cancel(), None, None])
        counter = AwaitCounter(rng.randint(1, 30), cut or (lambda: None))
        await counter.run(work)
        with contextlib.suppress(RobotaError, ConnectionError, asyncio.CancelledError):
            counter.task.result()

    def check(self) -> None:
        studio = self.studio
        assert not studio.session.is_running
        conversation = studio.session.agent.conversation
        assert_valid_for_a_request(conversation.messages_for_api())
        if not studio.path.exists():
            return
        restored = studio.restored()
        assert restored.problems == ()
        assert restored.messages == studio.session.messages
        assert [entry.id for entry in restored.history] == [entry.id for entry in studio.session.history]
        assert list(restored.conversation.messages_for_api()) == list(conversation.messages_for_api())
        assert restored.conversation.aside == conversation.aside
        assert studio.log().problems == ()


@pytest.mark.parametrize("seed", some_of(range(40)))
async def test_the_journal_and_memory_agree_after_every_step(tmp_path: Path, seed: int) -> None:
    life = RandomLife(tmp_path / "life", seed)
    for _ in range(12):
        await life.step()
        life.check()
    await life.studio.session.shutdown()
    life.check()
