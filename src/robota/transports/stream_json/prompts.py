"""The prompts of a host: read from its lines, waiting for their turn, answered."""

from __future__ import annotations

import asyncio
from collections import deque

from msgspec import Struct

from robota.core.errors import ValidationError
from robota.core.messages import JsonObject, Prompt
from robota.transports.blocks import read_prompt

REMEMBERED = 64
"""So many answered prompts may come again without running again."""


class QueuedPrompt(Struct, frozen=True):
    prompt: Prompt
    uuid: str
    verbatim: bool
    problem: str = ""
    """Why no model can be asked this."""


def read_prompt_frame(frame: JsonObject) -> QueuedPrompt:
    message = frame.get("message")
    if not isinstance(message, dict):
        raise ValidationError("A user frame needs `message`, an object with `content`.")
    prompt: Prompt = ""
    problem = ""
    try:
        prompt = read_prompt(message.get("content"))
    except ValidationError as error:
        problem = str(error)  # costs this turn, and not the conversation
    uuid = frame.get("uuid")
    known = uuid if isinstance(uuid, str) else ""
    return QueuedPrompt(prompt, known, frame.get("client_composed") is True, problem)


class WaitingPrompts:
    def __init__(self) -> None:
        self._waiting: deque[QueuedPrompt] = deque()
        self._answered: deque[tuple[str, JsonObject]] = deque(maxlen=REMEMBERED)
        """The results of prompts; one that is sent again is not run again."""
        self._more = asyncio.Event()
        self._ended = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, prompt: QueuedPrompt) -> None:
        self._waiting.append(prompt)
        self._more.set()

    def end(self) -> None:
        """No more prompts can come."""
        self._ended = True
        self._more.set()

    async def next(self) -> QueuedPrompt | None:
        """Wait for the next prompt; `None` when there are none and none can come."""
        while not self._waiting:
            if self._ended:
                return None
            self._more.clear()
            await self._more.wait()
        return self._waiting.popleft()

    def ids(self) -> list[str]:
        return [each.uuid for each in self._waiting if each.uuid]

    def take_back(self, uuid: str) -> bool:
        """Whether the prompt of that name still waited; it is not run then."""
        kept = deque(each for each in self._waiting if each.uuid != uuid)
        found, self._waiting = len(kept) < len(self._waiting), kept
        return found

    def keep_answer(self, uuid: str, result: JsonObject) -> None:
        self._answered.append((uuid, result))

    def answer_to(self, uuid: str) -> JsonObject | None:
        return dict(self._answered).get(uuid)
