"""The plugins of a session's agent: closed with the session, while it can still tell what went wrong."""

from __future__ import annotations

from robota.core.robota import Robota


class Plugins:
    """Owned by a session."""

    def __init__(self, agent: Robota) -> None:
        self._agent = agent

    async def __aenter__(self) -> None:
        """They are initialized with the first run."""

    async def __aexit__(self, *_: object) -> None:
        await self._agent.chain.dispose()
