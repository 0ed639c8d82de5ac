"""`robota --attach`: this terminal on a session that `robota serve` has, beside whoever else is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from robota.cli.opening import read_own_settings
from robota.client import RemoteSession
from robota.client.connection import read_address
from robota.client.finding import list_sessions
from robota.core.errors import ConfigurationError, SessionBusyError
from robota.core.messages import Prompt
from robota.sdk.commands.registry import Command, CommandRegistry
from robota.sdk.commands.run import run_command
from robota.sdk.commands.slash import read_slash
from robota.sdk.execution import ExecutionResult
from robota.sdk.view.model import Status
from robota.sdk.view.neutral import neutral_line
from robota.tui.host import KeptSession

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.cli.questions import Questioner
    from robota.core.tool import ToolResult
    from robota.sdk.checkpoints import Checkpoint
    from robota.sdk.session_facts import SessionFacts
    from robota.sdk.settings.settings import Settings
    from robota.sdk.view.shown_session import ShownSession

DEFAULT_URL = "http://127.0.0.1:7070"
TOKEN = "ROBOTA_SERVE_TOKEN"
ELSEWHERE = "This terminal shows a session of another process:"


class HostCommands:
    """The commands of the host, as far as a terminal completes them; they run there."""

    name = "host"

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    def commands(self) -> Iterable[Command]:
        listed = self._session.list_commands()
        return [Command(name=each.name, description=each.description, source="host") for each in listed]


class AttachedSession(RemoteSession):
    """A session of a host, as a terminal shows it."""

    is_ready_made = False

    def __init__(self, url: str, token: str, session_id: str | None = None, **more: Any) -> None:
        super().__init__(url, token, session_id, client_name="terminal", **more)
        self.commands = CommandRegistry(HostCommands(self))

    async def submit(
        self,
        prompt: Prompt,
        display_input: str | None = None,
        raw_input: str | None = None,
        *,
        id: str = "",
    ) -> ExecutionResult[object]:
        """Commands that only a terminal has run here, everything else there."""
        line = read_slash(prompt, self.commands)
        if line is None or line.command.source == "host":
            return await super().submit(prompt, display_input, raw_input, id=id)
        answer = await run_command(cast("Any", self), line.command, line.args)
        return ExecutionResult(text=answer.message, command=answer)

    def describe_trust(self) -> list[str]:
        return [] if self.details.read_only else [*self.details.trust]

    async def trust_project(self) -> None:
        """The user agrees to what the host has shown."""
        answer = {"trust": True, "trustId": self.details.trust_id}
        try:
            await self._connection.call("POST", self._at("/trust"), answer)
        except SessionBusyError as error:  # somebody else was first, or the files want something else by now
            self.feed.notice(str(error))

    def describe_outside_imports(self) -> list[str]:
        return []

    async def allow_outside_imports(self) -> None:
        """`/trust imports` does it at the host."""


class AttachedHost:
    """Keeps the session that is shown; leaving it leaves it running."""

    def __init__(self, session: AttachedSession, url: str, token: str, settings: Settings) -> None:
        self.session = session
        self._url = url
        self._token = token
        self._settings = settings

    def setting(self, name: str) -> Any:
        return self._settings.get(name)

    def read_status(self, session: ShownSession) -> Status:
        shown = self.session
        context, details = shown.context_state, shown.details
        return Status(
            session_id=shown.session_id,
            cwd=neutral_line(details.cwd),
            name=neutral_line(details.name or ""),
            mode=shown.permission_mode,
            model=neutral_line(details.model or ""),
            provider=neutral_line(shown.feed.provider),
            used_tokens=context.used_tokens,
            max_tokens=context.max_tokens,
            context_percent=context.used_percentage,
            cost_usd=details.cost,
            messages=details.message_count or 0,
        )

    def stop_turn(self) -> None:
        """It goes on at the host."""

    async def list_sessions(self) -> Sequence[KeptSession]:
        known = await list_sessions(self._url, self._token)
        return [KeptSession.of(each) for each in known if each.id != self.session.session_id]

    async def list_checkpoints(self) -> Sequence[Checkpoint]:
        raise ConfigurationError(f"{ELSEWHERE} /rewind list shows what it can go back to.")

    async def run_shell_line(self, command: str, hear: Callable[[str], None]) -> ToolResult:
        raise ConfigurationError(f"{ELSEWHERE} run commands of your own where it runs.")

    async def open_session(self, session_id: str | None, *, fork: bool = False) -> AttachedSession:
        session = AttachedSession(self._url, self._token, session_id)
        await session.ready()
        before, self.session = self.session, session
        await before.shutdown()
        return session

    async def list_models(self) -> Sequence[str]:
        return ()  # the provider is that of the host

    async def use_provider(self, profile: str) -> str:
        raise ConfigurationError(f"{ELSEWHERE} its provider is chosen there.")

    async def reset_settings(self) -> str:
        raise ConfigurationError(f"{ELSEWHERE} its settings are reset there.")

    async def close(self) -> None:
        await self.session.shutdown()


async def show_attached(options: Options, user: Questioner) -> int:
    """The interface or line mode on a session of a host, until somebody leaves; the exit code."""
    from robota.cli.front_end import load_front_end  # noqa: PLC0415 - loads whatever a session needs

    url, token, named = read_address(options.attach or DEFAULT_URL, os.environ.get(TOKEN, ""))
    chosen = named or await choose_session(options, url, token)
    run = load_front_end(user)
    session = AttachedSession(url, token, chosen, name=options.name, model=options.model)
    host = AttachedHost(session, url, token, read_own_settings(os.environ))
    try:
        await session.ready()
        picks = options.resume == ""
        return await run(session, host, first_prompt=options.prompt, pick_session=picks, recap=True)
    finally:
        await host.close()


async def choose_session(options: Options, url: str, token: str) -> str | None:
    """By id or name; else the one that was used last of those that are open there; else a new one."""
    known = await list_sessions(url, token)
    if not options.resume:
        open_there = [each for each in known if each.state != "stored"]
        wanted = known if options.continue_last else open_there
        return wanted[0].id if wanted else None
    for each in known:
        if options.resume in (each.id, each.name) or each.id.startswith(options.resume):
            return each.id
    raise ConfigurationError(f"The host at {url} has no session {options.resume!r}{_name_some(known)}.")


def _name_some(known: Sequence[SessionFacts]) -> str:
    names = [neutral_line(each.name or each.id) for each in known[:3]]
    return f"; it has {', '.join(names)}" if names else ""
