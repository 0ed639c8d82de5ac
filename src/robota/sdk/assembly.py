"""Puts a session together: provider, built-in tools, permissions, store. Front ends get theirs from here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.core.provider import Provider
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.robota import RunLimits
from robota.core.tool import Tool
from robota.sdk.sandbox import make_sandbox
from robota.sdk.workspace import Workspace
from robota.sessions.compaction.sections import OPEN_TODOS, CompactionSection
from robota.sessions.options import (
    CompactionOptions,
    HookOptions,
    JournalOptions,
    PermissionOptions,
    SessionOptions,
)
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.sessions.questions import PermissionHandler
from robota.sessions.redaction import Redactor
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore, SessionStorePort
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.edit import edit_tool
from robota.tools.builtins.glob import glob_tool
from robota.tools.builtins.grep import grep_tool
from robota.tools.builtins.read import read_tool
from robota.tools.builtins.todo import TodoList, todo_tool
from robota.tools.builtins.web_fetch import web_fetch_tool
from robota.tools.builtins.web_search import web_search_tool
from robota.tools.builtins.write import write_tool

if TYPE_CHECKING:
    from robota.sessions.start import SessionStart
    from robota.tools.sandbox.sandbox import SandboxMode

__all__ = [
    "LiveRules",
    "PermissionAnswer",
    "PermissionHandler",
    "PermissionQuestion",
    "PermissionRules",
    "Session",
    "SessionStore",
    "create_default_tools",
    "create_project_session_store",
    "create_session",
]

SYSTEM_MESSAGE = (
    "You are robota, a coding assistant in a terminal. Use the tools to look at the project before you "
    "answer, keep answers short, and say what you could not check. The working directory is {cwd}."
)

IDLE_SECONDS = 600.0
"""Longer than any model thinks without a word, and than a small machine reads a long prompt."""


def create_session(
    provider: Provider,
    *,
    model: str,
    rules: PermissionRules | None = None,
    cwd: str | None = None,
    approve: PermissionHandler | None = None,
    max_turns: int = 0,
    idle_timeout: float | None = IDLE_SECONDS,
    context_window: int | None = None,
    store: SessionStorePort | None = None,
    resume: str | SessionStart | None = None,
    on_problem: Callable[[str], None] | None = None,
    secrets: tuple[str, ...] = (),
    keep_variables: Sequence[str] = (),
    sandbox: SandboxMode = "auto",
    auto_allow_bash_if_sandboxed: bool = False,
) -> Session:
    """A session with the built-in tools, kept in `store` if there is one.

    `approve` asks a person; without it, what would be a question is denied. `resume` is an earlier
    session to go on with, or its id; `on_problem` is told, in a sentence each, what was damaged in that one
    and what was kept.
    `secrets` are values that must never be written anywhere, such as keys. `keep_variables` names credentials
    of the environment that commands and hooks may have. Commands run in a `sandbox` where one works;
    `auto_allow_bash_if_sandboxed` lets those that it confines run without a question.
    """
    where = working_directory() if cwd is None else cwd
    start = restore_session(store, resume, on_problem) if isinstance(resume, str) else resume
    live, todos = LiveRules(rules), TodoList() if start is None else _recall_todos(start)
    options = SessionOptions(
        permissions=PermissionOptions(rules=live, guard=Workspace(where, live)),
        hooks=HookOptions(keep_variables=keep_variables),
        limits=RunLimits(idle_timeout=idle_timeout),
        max_rounds=max_turns,
        context_window=context_window,
        compaction=CompactionOptions(
            sections=lambda: (CompactionSection(OPEN_TODOS, todos.open_text),),
        ),
        journal=JournalOptions(redactor=Redactor(secrets)),
    )
    return Session(
        provider=provider,
        model=model,
        tools=create_default_tools(
            live,
            todos,
            bash=bash_tool(
                keep_variables=keep_variables,
                sandbox=make_sandbox(sandbox, live, unasked=auto_allow_bash_if_sandboxed),
                auto_allow_bash_if_sandboxed=auto_allow_bash_if_sandboxed,
            ),
        ),
        system_message=SYSTEM_MESSAGE.format(cwd=where),
        cwd=where,
        store=store,
        permission_handler=approve,
        start=start,
        options=options,
    )


def _recall_todos(start: SessionStart) -> TodoList:
    """The list as the session was left with it."""
    from robota.sessions.compaction.kept_state import find_todos  # noqa: PLC0415 - for those who go on

    try:
        return TodoList.from_json(find_todos(start.messages))
    except ValueError:  # that of another tool
        return TodoList()


def restore_session(
    store: SessionStorePort | None, session_id: str, on_problem: Callable[[str], None] | None
) -> SessionStart:
    """An earlier session as it was left."""
    if not isinstance(store, SessionStore):
        raise ConfigurationError(f"Session {session_id} can be resumed only from the store it is kept in.")
    from robota.sessions.start import restore  # noqa: PLC0415 - for those who go on

    start = restore(store, session_id)
    if on_problem is not None:
        for problem in start.problems:
            on_problem(problem)
    return start


def create_project_session_store(base_dir: str | None = None) -> SessionStore:
    """Where the sessions of this user are kept; a project cannot move it."""
    return SessionStore(base_dir)


def working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise ConfigurationError(
            f"The working directory cannot be used ({error.strerror}): change to another one."
        ) from error


def create_default_tools(
    rules: LiveRules, todos: TodoList | None = None, *, bash: Tool | None = None
) -> Sequence[Tool]:
    """The built-in tools under these rules: files that may not be read do not appear in searches either.

    `bash` runs commands; if it is not given, in a sandbox where one works.
    """
    return (
        read_tool(),
        write_tool(),
        edit_tool(),
        glob_tool(path_filter=rules.path_filter),
        grep_tool(path_filter=rules.path_filter),
        bash_tool(sandbox=make_sandbox("auto", rules)) if bash is None else bash,
        web_fetch_tool(may_follow=rules.allows_url),
        web_search_tool(),
        todo_tool(todos),
    )
