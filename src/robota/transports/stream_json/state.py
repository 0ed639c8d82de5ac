"""Whether the session works, waits for an answer or has nothing to do, for hosts that want to know."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, TypeAlias
from uuid import uuid4

from robota.core.messages import JsonObject

READS = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
"""Set by the client itself: it hides these frames from the program around it."""
EMITS = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
"""Set by a program that wants to see them."""
State: TypeAlias = Literal["idle", "running", "requires_action"]


class StateTeller:
    """Tells of changes, each once."""

    def __init__(self, send: Callable[[JsonObject], None]) -> None:
        self._send = send
        self._state: State = "idle"
        self._shown = os.environ.get(EMITS, "").lower() in ("1", "true")
        self._wanted = self._shown or os.environ.get(READS) == "1"
        self.session_id = ""

    def tell(self, state: State) -> None:
        if state == self._state:
            return
        self._state = state
        if not self._wanted:
            return
        frame: JsonObject = {"type": "system", "subtype": "session_state_changed", "state": state}
        hidden = {} if self._shown else {"sdk_host_only": True}
        self._send({**frame, **hidden, "session_id": self.session_id, "uuid": str(uuid4())})

    def tell_waiting(self, waiting: bool) -> None:
        """For an answer of the host."""
        self.tell("requires_action" if waiting else "running")
