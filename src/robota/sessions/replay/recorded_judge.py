"""Permissions as they were decided: verdicts and answers come from the record, not from rules or people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import convert

from robota.core.messages import Json
from robota.sessions.permissions.approval import ApprovalRequest, PermissionAnswer, answer_from_record
from robota.sessions.permissions.consultation import Fault
from robota.sessions.permissions.judgement import Judgement
from robota.sessions.replay.recording import INTERRUPTED
from robota.sessions.replay.turnstile import DECISION
from robota.sessions.replay.world import ReplayWorld

if TYPE_CHECKING:
    from robota.core.tool_call import PreparedCall
    from robota.sessions.permissions.judgement import Terms

NOT_SAVED = "The rule {rule} counts for this session only, it could not be saved: "


class RecordedJudge:
    """Judge, approval handler and keeper of rules in one."""

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world
        self._judged: set[str] = set()

    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement:
        call_id = call.call_id
        decision = self._world.action.decisions.get(call_id, {})
        first = call_id not in self._judged
        if first:  # later ones may hold what others wait for
            self._judged.add(call_id)
            await self._world.turnstile(call_id).wait(call_id)
        if not decision and self._world.action.had(call_id, "PermissionRequest", "Notification"):
            return Judgement(decision="approve")  # the recording ends while somebody is asked
        judged = decision.get("judged")
        if not judged:
            await self._world.interrupt(call_id, f"decision about the call {call_id}")
        verdict = convert(judged.pop(0), Judgement)
        if first and not judged and _is_cut(decision):
            self._world.interrupt_soon()  # it may have to wait for others, and was stopped there
        return verdict

    def offer(self, call: PreparedCall, terms: Terms) -> Sequence[str]:
        rules: list[str] = self._world.action.decisions.get(call.call_id, {}).get("rules", [])
        return rules

    def remember(self, call: PreparedCall, directory: str) -> None:
        """What followed from it is on record."""

    async def approve(self, request: ApprovalRequest) -> bool | str | PermissionAnswer | None:
        """What the user, or nobody, answered."""
        decision = self._world.action.decisions.get(request.call_id, {})
        await self._world.turnstile(request.call_id).wait(request.call_id, DECISION)
        if not decision or _is_cut(decision):
            await self._world.interrupt(request.call_id, f"answer about the call {request.call_id}")
        answer = decision.get("answer")
        if answer is None:
            return None
        if "error" in answer:
            fault: Any = Fault(str(answer["error"]))  # what a handler that broke comes down to
            return fault  # type: ignore[no-any-return]  # only a handler of ours may say it so
        return answer_from_record(answer)

    def save_rule(self, rule: str) -> Any:
        """Saving a rule fails again in the same words."""
        complaint = NOT_SAVED.format(rule=rule)
        failed = next((said for said in self._world.action.notices if said.startswith(complaint)), None)
        return None if failed is None else Fault(failed.removeprefix(complaint))


def _is_cut(decision: Mapping[str, Json]) -> bool:
    """Whether the session was stopped before anybody decided."""
    return bool((decision.get("answer") or {}).get(INTERRUPTED))
