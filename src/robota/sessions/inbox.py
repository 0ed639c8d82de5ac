"""What the model should hear as soon as it can: between two rounds, or before a run ends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct, to_builtins

from robota.core.messages import Prompt, UserMessage, prompt_text, user_message
from robota.core.ports import Ports, timestamp
from robota.sessions.journal.records import InboxRecord
from robota.sessions.log import SessionLog

Origin: TypeAlias = Literal["steering", "reminder", "task", "command"]
"""Who wrote a message that is not the prompt; the engine and hooks have their own ways."""


KEPT = "keep"
"""In the metadata of messages whose words survive compactions."""


class Inbox(Struct, eq=False):
    """Messages that wait. Each is on record before it is delivered, so that a crash loses none."""

    _log: SessionLog
    _ports: Ports
    _known: set[str] = set()
    _waiting: list[InboxRecord] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def learn(self, records: Mapping[str, InboxRecord | None]) -> None:
        """What others have put into it: by id what waits, `None` for what was delivered."""
        self._known.update(records)
        own = [item for item in self._waiting if records.get(item.id, item) is item]
        new = [item for item in records.values() if item is not None]
        self._waiting = [*(item for item in new if item.id not in {each.id for each in own}), *own]

    def knows(self, id: str) -> bool:
        """Whether a message of that id was ever put into it."""
        return id in self._known

    def put(self, prompt: Prompt, *, origin: Origin = "steering", id: str = "", keep: bool = False) -> str:
        """Have the model told this as soon as it can be; the id of the message, under which it comes once.
        With `keep` its words stand behind every summary."""
        item = InboxRecord(id=id or self._ports.new_id(), origin=origin, keep=keep)
        if isinstance(prompt, str):
            item.prompt = prompt
        else:
            item.parts = to_builtins(tuple(prompt))
        if item.id not in self._known:
            self._known.add(item.id)
            self._waiting.append(item)
            self._log.when_open(partial(self._log.write, item))
        return item.id

    def find_waiting(self, origin: Origin) -> list[str]:
        """The words that wait, of those who write such messages."""
        return [prompt_text(item.read_prompt()) for item in self._waiting if item.origin == origin]

    def drain(self) -> list[UserMessage]:
        """Everything that waits, as messages."""
        waiting, self._waiting = self._waiting, []
        return [self._make_message(item) for item in waiting]

    def _make_message(self, item: InboxRecord) -> UserMessage:
        return user_message(
            item.read_prompt(),
            id=self._ports.new_id(),
            timestamp=timestamp(self._ports.now()),
            metadata={"origin": item.origin, "inbox": item.id} | ({KEPT: True} if item.keep else {}),
        )
