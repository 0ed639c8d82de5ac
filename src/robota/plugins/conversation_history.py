"""`ConversationHistoryPlugin`: the conversations of an agent, kept beside its session or without one."""

from __future__ import annotations

from collections import deque
from typing import Unpack

import msgspec

from robota.core.errors import PluginError
from robota.core.messages import Json, JsonObject, Message
from robota.core.plugin import PluginCategory, PluginPriority
from robota.core.run import RunResult
from robota.plugins.options import (
    STORAGE_STRATEGIES,
    StorageOptions,
    check_number,
    check_strategy,
    make_storage,
)
from robota.plugins.recording import RecordingPlugin
from robota.plugins.records import Records


class ConversationHistoryPlugin(RecordingPlugin):
    """Keeps the latest messages of the latest conversations, by their ids.

    A conversation of a session has the id of the session, that of a subagent its agent id behind a slash, and
    that of an agent without a session the agent's own.
    """

    name = "conversation-history"
    category: PluginCategory = "storage"
    priority = PluginPriority.HIGH

    def __init__(
        self,
        *,
        strategy: str = "memory",
        max_conversations: int = 100,
        max_messages: int = 1000,
        save_interval: float = 30.0,
        auto_save: bool = True,
        **where: Unpack[StorageOptions],
    ) -> None:
        """Without `auto_save` nothing is written before `save()`; times are seconds."""
        known = ("memory", *(name for name in STORAGE_STRATEGIES if name != "remote"))
        strategy = check_strategy(self.name, strategy, known)
        limit = check_number(self.name, "max_conversations", max_conversations, least=1, whole=True)
        self._max_messages = check_number(self.name, "max_messages", max_messages, least=1, whole=True)
        self._limit, self._auto_save = limit, auto_save
        self.records = Records(
            self.name,
            make_storage(self.name, strategy, limit, where),
            limit=limit,
            batch=2 * limit,  # runs end with a save; what is between waits for the interval
            interval=check_number(self.name, "save_interval", save_interval, above=True),
        )
        self._kept: dict[str, deque[Message]] = {}
        """Shared with those that watch subagents; the latest used last."""
        self._changed: set[str] = set()

    @property
    def conversation_id(self) -> str:
        context = self.context
        if not context.session_id:
            return context.conversation_id()
        return f"{context.session_id}/{context.agent_id}" if context.agent_id else context.session_id

    async def on_message_added(self, message: Message) -> None:
        name = self.conversation_id
        messages = self._kept.pop(name, None)
        if messages is None:
            messages = deque(maxlen=self._max_messages)
        messages.append(message)
        self._kept[name] = messages
        self._changed.add(name)
        while len(self._kept) > self._limit:
            oldest = next(iter(self._kept))
            self._note(oldest)
            del self._kept[oldest]

    async def after_run(self, result: RunResult) -> None:
        if self._auto_save:
            self._note(self.conversation_id)

    async def dispose(self) -> None:
        if self._auto_save:
            self._note_all()
        await super().dispose()

    def _note(self, name: str) -> None:
        if name in self._changed and self.records.storage is not None:
            messages, now = self._kept[name], self.context.ports.now
            self.records.put(lambda: {"id": name, "savedAt": now(), "messages": list(messages)}, name)
        self._changed.discard(name)

    def _note_all(self) -> None:
        for name in list(self._changed):
            self._note(name)

    # --- for programs -----------------------------------------------------------------------------------

    async def save(self) -> None:
        """Write everything now; `PluginError` when the storage does not take it."""
        self._note_all()
        await self.records.flush()
        if self.records.trouble:
            raise PluginError(self.records.trouble, plugin_name=self.name)

    async def conversations(self) -> list[str]:
        """The ids of all that are kept, the oldest first."""
        stored = [] if self.records.storage is None else await self.records.read()
        return list(dict.fromkeys([*(entry.key for entry in stored), *self._kept]))

    async def load(self, conversation_id: str) -> list[Message]:
        """The messages of a conversation, for `Robota(messages=…)`; none of one that is not kept."""
        known = self._kept.get(conversation_id)
        if known is not None:
            return list(known)
        stored = [] if self.records.storage is None else await self.records.read()
        found = next((entry.value for entry in stored if entry.key == conversation_id), None)
        try:
            return [] if found is None else msgspec.convert(found["messages"], list[Message])
        except (msgspec.ValidationError, KeyError) as error:
            raise PluginError(
                f"The conversation {conversation_id} cannot be read: {error}.", plugin_name=self.name
            ) from error

    async def delete(self, conversation_id: str) -> bool:
        """Forget a conversation; false when there was none."""
        self._changed.discard(conversation_id)
        known = self._kept.pop(conversation_id, None) is not None
        if self.records.storage is None:
            return known
        await self.records.flush()
        return await self.records.storage.remove(conversation_id) or known

    def get_data(self) -> list[JsonObject]:
        """The conversations in memory."""
        return [
            {"id": name, "messages": msgspec.to_builtins(list(messages))}
            for name, messages in self._kept.items()
        ]

    def get_stats(self) -> dict[str, Json]:
        counted = {"conversations": len(self._kept), "messages": sum(map(len, self._kept.values()))}
        return super().get_stats() | counted
