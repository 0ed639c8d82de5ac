"""An agent for a program that starts it, sends it prompts and stops it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from robota.core.closing import Closing
from robota.core.errors import ConfigurationError
from robota.core.events import TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from robota.core.messages import Prompt
    from robota.core.provider import Provider
    from robota.sdk.execution import ExecutionResult
    from robota.sdk.interactive import InteractiveSession


class ProgrammaticAgent(Closing):
    """A transport whose other end is the code that holds it; also an async context manager."""

    name = "programmatic"

    def __init__(self) -> None:
        self._session: InteractiveSession | None = None

    @property
    def session(self) -> InteractiveSession:
        """For all that this has no word for: events, questions, commands."""
        if self._session is None:
            raise ConfigurationError("This agent has no session: session.attach_transport(agent) first.")
        return self._session

    def attach(self, session: InteractiveSession) -> None:
        self._session = session

    async def start(self) -> None:
        """Read the project's files, so that the first prompt need not wait for it."""
        await self.session.ready()

    async def send(self, prompt: Prompt, **options: Any) -> ExecutionResult[Any]:
        """Take one prompt to its end; `options` are those of `InteractiveSession.submit`."""
        return await self.session.submit(prompt, **options)

    def stream(self, prompt: Prompt, **options: Any) -> AsyncGenerator[TurnEvent, None]:
        """The same, as the events of the turn."""
        return self.session.stream(prompt, **options)

    async def stop(self) -> None:
        """Stop what runs, save the session and close it."""
        if self._session is not None:
            await self._session.shutdown()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def aclose(self) -> None:
        await self.stop()


def create_programmatic_agent(
    *, provider: Provider, cwd: str | os.PathLike[str] | None = None, **options: Any
) -> ProgrammaticAgent:
    """An agent in a directory; `options` are those of `InteractiveSession`."""
    from robota.sdk.interactive import InteractiveSession  # noqa: PLC0415 - with the first agent

    agent = ProgrammaticAgent()
    InteractiveSession(provider=provider, cwd=cwd, **options).attach_transport(agent)
    return agent
