"""A tool of an MCP server that is asked whether calls may run, in the place of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.events import SubagentEvent, ToolEnded, ToolStarted, TurnEvent
from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject
from robota.core.questions import PermissionAnswer, PermissionQuestion, Question
from robota.core.tool import ToolContext
from robota.tools.mcp.tool import McpTool

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


class PermissionTool:
    """Gets `tool_name`, `input` and `tool_use_id`, and answers with JSON text: `{"behavior": "allow",
    "updatedInput": …}` or `{"behavior": "deny", "message": …}`. Whatever else happens is a no."""

    def __init__(self, session: InteractiveSession, name: str) -> None:
        self._session = session
        self._name = name
        self._calls: dict[str, str] = {}
        """Calls as the engine and as the model name them."""
        session.events.subscribe(self._note)
        session.questions.attach(self.answer)

    def _note(self, event: TurnEvent) -> None:
        while isinstance(event, SubagentEvent):
            event = event.inner
        match event:
            case ToolStarted(call_id=known, tool_call_id=given):
                self._calls[known] = given
            case ToolEnded(call_id=known):
                self._calls.pop(known, None)

    async def answer(self, question: Question) -> PermissionAnswer | None:
        """The handler for `session.questions`."""
        if not isinstance(question, PermissionQuestion):
            return None
        told: JsonObject = {"tool_name": question.tool_name, "input": question.tool_input}
        answer = await self._ask(told | {"tool_use_id": self._calls.get(question.call_id, question.call_id)})
        changed: Json = answer.get("updatedInput")
        if answer.get("behavior") != "allow":
            return PermissionAnswer(allow=False, message=str(answer.get("message") or ""))
        if not isinstance(changed, dict | None):
            return PermissionAnswer(
                allow=False, message=f"The `updatedInput` of the permission tool {self._name} is no object."
            )
        return PermissionAnswer(allow=True, updated_input=changed if changed != question.tool_input else None)

    async def _ask(self, told: JsonObject) -> JsonObject:
        tool = self._find()
        if tool is None:
            return {"message": f"The permission tool {self._name} is not there."}
        result = await tool.run(told, ToolContext(tool_name=self._name))
        try:
            answer = decode(result.content) if result.ok else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            said = result.error or "its answer is no JSON object"
            return {"message": f"The permission tool {self._name} failed: {said}"}
        if answer.get("behavior") not in ("allow", "deny"):
            wrong = f"The permission tool {self._name} answers with the `behavior` {answer.get('behavior')!r}"
            return {"message": f"{wrong}, which is neither allow nor deny."}
        return answer

    def _find(self) -> McpTool | None:
        """Also if the model may not call it."""
        for connection in self._session.kit.servers.connections.values():
            for offered in connection.offer.tools.values():
                tool = McpTool(connection, offered)
                if tool.name == self._name:
                    return tool
        return None
