"""A server wants a form filled in: a hook may do it, else the user does, and hooks hear of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from robota.core.messages import JsonObject
from robota.core.questions import FormAnswer, FormQuestion
from robota.core.schema import check
from robota.core.tool import ToolContext
from robota.tools.mcp.open_call import ask_user

if TYPE_CHECKING:
    from robota.core.hooks import HookOutcome
    from robota.sessions.session import Session

Action = Literal["accept", "decline", "cancel"]
ASKED = "Elicitation"
ANSWERED = "ElicitationResult"
_KEPT = ("mcp_server_name", "mode", "elicitation_id")
"""What both hooks are told."""


async def fill_in(
    session: Session, form: FormQuestion, asked: JsonObject, context: ToolContext
) -> FormAnswer | None:
    """What the server gets; `None` if nobody could be asked. A hook that breaks leaves it to the user."""
    hooks, answer = session.hooks, None
    if hooks.has(ASKED):
        outcome = await hooks.fire(ASKED, asked, call_id=context.call_id)
        answer = _read(session, outcome, form)
    if answer is None:
        answer = await ask_user(form, asked, context)
    if not hooks.has(ANSWERED):
        return answer
    told: JsonObject = {key: asked[key] for key in _KEPT if key in asked}
    told |= {"action": "cancel"} if answer is None else {"action": answer.action, "content": answer.content}
    outcome = await hooks.fire(ANSWERED, told, call_id=context.call_id)
    return _read(session, outcome, form) or answer


def _read(session: Session, outcome: HookOutcome, form: FormQuestion) -> FormAnswer | None:
    """What hooks say in the place of the user; `None` if they leave it to them."""
    if outcome.blocked:
        return FormAnswer(action="decline")
    action, content = outcome.specific.get("action"), outcome.specific.get("content")
    if action is None:
        return None
    if action not in get_args(Action):
        said = f"{action!r} is none of {', '.join(get_args(Action))}"
    elif action != "accept":
        return FormAnswer(action=action)
    else:
        given = content if isinstance(content, dict) else {}
        wrong = check(given, form.schema, "its content")
        if not wrong:
            return FormAnswer(action="accept", content=given)
        said = wrong[0]
    session.log.notice(f"An {outcome.event} hook answered {form.server!r} what cannot be used: {said}")
    return None
