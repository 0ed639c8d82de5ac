"""One call on its way to a decision, with everything that was learnt on the way; and where it is asked about:
hooks first, then a person, one question at a time."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.messages import JsonObject
from robota.core.permissions.subjects import subjects
from robota.core.plain_text import clean_sentence
from robota.core.questions import PermissionAnswer, PermissionQuestion, answer_to_plain
from robota.core.schema import check
from robota.core.tool import ToolResult
from robota.core.tool_call import INVALID_ARGUMENTS, RAN_WITH, PreparedCall
from robota.sessions.permissions.consultation import Fault, consult
from robota.sessions.permissions.judgement import DecidedBy, Judge, Judgement, Terms
from robota.sessions.permissions.live_rules import LiveRules
from robota.sessions.permissions.tool_hooks import (
    blocked_result,
    copy_json,
    describe_call,
    suggest_updates,
    truncate_text,
)

if TYPE_CHECKING:
    import anyio

    from robota.core.hooks.outcome import HookOutcome
    from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
    from robota.sessions.questions import Questions, Settled

DENIED = "denied"
FORBIDDEN = "Permission denied."
BROKEN = Judgement(
    decision="deny",
    by="fault",
    reason="The permission rules could not be evaluated; the fault is in the log.",
)


class PermissionCase(Struct, eq=False):
    """Its `call` is the one to run: whatever changes the input, changes it here and is judged again."""

    call: PreparedCall
    cwd: str
    _judge: Judge
    _live: LiveRules
    by: DecidedBy = "fault"
    judged: list[Judgement] = []
    outcomes: list[HookOutcome] = []
    """Of the hooks that may have something to say to the model."""
    rules: tuple[str, ...] = ()
    """The rules an answer for longer than once would add."""
    answer: JsonObject | None = None
    note: str = ""
    """What somebody who allowed it says to the model."""
    resolved: dict[str, str] = {}
    """Where the files of the call were when it was last judged, so before anybody was asked."""

    @property
    def terms(self) -> Terms:
        return self._live.terms(self.cwd)

    async def judge(self) -> Judgement:
        """Judge the call as it is now. A judge that breaks denies."""
        self.resolved = _resolve_files(self.call, self.cwd)
        answer = await consult("The permission judge", self._judge.judge, self.call, self.terms)
        judgement = answer if isinstance(answer, Judgement) else BROKEN
        part, reason = judgement.part, judgement.reason
        if not reason.isprintable() or not (part is None or part.isprintable()):
            part = None if part is None else clean_sentence(part)
            judgement = msgspec.structs.replace(judgement, reason=clean_sentence(reason), part=part)
        self.judged.append(judgement)
        return judgement

    async def find_rules(self) -> None:
        """The rules an answer may add: never a whole tool, unless its calls have nothing to differ in."""
        offered = await consult("The rule offer", self._judge.offer, self.call, self.terms)
        tool = self.call.tool
        exact = not self.call.arguments and tool is not None and not tool.parameters.get("properties")
        if isinstance(offered, Sequence) and all(
            isinstance(rule, str) and ("(" in rule or exact) for rule in offered
        ):
            self.rules = tuple(offered)

    def grant_rules(self) -> None:
        self._live.grant(self.rules)

    async def remember_directory(self) -> None:
        """A person let the call go where the last verdict said it goes."""
        outside = self.judged[-1].outside
        if outside is not None:
            await consult("The workspace guard", self._judge.remember, self.call, outside)

    def refuse(self, by: DecidedBy, words: str) -> ToolResult:
        self.by = by
        return ToolResult(ok=False, denied=True, error=words, error_code=DENIED)

    def forbid(self, judgement: Judgement) -> ToolResult:
        return self.refuse(judgement.by, f"{FORBIDDEN} {judgement.reason}".rstrip())

    def change_input(self, arguments: JsonObject, by: DecidedBy) -> ToolResult | None:
        """Take other arguments; the answer to the call if they cannot be used."""
        self.call = msgspec.structs.replace(self.call, arguments=copy_json(arguments))
        tool = self.call.tool
        if tool is None or getattr(tool, "validates_arguments", False):
            return None
        problems = check(self.call.arguments, tool.parameters)
        if not problems:
            return None
        self.by = by
        return ToolResult.failure(
            f"{tool.name} was not run: the {by} changed its arguments, and they do not fit: {problems[0]}.",
            INVALID_ARGUMENTS,
            errorCode=INVALID_ARGUMENTS,
        )

    def describe(self, asked: PreparedCall, result: ToolResult) -> ToolResult:
        """The result of the call that ran, with what was changed or said since the model asked for it."""
        if self.call.arguments is not asked.arguments:
            metadata = {**result.metadata, RAN_WITH: self.call.arguments}
            result = msgspec.structs.replace(result, metadata=metadata)
        if not self.note:
            return result
        said = f"[{self.note}]\n"
        if result.ok:
            return msgspec.structs.replace(result, content=said + result.content)
        return msgspec.structs.replace(result, error=said + (result.error or ""))

    def to_record(self, *, allowed: bool) -> JsonObject:
        return {
            "callId": self.call.call_id,
            "toolName": self.call.request.name,
            "decision": "allow" if allowed else "deny",
            "by": self.by,
            "judged": [msgspec.to_builtins(judgement) for judgement in self.judged],
            "answer": self.answer,
            "rules": list(self.rules),
        }


def _resolve_files(call: PreparedCall, cwd: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for subject in subjects(call.request.name, call.arguments, call.tool):
        if subject.kind in ("read", "write") and isinstance(subject.value, str):
            try:
                found[subject.value] = os.path.realpath(os.path.join(cwd, subject.value))
            except (OSError, ValueError):
                continue  # no path at all, which the tool will say
    return found


# --- where it is asked about ---------------------------------------------------------------------------

RuleSaver: TypeAlias = Callable[[str], Awaitable[None] | None]
"""Keeps a rule for the project."""

REFUSED = "Permission denied. The user did not approve this action."
NOBODY_TO_ASK = "Permission denied. Nobody can be asked here; an allow rule would let it run."
UNANSWERED = "Permission denied. The question about this action got no usable answer."


class ApprovalDesk(Struct, eq=False):
    """Settles the cases that rules leave open."""

    _enforcer: PermissionEnforcer
    _questions: Questions | None
    _save_rule: RuleSaver | None
    _notice: Callable[[str], object]
    _agent_id: str
    _lock: anyio.Lock | None = None

    async def settle(self, case: PermissionCase, forced: str | None = None) -> ToolResult | None:
        """The refusal, or `None` when the call may run. `forced`: why it is asked whatever the rules say."""
        async with self._turn():
            # Always judged anew: an answer given meanwhile may have settled this case too, and a replay must
            # not depend on which of two calls came first.
            judgement = await case.judge()
            if judgement.decision == "deny":
                return case.forbid(judgement)
            if judgement.decision == "auto" and forced is None:
                case.by = judgement.by
                return None
            await case.find_rules()
            outcome = await self._ask_hooks(case)
            if outcome is not None:
                return await self._follow_hook(case, outcome)
            return await self._ask_people(case, judgement, forced or judgement.reason)

    def _turn(self) -> anyio.Lock:
        if self._lock is None:
            import anyio  # noqa: PLC0415 - loaded with the first question

            self._lock = anyio.Lock()
        return self._lock

    async def _ask_hooks(self, case: PermissionCase) -> HookOutcome | None:
        """What hooks decide, if they do."""
        if not self._enforcer.has_hooks("PermissionRequest"):
            return None
        told = describe_call(case.call, case.cwd)
        if case.rules:
            told["permission_suggestions"] = suggest_updates(case.rules)
        outcome = await self._enforcer.fire("PermissionRequest", told, case)
        decided = outcome.stop or outcome.permission_decision in ("allow", "deny")
        return outcome if decided else None

    async def _follow_hook(self, case: PermissionCase, outcome: HookOutcome) -> ToolResult | None:
        decision = outcome.specific.get("decision")
        details = decision if isinstance(decision, dict) else {}
        if outcome.stop or outcome.permission_decision == "deny":
            if details.get("interrupt") is True:
                self._enforcer.request_stop(outcome.reason)
            case.by = "hook"
            return blocked_result(outcome.reason or outcome.stop_reason)
        if "updatedPermissions" in details:
            self._notice(
                "A PermissionRequest hook gave updatedPermissions; they are ignored, its yes counts once."
            )
        case.by = "hook"
        return await self._change_input(case, outcome.updated_input, "hook")

    async def _ask_people(self, case: PermissionCase, judgement: Judgement, reason: str) -> ToolResult | None:
        questions, call = self._questions, case.call
        if questions is None or not questions.attended:
            return case.refuse("nobody", f"{NOBODY_TO_ASK} {reason}".rstrip())
        question = PermissionQuestion(
            tool_name=call.request.name,
            tool_input=copy_json(call.arguments),
            cwd=case.cwd,
            reason=reason,
            part=judgement.part,
            rule=", ".join(case.rules) or None,
            diff=await self._preview(case),
            agent_id=self._agent_id,
            call_id=call.call_id,
        )
        settled = await self._put(case, questions, question)
        if settled.fault:
            case.answer = {"error": settled.fault}
            return case.refuse("fault", UNANSWERED)
        if not isinstance(settled.answer, PermissionAnswer):
            return case.refuse("nobody", f"{NOBODY_TO_ASK} {reason}".rstrip())
        case.answer = answer_to_plain(settled.answer)
        return await self._follow_answer(case, settled.answer)

    async def _follow_answer(self, case: PermissionCase, answer: PermissionAnswer) -> ToolResult | None:
        if not answer.allow:
            said = f"Permission denied. The user says: {answer.message}" if answer.message else REFUSED
            return case.refuse("user", said)
        shown = case.call
        refusal = await self._change_input(case, answer.updated_input, "user")
        if refusal is not None:
            return refusal
        await case.remember_directory()
        if case.call is shown and answer.scope != "once":  # the rules shown do not cover another input
            case.grant_rules()
            if answer.scope == "project":
                await self._save(case.rules)
        case.by, case.note = "user", answer.message
        return None

    async def _change_input(
        self, case: PermissionCase, arguments: JsonObject | None, by: DecidedBy
    ) -> ToolResult | None:
        """Take the input somebody put in the place of the one in question; rules may still forbid it."""
        if arguments is None or arguments == case.call.arguments:
            return None
        problem = case.change_input(arguments, by)
        if problem is not None:
            return problem
        judgement = await case.judge()
        return case.forbid(judgement) if judgement.decision == "deny" else None

    async def _save(self, rules: Sequence[str]) -> None:
        for rule in rules:
            if self._save_rule is None:
                fault: object = Fault("there is no place to save it in")
            else:
                fault = await consult("Saving a rule", self._save_rule, rule)
            if isinstance(fault, Fault):
                self._notice(
                    f"The rule {rule} counts for this session only, it could not be saved: {fault.text}"
                )

    async def _put(self, case: PermissionCase, questions: Questions, question: PermissionQuestion) -> Settled:
        """Put the question; hooks that call somebody to the screen run while it is open."""
        if not self._enforcer.has_hooks("Notification"):
            return await questions.settle(question)
        import anyio  # noqa: PLC0415 - loaded with the first question

        told = {
            "message": f"Permission is needed to use {case.call.request.name}",
            "title": "Permission needed",
            "notification_type": "permission_prompt",
        }
        async with anyio.create_task_group() as group:
            group.start_soon(self._enforcer.fire, "Notification", told, case)
            settled = await questions.settle(question)
        return settled

    async def _preview(self, case: PermissionCase) -> str | None:
        preview = getattr(case.call.tool, "preview", None)
        if preview is None:
            return None
        from anyio import to_thread  # noqa: PLC0415 - few tools have one

        arguments = copy_json(case.call.arguments)
        shown = await consult(
            "The preview", to_thread.run_sync, preview, arguments, case.cwd, abandon_on_cancel=True
        )
        return truncate_text(shown) if isinstance(shown, str) and shown else None
