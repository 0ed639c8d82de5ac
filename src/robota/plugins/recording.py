"""What the plugins that keep something have in common."""

from __future__ import annotations

from copy import copy
from typing import Self

from robota.core.messages import Json, JsonObject
from robota.core.plugin import Plugin
from robota.plugins.records import Records


class RecordingPlugin(Plugin):
    """Keeps records. Subagents are watched by copies that keep theirs in the same place."""

    records: Records
    _is_copy = False

    @property
    def enabled(self) -> bool:
        return self.records.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self.records.enabled = enabled

    async def initialize(self, agent_name: str) -> None:
        self.records.bind(self.context)

    async def dispose(self) -> None:
        if self._is_copy:
            self.records.hurry()  # a subagent has ended, and whoever waits for it must not wait for a disk
        else:
            await self.records.aclose()

    def for_child(self, agent_id: str) -> Self:
        child = copy(self)
        child._is_copy = True
        child.begin()
        return child

    def begin(self) -> None:
        """Forget the run under way: a copy watches others."""

    def origin(self) -> JsonObject:
        """What every record begins with: when it was, and whose it is."""
        context = self.context
        whose = {"sessionId": context.session_id, "agentId": context.agent_id}
        return {"timestamp": context.ports.now(), **{name: value for name, value in whose.items() if value}}

    def get_data(self) -> list[JsonObject]:
        """The latest records."""
        return list(self.records.latest)

    async def flush(self) -> None:
        """Write what waits."""
        await self.records.flush()

    async def read(self) -> list[JsonObject]:
        """Everything that is kept, wherever that is."""
        return [entry.value for entry in await self.records.read()]

    def get_stats(self) -> dict[str, Json]:
        records = self.records
        kept: dict[str, Json] = {"entries": len(records.latest)}
        if records.storage is not None:
            kept |= {
                "written": records.written,
                "waiting": records.waiting,
                "dropped": records.dropped,
                "writeFailures": records.failures,
                "trouble": records.trouble,
            }
        return super().get_stats() | kept
