"""A command that the user runs in the session, as `!git status` in a terminal.

It is run by the session's own Bash: in its directory, confined and with its variables. Deny rules and hooks
bind it as they bind the model; nobody is asked, because whoever typed it has decided. The model sees the
command and what it printed with the next prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.bus import EventBus
from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import JsonObject, ToolCall
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall
from robota.sdk.timeline import DISPLAY, SHELL_LINE
from robota.sessions.changes import inject, make_injected
from robota.sessions.options import permission_options
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
from robota.sessions.questions import Questions

if TYPE_CHECKING:
    from robota.core.questions import Question
    from robota.sdk.interactive import InteractiveSession
    from robota.sessions.session import Session

TOLD = "The user ran a command:\n<command>\n{command}\n</command>\n<output>\n{output}\n</output>"


async def run_shell_line(
    host: InteractiveSession, command: str, progress: Callable[[str], None] | None = None
) -> ToolResult:
    """Run it and tell the model, also if it is cancelled; `progress` hears what it prints."""
    session = await host.ready()
    tool = session.agent.toolset.tools.get("Bash")
    if tool is None:
        raise ConfigurationError("This session has no Bash tool, so it runs no commands.")
    arguments: JsonObject = {"command": command}
    request = ToolCall("", "Bash", encode(arguments).decode())
    call = PreparedCall(index=0, call_id="", request=request, tool=tool, arguments=arguments)
    context = ToolContext(
        tool_name="Bash", session_id=session.session_id, cwd=session.cwd, progress=progress or _unheard
    )
    output = "The user stopped it before it had ended."
    try:
        result = await _enforcer(session).run_tool(call, context)
        output = result.content if result.ok else result.error or "It could not be run."
    finally:
        told = make_injected(session, "user", TOLD.format(command=command, output=output))
        inject(session, replace(told, metadata={"origin": SHELL_LINE, DISPLAY: f"!{command}"}))
    return result


def _enforcer(session: Session) -> PermissionEnforcer:
    typed = Questions(EventBus())
    typed.attach(_typed_it)
    return PermissionEnforcer(
        replace(permission_options(session.options.permissions), rules=session.rules),
        cwd=session.cwd,
        questions=typed,
        hooks=session.hooks,
        log=_Log(session),
        agent_id=session.options.agent_id,
    )


def _unheard(text: str) -> None:
    """Nobody watches."""


async def _typed_it(question: Question) -> bool:
    return True


class _Log:
    """The command is on record with what the model is told of it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def notice(self, sentence: str) -> None:
        self._session.log.notice(sentence)

    def record_decision(self, decision: JsonObject) -> None:
        """The user's own, and no run is about it."""

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """What hooks changed is what the model is told."""

    async def before_effects(self, call: PreparedCall) -> None:
        await self._session.log.before_effects(call)
