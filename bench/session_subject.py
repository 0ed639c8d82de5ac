"""What is measured of sessions: permissions, context, the whole journal and snapshots, as people use them."""

from __future__ import annotations

import os
import tempfile

from subject import TOOLS
from workload import FUNCTIONS, MODEL, PROMPT, SYSTEM

from robota.core import TextDelta
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions import JournalOptions, PermissionRules, Session, SessionOptions, SessionStore

ALLOWED = PermissionRules(allow=tuple(FUNCTIONS))


class SessionSubject:
    """`durable` waits for the disk where a power cut must not lose anything."""

    def __init__(self, base_url: str, *, durable: bool) -> None:
        self.provider = OpenAICompatibleProvider("none", base_url, MODEL)
        self.store = SessionStore(tempfile.mkdtemp(dir=os.environ.get("BENCH_DISK")))
        self.options = SessionOptions(
            permissions=ALLOWED, context_window=100_000_000, journal=JournalOptions(durable=durable)
        )

    def new_agent(self) -> Session:
        return Session(
            provider=self.provider,
            model=MODEL,
            tools=TOOLS,
            system_message=SYSTEM,
            cwd="/",
            store=self.store,
            options=self.options,
        )

    async def run(self, session: Session) -> tuple[int, int]:
        pieces: list[str] = []
        session.events.on(TextDelta, lambda event: pieces.append(event.text) if event.sequence else None)
        await session.run(PROMPT)
        return len(pieces), sum(map(len, pieces))

    async def close(self) -> None:
        # The files stay until the whole benchmark is over: ext4 takes its time to find a free inode among
        # those that were deleted within the last seconds.
        await self.provider.aclose()
