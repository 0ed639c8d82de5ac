"""Puts a session together: provider, built-in tools, permissions, store. Front ends get theirs from here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.permissions import evaluate_permission
from robota.core.provider import Provider
from robota.core.robota import RunLimits
from robota.core.tool import Tool
from robota.sdk.workspace import Workspace
from robota.sessions.compaction.sections import OPEN_TODOS, CompactionSection
from robota.sessions.options import CompactionOptions, JournalOptions, PermissionOptions, SessionOptions
from robota.sessions.permissions.approval import ApprovalRequest, PermissionAnswer, PermissionHandler
from robota.sessions.permissions.rule_book import PermissionRules
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

__all__ = [
    "ApprovalRequest",
    "PermissionAnswer",
    "PermissionHandler",
    "PermissionRules",
    "Session",
    "SessionRequest",
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


class SessionRequest(Struct, frozen=True, kw_only=True):
    """What a front end wants of a session besides its model."""

    rules: PermissionRules = PermissionRules()
    cwd: str | None = None
    approve: PermissionHandler | None = None
    """Asks a person; without one, what would be a question is denied."""
    max_turns: int = 0
    idle_timeout: float | None = IDLE_SECONDS
    """Seconds a model call may be silent."""
    context_window: int | None = None
    store: SessionStorePort | None = None
    """Where the session is kept; `None` keeps it nowhere."""
    resume: str | None = None
    """The id of an earlier session to go on with."""
    on_problem: Callable[[str], None] | None = None
    """Told, in a sentence each, what was damaged in an earlier session and what was kept."""
    secrets: tuple[str, ...] = ()
    """Values that must never be written anywhere, such as keys."""


def create_session(provider: Provider, *, model: str, request: SessionRequest | None = None) -> Session:
    """A session with the built-in tools."""
    wanted = request or SessionRequest()
    where = working_directory() if wanted.cwd is None else wanted.cwd
    todos = TodoList()
    options = SessionOptions(
        permissions=PermissionOptions(rules=wanted.rules, guard=Workspace(where)),
        limits=RunLimits(idle_timeout=wanted.idle_timeout),
        max_rounds=wanted.max_turns,
        context_window=wanted.context_window,
        compaction=CompactionOptions(
            sections=lambda: (CompactionSection(OPEN_TODOS, todos.open_text),),
        ),
        journal=JournalOptions(redactor=Redactor(wanted.secrets)),
    )
    parts: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "tools": create_default_tools(wanted.rules, where, todos),
        "system_message": SYSTEM_MESSAGE.format(cwd=where),
        "cwd": where,
        "permission_handler": wanted.approve,
        "options": options,
    }
    if wanted.resume is None:
        return Session(store=wanted.store, **parts)
    if not isinstance(wanted.store, SessionStore):
        raise ConfigurationError(f"Session {wanted.resume} can be resumed only from the store it is kept in.")
    from robota.sessions.session_resume import resume_session  # noqa: PLC0415 - for those who go on

    return resume_session(wanted.store, wanted.resume, on_problem=wanted.on_problem, **parts)


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


def create_default_tools(rules: PermissionRules, cwd: str, todos: TodoList | None = None) -> Sequence[Tool]:
    """The built-in tools under these rules: files that may not be read do not appear in searches either."""

    def is_denied(path: str) -> bool:
        return evaluate_permission("Read", {"file_path": path}, deny=rules.deny, cwd=cwd) == "deny"

    def may_follow(url: str) -> bool:
        verdict = evaluate_permission(
            "WebFetch",
            {"url": url},
            mode=rules.mode,
            allow=rules.allow,
            deny=rules.deny,
            ask=rules.ask,
            cwd=cwd,
        )
        return verdict == "auto"

    denied = is_denied if rules.deny else None
    return (
        read_tool(),
        write_tool(),
        edit_tool(),
        glob_tool(denied=denied),
        grep_tool(denied=denied),
        bash_tool(),
        web_fetch_tool(may_follow=may_follow),
        web_search_tool(),
        todo_tool(todos),
    )
