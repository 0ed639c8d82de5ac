"""The session in a front end, and what that has the command line do for it: other sessions, other providers,
a reset."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from robota.cli.chosen_provider import find_profile
from robota.cli.opening import provider_arguments, read_own_settings
from robota.cli.session_choice import SessionChoice, open_another
from robota.core.errors import ConfigurationError, RobotaError
from robota.providers.choice import ChosenProvider, open_choice
from robota.sdk.kept_sessions import SessionLockedError, create_project_session_store
from robota.sdk.view.status import read_status
from robota.transports.session_maker import SessionWish
from robota.tui.host import KeptSession

if TYPE_CHECKING:
    from robota.cli.assistant import Assistant
    from robota.cli.options import Options
    from robota.cli.questions import Questioner
    from robota.core.tool import ToolResult
    from robota.sdk.checkpoints import Checkpoint
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.view.model import Status
    from robota.sdk.view.shown_session import ShownSession


async def show(assistant: Assistant, options: Options, user: Questioner) -> tuple[int, InteractiveSession]:
    """The interface or line mode; its exit code, and the session that was shown at the end."""
    picks = options.resume == ""
    if picks:
        options = replace(options, resume=None)
    choice = SessionChoice(options)
    run = load_front_end(user)
    async with assistant.open(options, choice) as session:
        assert choice.chosen is not None  # the session has a provider
        if choice.resumed is not None and not options.fork:
            await take_over(session, "--fork-session")
        host = Host(session, options, choice.chosen)
        try:
            code = await run(
                session,
                host,
                first_prompt=options.prompt,
                pick_session=picks,
                recap=choice.resumed is not None,
            )
        finally:
            await host.close()
    return code, host.session


async def take_over(session: InteractiveSession, fork: str) -> None:
    """Have the journal of an earlier session before anybody types: one that is open elsewhere is refused,
    with how to `fork` it. What else is wrong is for the front end to show."""
    try:
        await (await session.ready()).open()
    except SessionLockedError as error:
        where = f"process {error.pid} on {error.host}" if error.pid else "another process"
        raise SessionLockedError(
            f"Session {session.session_id} is open in {where}: close it there, or begin a copy with {fork}.",
            pid=error.pid,
            host=error.host,
        ) from error
    except RobotaError:
        pass  # said by the front end, or with the first prompt


def load_front_end(user: Questioner) -> Callable[..., Awaitable[int]]:
    """The one that the terminal is fit for; its toolkit is loaded with it."""
    if user.has_screen:
        from robota.tui.app import run_terminal  # noqa: PLC0415 - loads the toolkit

        return run_terminal
    from robota.tui.lines import run_lines  # noqa: PLC0415 - does not

    return run_lines


class Host:
    """Keeps the session that is shown, until the interface has ended."""

    def __init__(self, session: InteractiveSession, options: Options, chosen: ChosenProvider) -> None:
        self.session = session
        self._options = options
        self._chosen = chosen
        self._store = None if options.no_save else create_project_session_store()
        self._providers = AsyncExitStack()

    def setting(self, name: str) -> Any:
        return None if self.session.is_ready_made else self.session.project.settings.get(name)

    def read_status(self, session: ShownSession) -> Status:
        return read_status(cast("InteractiveSession", session))  # those that we open are of this kind

    def stop_turn(self) -> None:
        self.session.abort()

    async def list_checkpoints(self) -> Sequence[Checkpoint]:
        return await self.session.kit.checkpoints.all()

    async def run_shell_line(self, command: str, hear: Callable[[str], None]) -> ToolResult:
        from robota.sdk.shell_line import run_shell_line  # noqa: PLC0415 - for those who type one

        return await run_shell_line(self.session, command, hear)

    async def list_sessions(self) -> Sequence[KeptSession]:
        known = [] if self._store is None else self._store.list(cwd=self.session.cwd)
        return [
            KeptSession.of(each) for each in known if not each.problem and each.id != self.session.session_id
        ]

    async def open_session(self, session_id: str | None, *, fork: bool = False) -> InteractiveSession:
        wish = SessionWish(cwd=os.getcwd(), resume=session_id, fork=fork)
        session = await open_another(self._options, self._chosen, wish)
        if session_id is not None and not fork:
            try:
                await take_over(session, f"robota -r {session_id} --fork-session")
            except SessionLockedError:
                await session.shutdown()
                raise
        await session.ready()
        before, self.session = self.session, session
        await before.shutdown("resume")
        return session

    async def list_models(self) -> Sequence[str]:
        return () if self._chosen.list_models is None else await self._chosen.list_models()

    async def use_provider(self, profile: str) -> str:
        settings = read_own_settings(os.environ)
        options = replace(self._options, provider=profile, model=None, base_url=None)
        given = provider_arguments(options, settings, _unsaid, None)
        choice = find_profile(given, settings.profiles)
        if choice is None:
            raise ConfigurationError(f"There is no provider profile {profile!r}: /provider list shows them.")
        chosen = await open_choice(choice, given)
        if isinstance(chosen.provider, AbstractAsyncContextManager):
            await self._providers.enter_async_context(chosen.provider)
        self.session.session.set_provider(chosen.provider, chosen.model)
        self._chosen = chosen
        return f"{profile} ({chosen.model}) answers from now on."

    async def reset_settings(self) -> str:
        from robota.cli.reset import delete_settings  # noqa: PLC0415 - rare

        return delete_settings()

    async def close(self) -> None:
        """Put the session away that is the present one by now, and the providers it was given."""
        await self.session.shutdown("prompt_input_exit")
        await self._providers.aclose()


def _unsaid(remark: str) -> None:
    """The answer says who answers."""
