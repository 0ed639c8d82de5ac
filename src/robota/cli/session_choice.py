"""Which session a call of the command works in: a new one, the last one here, or the one that was named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.sdk.assembly import (
    PermissionHandler,
    PermissionRules,
    Session,
    SessionStore,
    create_project_session_store,
    create_session,
    working_directory,
)

if TYPE_CHECKING:
    from robota.cli.main import Options
    from robota.cli.provider_choice import ChosenProvider


def open_session(
    options: Options,
    chosen: ChosenProvider,
    *,
    approve: PermissionHandler | None,
    on_problem: Callable[[str], None],
) -> Session:
    store = None if options.no_save else create_project_session_store()
    resume = options.resume
    if options.continue_last and resume is None:
        resume = last_session(store, working_directory())
    elif resume is not None and store is None:
        raise ConfigurationError("A session cannot be resumed with --no-save: leave one of the two out.")
    return create_session(
        chosen.provider,
        model=chosen.model,
        rules=PermissionRules(mode=options.mode, allow=options.allow, deny=options.deny),
        approve=approve,
        max_turns=options.max_turns,
        context_window=options.context_window or chosen.context_window,
        store=store,
        resume=resume,
        on_problem=on_problem,
        secrets=chosen.secrets,
        keep_variables=options.pass_env,
        sandbox=options.sandbox,
        auto_allow_bash_if_sandboxed=options.auto_allow,
    )


def last_session(store: SessionStore | None, cwd: str) -> str:
    """The id of the session in this directory that was used last."""
    known = [] if store is None else store.list(cwd=cwd)
    for summary in known:
        if not summary.problem:
            return summary.id
    raise ConfigurationError(f"There is no session to go on with in {cwd}: start one without --continue.")
