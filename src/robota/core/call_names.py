"""Ids of tool calls as the model sees them: each its own, even when a provider reused one."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from robota.core.messages import AssistantMessage


class CallNames(Struct, eq=False):
    renamed: dict[str, str] = {}
    """Calls of the last answer whose ids were used before, and what they are called instead."""
    _seen: dict[str, int] = {}

    def rename(self, message: AssistantMessage) -> AssistantMessage:
        """An answer with its calls under names that no earlier call has."""
        if not message.tool_calls:
            return message
        seen = self._seen
        repeated = [call.id for call in message.tool_calls if call.id in seen]
        for call in message.tool_calls:
            seen.setdefault(call.id, 1)  # first all of its own: no new name may hit one of them
        self.renamed = {used: self._unused(used) for used in repeated}
        if not repeated:
            return message
        calls = tuple(replace(call, id=self.renamed.get(call.id, call.id)) for call in message.tool_calls)
        return replace(message, tool_calls=calls)

    def _unused(self, wanted: str) -> str:
        seen = self._seen
        while True:
            seen[wanted] += 1
            other = f"{wanted}_{seen[wanted]}"
            if other not in seen:
                seen[other] = 1
                return other
