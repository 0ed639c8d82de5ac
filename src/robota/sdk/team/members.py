"""Who can be in a team: agents, sessions and subagents, all asked in one way."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, convert

from robota.core.errors import RobotaError
from robota.core.messages import TokenUsage

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


class Answer(Protocol):
    """How a run of any of them ended."""

    @property
    def text(self) -> str: ...
    @property
    def error(self) -> Exception | None: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def usage(self) -> TokenUsage: ...


@runtime_checkable
class Submitting(Protocol):
    """A `Session` or an `InteractiveSession`."""

    def submit(self, prompt: str, /) -> Awaitable[Answer]: ...
    def abort(self) -> None: ...


@runtime_checkable
class Running(Protocol):
    """A `Robota`, or anything else that runs prompts."""

    def run(self, prompt: str, /) -> Awaitable[Answer]: ...
    def abort(self) -> None: ...


Member: TypeAlias = Submitting | Running


async def ask(member: Member, prompt: str) -> Answer:
    """One prompt and its answer; neither a failure nor an abort raises."""
    if isinstance(member, Submitting):  # first: the `run` of a session gives words alone
        return await member.submit(prompt)
    return await member.run(prompt)


class Said(Struct, frozen=True):
    """The answer of a subagent."""

    text: str = ""
    error: Exception | None = None
    interrupted: bool = False
    usage: TokenUsage = TokenUsage()


class Subagent:
    """An agent definition of a session, as a member: each prompt starts a new one, with the session's rights
    and out of its budget."""

    def __init__(self, session: InteractiveSession, name: str) -> None:
        self._session = session
        self._name = name

    async def run(self, prompt: str) -> Said:
        from robota.sdk.agents.runner import AgentTask  # noqa: PLC0415 - for those who have some

        await self._session.ready()
        outcome = await self._session.kit.subagents.run(AgentTask(agent=self._name, prompt=prompt))
        usage = convert(outcome.metadata.get("usage") or {}, TokenUsage)
        if outcome.success:
            return Said(outcome.output, usage=usage)
        return Said(outcome.output, error=RobotaError(outcome.error), usage=usage)

    def abort(self) -> None:
        """Whoever waits for it is cancelled, which ends it."""
