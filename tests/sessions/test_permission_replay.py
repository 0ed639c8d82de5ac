"""What is on record is enough to decide every call again, with nobody there and another disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.sessions.enforced_agent import EnforcedAgent, Person
from tests.support.session_options import enforcer_ports

from robota.core.messages import JsonObject
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall
from robota.sessions.permissions.consultation import Fault
from robota.sessions.permissions.judgement import Judgement, Terms
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer, PermissionRules
from robota.testing import call

pytestmark = pytest.mark.anyio


class Recorded:
    """A judge and a handler that know nothing but the records."""

    def __init__(self, records: list[JsonObject]) -> None:
        self.records = {str(record["callId"]): record for record in records}

    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement:
        return msgspec.convert(self.records[call.call_id]["judged"].pop(0), Judgement)

    def offer(self, call: PreparedCall, terms: Terms) -> list[str]:
        rules: list[str] = self.records[call.call_id]["rules"]
        return rules

    def remember(self, call: PreparedCall, directory: str) -> None:
        """What followed from it is in the verdicts."""

    async def answer(self, request: PermissionQuestion) -> Any:
        answer = self.records[request.call_id]["answer"]
        if answer is None:
            return None
        return Fault(answer["error"]) if "error" in answer else answer


RULES = PermissionRules(deny=("Write(.env)",), ask=("Bash(date)",), allow=("Bash(echo ok)",))
CALLS = {
    "a": call("Bash", command="echo ok"),
    "b": call("Write", file_path=".env", content=""),
    "c": call("Bash", command="date"),
    "d": call("Bash", command="echo a && pwd"),
    "e": call("Bash", command="pwd"),
    "f": call("Read", file_path="/elsewhere/x"),
    "g": call("Write", file_path="x", content=""),
}


class Elsewhere:
    def outside(self, call: PreparedCall) -> str | None:
        return "/elsewhere" if str(call.arguments.get("file_path")).startswith("/elsewhere") else None

    def remember(self, call: PreparedCall, directory: str) -> None:
        """Asked every time."""


async def run_nothing(prepared: PreparedCall, context: ToolContext) -> ToolResult:
    return ToolResult(content=f"ran {prepared.arguments}")


async def decide(
    cwd: Path, **ports: Any
) -> tuple[dict[str, ToolResult], list[JsonObject], PermissionEnforcer]:
    """All calls at once, as the calls of one answer are."""
    results: dict[str, ToolResult] = {}
    records: list[JsonObject] = []
    enforcer = PermissionEnforcer(
        cwd=str(cwd), **enforcer_ports(rules=RULES, run_tool=run_nothing, record=records.append, **ports)
    )
    tools = {tool.name: tool for tool in EnforcedAgent(cwd).tools}

    async def run_one(name: str) -> None:
        request = CALLS[name]
        prepared = PreparedCall(
            index=0,
            call_id=name,
            request=request,
            tool=tools[request.name],
            arguments=msgspec.json.decode(request.arguments),
        )
        results[name] = await enforcer.run_tool(prepared, ToolContext())

    async with anyio.create_task_group() as group:
        for name in CALLS:
            group.start_soon(run_one, name)
    return results, sorted(records, key=lambda record: str(record["callId"])), enforcer


@pytest.mark.parametrize(
    "handler",
    [
        None,
        Person(False),
        Person(None),
        Person("allow-session"),
        Person("nonsense", True),
        Person(PermissionAnswer(allow=False, message="no"), "allow-session"),
        Person(
            PermissionAnswer(allow=True, updated_input={"command": "ls", "file_path": ".env", "content": ""})
        ),
    ],
)
async def test_recorded_decisions_are_made_again(tmp_path: Path, handler: Any) -> None:
    results, records, enforcer = await decide(tmp_path, handler=handler, guard=Elsewhere())
    kept = msgspec.json.decode(msgspec.json.encode(records))

    recorded = Recorded(kept)
    asking = None if handler is None else recorded.answer
    again, records_again, replayed = await decide(tmp_path / "another", judge=recorded, handler=asking)

    assert again == results
    assert records_again == records
    assert replayed.rules.granted == enforcer.rules.granted


def test_a_record_holds_everything_that_was_learnt() -> None:
    judgement = Judgement(
        decision="deny", by="rule", rule="Write(.env)", part=".env", reason="why", outside="/x"
    )
    assert msgspec.convert(msgspec.to_builtins(judgement), Judgement) == judgement
