"""Hooks that ask a model: `prompt` in one call, `agent` with tools to look around.

Both answer `{"ok": true}` or `{"ok": false, "reason": …}`. Where a hook's output is meant for the session's
model, any other text is context for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from robota.core.hooks.definition import HookDefinition
from robota.core.hooks.executors import read_ok_answer
from robota.core.hooks.outcome import HookResult
from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.core.plain_text import clip
from robota.core.robota import AgentConfig, Robota
from robota.core.structured import without_fence
from robota.core.tool import Tool, ToolContext, ToolResult, tool_class
from robota.core.tool_call import PreparedCall, invoke_tool
from robota.sdk.agents.model_choice import choose_model
from robota.sessions.options import permission_options
from robota.sessions.permissions.judgement import RuleJudge

if TYPE_CHECKING:
    from robota.sessions.session import Session

AGENT_TURNS = 50
_ARGUMENTS = "$ARGUMENTS"
_FOR_MODEL = frozenset({"SessionStart", "UserPromptSubmit"})
SYSTEM_MESSAGE = (
    "You judge an event in a coding session for a hook. Answer with one JSON object and nothing else: "
    '{"ok": true} to let it pass, or {"ok": false, "reason": "one sentence"} to stop it.'
)
_DENIED = "This hook may only look at what the rules of the session allow without a question."


class ModelExecutor:
    """What both kinds have in common: a question, a model, an answer in JSON."""

    def __init__(self, kind: str, session: Callable[[], Session], *, tools: bool = False) -> None:
        self.type = kind
        self._session = session
        self._has_tools = tools
        self._told: set[str] = set()

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        session = self._session()
        provider = session.admission.admit_for("hook", session.agent.provider)
        model, notice = choose_model(hook.model, session)
        if notice and notice not in self._told:
            self._told.add(notice)
            session.log.notice(f"Hook {hook.label!r}: {notice}")
        agent = Robota(
            provider,
            model=model,
            system_message=SYSTEM_MESSAGE,
            tools=_looking(session.agent.tools) if self._has_tools else (),
            max_rounds=(hook.max_turns or AGENT_TURNS) if self._has_tools else 1,
            config=AgentConfig(
                session_id=session.session_id,
                cwd=session.cwd,
                run_tool=_Judged(session),
                ports=session.options.ports,
            ),
        )
        session.usage.for_purpose("hook").attach(agent.events, session.admission.is_metering)
        result = await agent.run(make_question(hook, hook_input))
        if result.error is not None:
            return HookResult(exit_code=1, failure=f"could not ask the model: {result.error}")
        event = str(hook_input.get("hook_event_name") or "")
        return read_answer(result.text, hook, event, f"Blocked by {self.type} hook")


def model_executors(session: Callable[[], Session]) -> tuple[ModelExecutor, ModelExecutor]:
    return ModelExecutor("prompt", session), ModelExecutor("agent", session, tools=True)


def make_question(hook: HookDefinition, hook_input: Mapping[str, Json]) -> str:
    """The hook's words with what happened; `$ARGUMENTS` says where, else it comes behind them."""
    import json  # noqa: PLC0415 - for hooks that ask a model

    told = json.dumps(msgspec.to_builtins(dict(hook_input)), ensure_ascii=False)
    words = hook.prompt or hook.agent
    return words.replace(_ARGUMENTS, told) if _ARGUMENTS in words else f"{words}\n\nThe event:\n{told}"


def read_answer(text: str, hook: HookDefinition, event: str, default_reason: str) -> HookResult:
    """What a model said, as the answer of a hook."""
    said = without_fence(text)
    verdict = read_ok_answer(said, default_reason)
    if verdict is None:
        if event in _FOR_MODEL:
            return HookResult(stdout=text)
        return HookResult(exit_code=1, failure=f"gave no verdict: {clip(' '.join(text.split()), 200)}")
    if verdict.exit_code and event == "PreToolUse" and _ends_turn(hook):
        answer = {
            "continue": False,
            "stopReason": verdict.stderr,
            "hookSpecificOutput": {
                "hookEventName": event,
                "permissionDecision": "deny",
                "permissionDecisionReason": verdict.stderr,
            },
        }
        return HookResult(stdout=encode(answer).decode())
    return HookResult(exit_code=verdict.exit_code, stderr=verdict.stderr)  # that all is well is not context


def _ends_turn(hook: HookDefinition) -> bool:
    """In `.claude` files a no before a tool ends the turn, unless the hook says otherwise."""
    return ".claude" in PurePath(hook.source).parts and not hook.extra.get("continueOnBlock")


def _looking(tools: Sequence[Tool]) -> list[Tool]:
    return [tool for tool in tools if tool_class(tool) == "inspect" and tool.name in _LOOKS]


_LOOKS = frozenset({"Read", "Grep", "Glob"})


class _Judged:
    """Runs what the session allows unasked, in its directories; hooks are not asked about calls of hooks."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def __call__(self, call: PreparedCall, context: ToolContext) -> ToolResult:
        session = self._session
        judge = RuleJudge(permission_options(session.options.permissions).guard)
        judgement = await judge.judge(call, session.rules.terms(session.cwd))
        if judgement.decision != "auto":
            return ToolResult.failure(_DENIED, "permission_denied")
        return await invoke_tool(call, msgspec.structs.replace(context, rules=session.rules))
