"""A server asks the session's model something: only if the user lets it, on the session's budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robota.core.messages import ImagePart, JsonObject, Part, TextPart, ToolCall
from robota.core.provider import ModelSettings
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import ToolContext
from robota.core.tool_call import PreparedCall
from robota.sessions.options import permission_options
from robota.sessions.permissions.judgement import RuleJudge
from robota.tools.mcp.definition import plain_name

if TYPE_CHECKING:
    import mcp_types

    from robota.sessions.session import Session

MAX_TOKENS = 8192
REFUSED = "The user does not let this server ask the model."


async def answer_server(
    session: Session, server: str, asked: mcp_types.CreateMessageRequestParams, context: ToolContext
) -> Any:
    """The model's answer in the protocol's form, or a sentence that says why there is none."""
    import mcp_types  # noqa: PLC0415 - a server is connected, so it is loaded

    prompt = read_messages(asked)
    if not prompt:
        return "There is nothing in the request that a model could be asked."
    if not await _may_ask(session, server, asked, context):
        return REFUSED
    agent = Robota(
        session.admission.admit_for("mcp", session.agent.provider),
        model=session.agent.model,
        system_message=asked.system_prompt or "",
        settings=ModelSettings(max_tokens=min(asked.max_tokens, MAX_TOKENS), temperature=asked.temperature),
        max_rounds=1,
        config=AgentConfig(session_id=session.session_id, cwd=session.cwd, ports=session.options.ports),
    )
    session.usage.for_purpose("mcp").attach(agent.events, session.admission.is_metering)
    result = await agent.run(prompt)
    if result.error is not None:
        return f"The model could not be asked: {result.error}"
    return mcp_types.CreateMessageResult(
        role="assistant",
        content=mcp_types.TextContent(type="text", text=result.text),
        model=session.agent.model or session.agent.provider.name,
        stop_reason="endTurn",
    )


def read_messages(asked: mcp_types.CreateMessageRequestParams) -> tuple[Part, ...]:
    """What the server wants to say to the model, as one prompt; who said what is told where it matters."""
    several = len(asked.messages) > 1
    parts: list[Part] = []
    for message in asked.messages:
        content: Any = message.content
        for block in content if isinstance(content, list) else [content]:
            if block.type == "text":
                parts.append(TextPart(f"[{message.role}] {block.text}" if several else block.text))
            elif block.type == "image":
                parts.append(ImagePart(block.data, block.mime_type))
    return tuple(parts)


async def _may_ask(
    session: Session, server: str, asked: mcp_types.CreateMessageRequestParams, context: ToolContext
) -> bool:
    """By the rules, as if it were a tool of the server named `sampling`; else by the user's word."""
    name = f"mcp__{plain_name(server)}__sampling"
    words = " ".join(part.text for part in read_messages(asked) if isinstance(part, TextPart))
    given: JsonObject = {"prompt": words, "system": asked.system_prompt or ""}
    call = PreparedCall(index=0, call_id=context.call_id, request=ToolCall("", name, "{}"), arguments=given)
    judge = RuleJudge(permission_options(session.options.permissions).guard)
    judgement = await judge.judge(call, session.rules.terms(session.cwd))
    if judgement.decision != "approve":
        return judgement.decision == "auto"
    reason = f"The MCP server {server!r} wants to ask the model of this session."
    question = PermissionQuestion(tool_name=name, tool_input=given, cwd=session.cwd, reason=reason)
    answer = None if context.ask is None else await context.ask(question)
    return isinstance(answer, PermissionAnswer) and answer.allow
