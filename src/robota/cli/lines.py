"""Questions to the user on a plain terminal. What is shown in them is written out, not acted on."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from robota.cli.keyboard import Keyboard
from robota.cli.signals import Signalled
from robota.sdk.permission_prompt import describe_approval
from robota.sdk.view.neutral import visible

if TYPE_CHECKING:
    from robota.core.questions import PermissionQuestion
    from robota.sdk.interactive import InteractiveSession


class Questioner:
    """Asks the user on the terminal."""

    __slots__ = ("_keyboard", "has_screen")

    def __init__(self, keyboard: Keyboard, *, has_screen: bool = False) -> None:
        self._keyboard = keyboard
        self.has_screen = has_screen
        """Whether an interface takes over that asks by itself."""

    async def approve(self, request: PermissionQuestion) -> bool | str:
        """The question before a call; anything but a clear yes is a no, and a signal ends the turn."""
        lines = describe_approval(request)
        choices = "y/N"
        if request.rule:
            choices = "y/a/p/N"
            lines.append(
                f"  a: for this session also whatever fits {visible(request.rule)}; p: in this project"
            )
        print(*lines, sep="\n", file=sys.stderr, flush=True)
        seen = self._keyboard.signals.count
        await asyncio.sleep(0)  # an abort that waits for the loop comes before the question
        try:
            answer = self._keyboard.read_answer(f"Allow once? [{choices}] ", seen=seen)
        except Signalled as cause:
            self._keyboard.signals.act(cause.number)
            return False
        word = (answer or "").strip().lower()
        if request.rule and word in ("a", "always"):
            return "allow-session"
        if request.rule and word in ("p", "project"):
            return "allow-project"
        return word in ("y", "yes")

    async def offer_trust(self, session: InteractiveSession) -> None:
        """Ask once whether what the project's files want may act, and whether they may bring in files from
        elsewhere; anything but a clear yes is a no."""
        await session.ready()
        trust = session.project.trust
        if trust.asks:
            print(*map(visible, trust.describe()), sep="\n", file=sys.stderr, flush=True)
            if self._agrees("Trust this directory?"):
                await session.trust_project(trust)
        if question := session.describe_outside_imports():
            print(*map(visible, question), sep="\n", file=sys.stderr, flush=True)
            if self._agrees("Read these files, too?"):
                await session.allow_outside_imports()

    def _agrees(self, question: str) -> bool:
        answer = self._keyboard.read_answer(f"{question} [y/N] ")
        return (answer or "").strip().lower() in ("y", "yes")

    def ask(self, question: str) -> str | None:
        """A question of the start; a list of what can be answered may come before it."""
        return self._keyboard.read_answer("\n".join(map(visible, question.split("\n"))))

    def confirm(self, question: str) -> bool:
        """A question of the start, to which Enter alone is a yes."""
        answer = self._keyboard.read_answer(f"{visible(question)} [Y/n] ")
        return answer is not None and answer.strip().lower() in ("", "y", "yes")
