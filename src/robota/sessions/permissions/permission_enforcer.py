"""`PermissionEnforcer`: tools run only as hooks, rules and people allow, and results fit a conversation.

Hooks, evaluation, approval, the tool, hooks again, truncation. Whatever breaks on the way, a call gets a
result: before the tool it is a refusal, behind it the tool's own. Only cancellation passes through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from robota.core.messages import JsonObject
from robota.core.permissions.modes import classify_tool
from robota.core.questions import HOOK_ASKS
from robota.core.tool import ToolContext, ToolResult, tool_class
from robota.core.tool_call import INVALID_ARGUMENTS, PreparedCall, RunTool, checked_result, invoke_tool
from robota.sessions.options import PermissionOptions, permission_options
from robota.sessions.permissions.case import BROKEN, ApprovalDesk, PermissionCase
from robota.sessions.permissions.consultation import Fault, attempt, consult
from robota.sessions.permissions.judgement import RuleJudge
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.sessions.permissions.tool_hooks import (
    MAX_TOOL_OUTPUT_CHARACTERS,
    add_context,
    blocked_result,
    covers_call,
    describe_call,
    describe_result,
    frame_context,
    replace_output,
    truncate_result,
    without_frames,
)

if TYPE_CHECKING:
    from robota.core.hooks.outcome import HookOutcome
    from robota.sessions.hooks import HookPort
    from robota.sessions.questions import Questions


class PermissionLog(Protocol):
    """Where decisions are written down."""

    def notice(self, sentence: str) -> None:
        """Something the user should know."""

    def record_decision(self, decision: JsonObject) -> None:
        """Called before the tool runs; if it raises, the tool does not run."""

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """A result that hooks changed, as the tool gave it."""

    async def before_effects(self, call: PreparedCall) -> None:
        """Called before a tool runs that does more than look; if it raises, the tool does not run."""


OVER_BUDGET = "budget_exceeded"


class PermissionEnforcer:
    """Put `enforcer.run_tool` where an agent runs its tools."""

    __slots__ = (
        "_admit_call", "_agent_id", "_cwd", "_desk", "_hooks", "_judge", "_log", "_monotonic",
        "_output_limit", "_refresh", "_run_tool", "rules", "stop_requested",
    )  # fmt: skip

    def __init__(
        self,
        options: PermissionOptions | PermissionRules | LiveRules | None = None,
        *,
        cwd: str,
        questions: Questions | None = None,
        hooks: HookPort | None = None,
        log: PermissionLog | None = None,
        agent_id: str = "",
        admit_call: Callable[[str], str | None] | None = None,
        output_limit: int = MAX_TOOL_OUTPUT_CHARACTERS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without anybody who attends to `questions`, what would be a question is denied."""
        options = permission_options(options or PermissionRules())
        given = options.rules
        self.rules = given if isinstance(given, LiveRules) else LiveRules(given)
        self._judge = options.judge or RuleJudge(options.guard)
        self._hooks = hooks
        self._agent_id = agent_id
        self.stop_requested: str | None = None
        """Why a hook wants the run to end after the results that are there; whoever ends it clears this."""
        notice: Callable[[str], object] = str if log is None else log.notice  # `str`: nobody is told
        self._desk = ApprovalDesk(self, questions, options.save_rule, notice, agent_id)
        self._cwd = cwd
        self._refresh = options.refresh
        self._admit_call = admit_call
        self._run_tool = invoke_tool if options.run_tool is invoke_tool else _guarded(options.run_tool)
        self._log = log
        self._output_limit = output_limit
        self._monotonic = monotonic

    async def run_tool(self, call: PreparedCall, context: ToolContext) -> ToolResult:
        """Carry a call out, or say why not."""
        if call.tool is None or call.answer is not None:
            return truncate_result(without_frames(await self._run_tool(call, context)), self._output_limit)
        if not context.cwd:  # what was judged for one directory must not run in another
            context = msgspec.structs.replace(context, cwd=self._cwd)
        case = PermissionCase(call, context.cwd, self._judge, self.rules)
        refusal = await self._decide(case)
        if refusal is not None:
            return add_context(refusal, frame_context(case.outcomes, self._output_limit), self._output_limit)
        spent = None if self._admit_call is None else self._admit_call(call.call_id)
        unsafe = await self._prepare(case.call) if spent is None else ToolResult.failure(spent, OVER_BUDGET)
        if unsafe is not None:
            return unsafe
        started = self._monotonic()
        context = msgspec.structs.replace(context, resolved=case.resolved, rules=self.rules)
        result = case.describe(call, await self._run_tool(case.call, context))
        final: object = None
        if case.outcomes or self.has_hooks("PostToolUse") or self.has_hooks("PostToolUseFailure"):
            duration = self._monotonic() - started
            final = await consult("What hooks say about a result", self._hear_hooks, case, result, duration)
        return (
            final
            if isinstance(final, ToolResult)
            else truncate_result(without_frames(result), self._output_limit)
        )

    async def _decide(self, case: PermissionCase) -> ToolResult | None:
        """The refusal, or `None`; on record either way."""
        try:
            refusal = await consult("The permission check", self._deliberate, case)
        except asyncio.CancelledError:
            if case.judged and self._log is not None:
                case.by, case.answer = "nobody", case.answer or {"interrupted": True}
                attempt("Recording a decision", self._log.record_decision, case.to_record(allowed=False))
            raise
        if refusal is not None and not isinstance(refusal, ToolResult):
            refusal = case.forbid(BROKEN)
        if self._log is not None:
            record = case.to_record(allowed=refusal is None)
            fault = attempt("Recording a decision", self._log.record_decision, record)
            if isinstance(fault, Fault) and refusal is None:
                return _not_run(case.call, fault)
        return refusal

    async def _deliberate(self, case: PermissionCase) -> ToolResult | None:
        wish, why = None, ""
        if self._refresh is not None:
            await self._refresh()
        if self.has_hooks("PreToolUse"):
            told = {**describe_call(case.call, case.cwd), "tool_use_id": case.call.request.id}
            outcome = await self.fire("PreToolUse", told, case)
            case.outcomes.append(outcome)
            wish, why = outcome.permission_decision, outcome.reason
            if outcome.blocked or wish == "deny":
                case.by = "hook"
                return blocked_result(outcome.reason)
            if outcome.updated_input is not None:
                problem = case.change_input(outcome.updated_input, "hook")
                if problem is not None:
                    return problem
        judgement = await case.judge()
        if judgement.decision == "deny":
            return case.forbid(judgement)
        if wish == "ask":
            return await self._desk.settle(case, f"{HOOK_ASKS}{why}" if why else "A hook asks about it.")
        if judgement.decision == "auto":
            case.by = judgement.by
            return None
        # A hook answers for the mode, not for a rule that asks, nor for the way out of the sandbox.
        if wish == "allow" and judgement.rule is None and judgement.by != "sandbox":
            case.by = "hook"
            return None
        return await self._desk.settle(case)

    async def _prepare(self, call: PreparedCall) -> ToolResult | None:
        """Have the intent on record before the world changes; the answer to the call if that failed."""
        if self._log is None or not _has_effects(call):
            return None
        fault = await consult("The preparation of a call", self._log.before_effects, call)
        return _not_run(call, fault) if isinstance(fault, Fault) else None

    async def _hear_hooks(self, case: PermissionCase, result: ToolResult, duration: float) -> ToolResult:
        call, limit = case.call, self._output_limit
        failure = not result.ok and self.has_hooks("PostToolUseFailure")
        event = "PostToolUseFailure" if failure else "PostToolUse"
        kept = final = without_frames(result)
        if self.has_hooks(event) and not result.denied and result.error_code != INVALID_ARGUMENTS:
            told = {**describe_call(call, case.cwd), "tool_use_id": call.request.id}
            told |= describe_result(told, result, duration)
            outcome = await self.fire(event, told, case)
            case.outcomes.append(outcome)
            final = replace_output(kept, outcome)
        context = frame_context(case.outcomes, limit)
        if self._log is not None and (context or final is not kept):
            attempt("Recording a result", self._log.record_original, call, kept)
        return add_context(final, context, limit)

    # --- hooks ----------------------------------------------------------------------------------------

    def has_hooks(self, event: str) -> bool:
        return self._hooks is not None and self._hooks.has(event)

    async def fire(self, event: str, told: JsonObject, case: PermissionCase) -> HookOutcome:
        """Ask the hooks of an event that has some; if that breaks, a tool that has not run is blocked."""
        from robota.core.hooks.outcome import HookOutcome  # noqa: PLC0415 - with the first hook

        assert self._hooks is not None
        call, terms = case.call, case.terms
        common: JsonObject = {"permission_mode": terms.mode}
        if self._agent_id:
            common["agent_id"] = self._agent_id
        outcome = await consult(
            f"Firing {event} hooks",
            self._hooks.fire,
            event,
            {**common, **told},
            call_id=call.call_id,
            matches_rule=partial(covers_call, call, terms),
        )
        if not isinstance(outcome, HookOutcome):
            blocked = event == "PreToolUse"
            return HookOutcome(
                event=event, blocked=blocked, reason="the hooks could not be run" if blocked else ""
            )
        if outcome.stop:
            self.request_stop(outcome.stop_reason)
        return outcome

    def request_stop(self, reason: str) -> None:
        if self.stop_requested is None:
            self.stop_requested = reason or "A hook ended the run."


def _guarded(run_tool: RunTool) -> RunTool:
    """Foreign code that carries out calls, so that it gives a result whatever happens, like `invoke_tool`."""

    async def run(call: PreparedCall, context: ToolContext) -> ToolResult:
        result = await consult(call.request.name, run_tool, call, context)
        if isinstance(result, Fault):
            return ToolResult.failure(f"{call.request.name} failed: {result.text}")
        return checked_result(call.request.name, result)

    return run


def _has_effects(call: PreparedCall) -> bool:
    declared = None if call.tool is None else tool_class(call.tool)
    return classify_tool(call.request.name, declared) != "inspect"


def _not_run(call: PreparedCall, fault: Fault) -> ToolResult:
    return ToolResult.failure(
        f"{call.request.name} was not run: {fault.text}", "not_run", errorCode="not_run"
    )
