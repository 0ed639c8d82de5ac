"""Commands inside skills: judged, confined and run exactly as the calls of the Bash tool are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject, ToolCall
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall
from robota.sdk.skills.skill import Skill, SkillError
from robota.sessions.hooks import LiveHooks
from robota.sessions.options import permission_options
from robota.sessions.permissions.live_rules import Loan
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
from robota.tools.builtins.bash import NO_OUTPUT

if TYPE_CHECKING:
    from robota.core.hooks.outcome import HookOutcome
    from robota.sessions.session import Session

_COMPARING = frozenset(
    (
        "ack",
        "ag",
        "cmp",
        "comm",
        "diff",
        "egrep",
        "fgrep",
        "find",
        "grep",
        "pgrep",
        "rg",
        "test",
        "[",
        "[[",
        "zgrep",
    )
)
"""Programs that end with 1 when they found nothing, or a difference."""
_COMPARING_GIT = frozenset(("diff", "grep"))


class SkillShell:
    """Runs the commands of one skill. `asks`: whether a person may be asked about them; a model's call of a
    skill is an answer in itself, and what it may not do it is told."""

    def __init__(self, session: Session, skill: Skill, loan: Loan, *, asks: bool) -> None:
        self._session = session
        self._skill = skill
        self._rules = session.rules.lending(loan)
        self.decisions: list[JsonObject] = []
        """What was run or refused, and who decided."""
        self._heard: list[Json] = []
        permissions, hooks = permission_options(session.options.permissions), session.hooks
        self._enforcer = PermissionEnforcer(
            replace(permissions, rules=self._rules),
            cwd=session.cwd,
            questions=session.questions if asks else None,
            hooks=hooks.heard_by(self._hear) if isinstance(hooks, LiveHooks) else hooks,
            log=self,
            agent_id=session.options.agent_id,
        )

    async def run(self, command: str) -> str:
        """The output of a command."""
        if self._skill.shell != "bash":
            raise self._stopped(command, f"it is for {self._skill.shell!r}, and there is only bash here.")
        tool = self._session.agent.toolset.tools.get("Bash")
        if tool is None:
            raise self._stopped(command, "there is no Bash tool in this session.")
        arguments: JsonObject = {"command": command, "description": f"For the skill {self._skill.name}"}
        request = ToolCall("", "Bash", encode(arguments).decode())
        call = PreparedCall(index=0, call_id="", request=request, tool=tool, arguments=arguments)
        context = ToolContext(tool_name="Bash", session_id=self._session.session_id, cwd=self._session.cwd)
        result = await self._enforcer.run_tool(call, context)
        self._session.rules.grant(self._rules.granted)  # a yes for the session counts in the session
        self.decisions[-1]["command"] = command
        if not result.ok:
            raise self._stopped(command, result.error or "it could not be run.")
        code = result.metadata.get("exitCode", 0)
        self.decisions[-1]["exitCode"] = code
        if code and not (code == 1 and is_comparison(command)):
            raise self._stopped(command, f"it ended with exit code {code}.\n{result.content}")
        return _output(result, code)

    def _stopped(self, command: str, why: str) -> SkillError:
        return SkillError(f"The skill {self._skill.name!r} was stopped at its command `{command}`: {why}")

    # --- the log of the enforcer ------------------------------------------------------------------------

    def notice(self, sentence: str) -> None:
        self._session.log.notice(sentence)

    def record_decision(self, decision: JsonObject) -> None:
        heard, self._heard = self._heard, []
        self.decisions.append({"decision": decision["decision"], "by": decision["by"], "hooks": heard})

    def _hear(self, outcome: HookOutcome, call_id: str) -> None:
        """No run is about these, so they are on record with the command."""
        self._heard.append(outcome.event)
        for text in (*outcome.warnings, *outcome.system_messages):
            self.notice(text)

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """What hooks changed goes into the prompt, which is on record."""

    async def before_effects(self, call: PreparedCall) -> None:
        await self._session.log.before_effects(call)


def is_comparison(command: str) -> bool:
    """Whether the last program of a command ends with 1 to answer a question."""
    from robota.core.shell.grammar import parse_shell  # noqa: PLC0415 - for skills that run commands
    from robota.core.shell.script import ShellSyntaxError  # noqa: PLC0415

    try:
        commands = parse_shell(command).commands
    except ShellSyntaxError:
        return False
    words = [word.text for word in commands[-1].words] if commands else []
    program = words[0].rpartition("/")[2] if words else ""
    return program in _COMPARING or (program == "git" and len(words) > 1 and words[1] in _COMPARING_GIT)


def _output(result: ToolResult, code: object) -> str:
    content = result.content.partition(f"\n[exit code {code}]")[0] if code else result.content
    return "" if content == NO_OUTPUT else content
