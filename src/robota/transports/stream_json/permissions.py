"""Questions of a session to the host: may this tool run, which of these, is this plan good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from robota.core.errors import RobotaError
from robota.core.events import ToolEnded
from robota.core.messages import Json, JsonObject
from robota.core.permissions.rules import RuleProblem, parse_rule
from robota.core.questions import (
    HOOK_ASKS,
    ChoiceAnswer,
    ChoiceQuestion,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanQuestion,
    Question,
)
from robota.transports.stream_json.host import Host, HostError

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.transports.stream_json.permission_updates import SetMode
    from robota.transports.turn_frames import TurnFrames

DONT_ASK = "dontAsk"
"""A mode of the protocol: what would be a question is refused."""
MODES = {"manual": "default", "auto": "default", DONT_ASK: "default"}
"""Modes of the protocol and the one here that comes next to them."""


class PermissionDesk:
    """Puts questions to the host, one frame each, and reads its answers. What fails is a no."""

    def __init__(
        self,
        session: InteractiveSession,
        host: Host,
        frames: TurnFrames,
        tell_waiting: Callable[[bool], None],
        set_mode: SetMode,
    ) -> None:
        """`tell_waiting` hears whether the session waits for an answer, `set_mode` which mode is wanted."""
        self._session = session
        self._host = host
        self._frames = frames
        self._tell_waiting = tell_waiting
        self._set_mode = set_mode
        self._waiting = 0
        self._to_stop: set[str] = set()
        """Calls after whose refusal the turn ends."""
        self.is_quiet = False
        """Nothing is asked, everything refused."""
        frames.on_result = self._stop_after

    async def answer(self, question: Question) -> object:
        """The handler for `session.questions`."""
        match question:
            case PermissionQuestion():
                return await self._permit(question)
            case PlanQuestion():
                return await self._approve(question)
            case ChoiceQuestion():
                return await self._choose(question)
            case _:
                return None  # nothing in the protocol asks for values of a form

    def _stop_after(self, event: ToolEnded) -> None:
        """The host wants the turn to end with the refusal of this call, which has its result now."""
        if event.call_id in self._to_stop:
            self._frames.was_in_tools = True
            self._session.abort()

    async def _permit(self, question: PermissionQuestion) -> PermissionAnswer:
        suggestions = suggest_rules(question.rule)
        request: JsonObject = {
            "tool_name": question.tool_name,
            "input": question.tool_input,
            "tool_use_id": self._tool_use(question),
            "permission_suggestions": suggestions,
            "blocked_path": None,
            "decision_reason": question.reason.removeprefix(HOOK_ASKS),
        }
        if question.agent_id:
            request["agent_id"] = question.agent_id
        answer = await self._ask(request, question)
        if answer.get("behavior") != "allow":
            return PermissionAnswer(allow=False, message=str(answer.get("message") or ""))
        if problem := await self._update(answer, self._set_mode):
            return PermissionAnswer(allow=False, message=problem)
        changed = answer.get("updatedInput")
        return PermissionAnswer(allow=True, updated_input=changed if changed != question.tool_input else None)

    async def _update(self, answer: JsonObject, set_mode: SetMode) -> str:
        """Carry out the updates of an answer; what was wrong with them."""
        updates = answer.get("updatedPermissions")
        if not updates:
            return ""
        from robota.transports.stream_json.permission_updates import apply_updates  # noqa: PLC0415 - rare

        try:
            await apply_updates(self._session, updates, set_mode)
        except RobotaError as error:
            return f"The permission update was refused: {error}"
        return ""

    async def _approve(self, question: PlanQuestion) -> PlanAnswer:
        request = {
            "tool_name": "ExitPlanMode",
            "input": {"plan": question.plan, "planFilePath": question.plan_file_path},
            "tool_use_id": self._tool_use(question),
        }
        answer = await self._ask(request, question)
        if answer.get("behavior") != "allow":
            return PlanAnswer(approve=False, feedback=str(answer.get("message") or ""))
        from robota.sdk.assembly import require_mode  # noqa: PLC0415 - the session has loaded it

        wanted: list[str] = []

        async def note(mode: str) -> None:
            require_mode(MODES.get(mode, mode))
            wanted.append(mode)

        if problem := await self._update(answer, note):  # nothing leaves plan mode if the rest is refused
            return PlanAnswer(approve=False, feedback=problem)
        if wanted:
            await self._set_mode(wanted[-1])
        changed = (answer.get("updatedInput") or {}).get("plan")
        return PlanAnswer(
            approve=True,
            mode=self._session.permission_mode if wanted else None,
            plan=changed if isinstance(changed, str) and changed != question.plan else "",
        )

    async def _choose(self, question: ChoiceQuestion) -> ChoiceAnswer:
        options = [{"label": each.label, "description": each.description} for each in question.options]
        asked = {"question": question.question, "header": question.header, "options": options}
        request = {
            "tool_name": "AskUserQuestion",
            "input": {"questions": [asked | {"multiSelect": question.multi_select}]},
            "tool_use_id": self._tool_use(question),
        }
        answer = await self._ask(request, question)
        changed = answer.get("updatedInput")
        answers: Json = changed.get("answers") if changed else None
        chosen = answers.get(question.question) if isinstance(answers, dict) else None
        if answer.get("behavior") != "allow":
            return ChoiceAnswer(dismissed=True, feedback=str(answer.get("message") or ""))
        if not chosen:
            return ChoiceAnswer(dismissed=True)
        return ChoiceAnswer(chosen=tuple(map(str, chosen)) if isinstance(chosen, list) else (str(chosen),))

    async def _ask(self, request: JsonObject, question: Question) -> JsonObject:
        if self._host.closed:
            return {"behavior": "deny", "message": "Nobody can be asked any more: the input has ended."}
        if self.is_quiet:
            return {"behavior": "deny", "message": f"In the mode {DONT_ASK} nothing is asked."}
        self._note_waiting(1)
        try:
            answer = await self._host.ask({"subtype": "can_use_tool", **request})
        except HostError as error:
            answer = {"behavior": "deny", "message": f"The permission callback failed: {error}"}
        finally:
            self._note_waiting(-1)
        if answer.get("behavior") not in ("allow", "deny"):
            wrong = f"The permission callback's answer has the `behavior` {answer.get('behavior')!r}"
            return {"behavior": "deny", "message": f"{wrong}, which is neither allow nor deny."}
        if not isinstance(answer.get("updatedInput"), dict | None):
            wrong = "The permission callback's answer has an `updatedInput` that is no object"
            return {"behavior": "deny", "message": f"{wrong}, so it is not known what may run."}
        if answer.get("behavior") == "deny" and answer.get("interrupt"):
            self._to_stop.add(question.call_id)
        return answer

    def _note_waiting(self, change: int) -> None:
        before, self._waiting = self._waiting, self._waiting + change
        if bool(before) != bool(self._waiting):
            self._tell_waiting(bool(self._waiting))

    def _tool_use(self, question: Question) -> str:
        started = self._frames.running.get(question.call_id)
        return question.call_id if started is None else started.tool_call_id


def suggest_rules(rule: str | None) -> list[JsonObject]:
    """Rules that would make a question unnecessary, as updates that a host may send back."""
    rules = [parsed for text in _split(rule or "") if not isinstance(parsed := parse_rule(text), RuleProblem)]
    if not rules:
        return []
    listed = [{"toolName": each.tool, "ruleContent": each.pattern} for each in rules]
    return [{"type": "addRules", "rules": listed, "behavior": "allow", "destination": "session"}]


def _split(rules: str) -> Iterable[str]:
    """Rules in one text, separated by commas that stand outside of parentheses."""
    depth, begin = 0, 0
    for at, character in enumerate(rules):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield rules[begin:at].strip()
            begin = at + 1
    if rules[begin:].strip():
        yield rules[begin:].strip()
