"""Questions of a session as forms that an MCP client shows its user, and what they filled in."""

from __future__ import annotations

from mcp import types

from robota.core.messages import JsonObject
from robota.core.questions import (
    ChoiceAnswer,
    ChoiceQuestion,
    FormAnswer,
    FormQuestion,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanQuestion,
    Question,
)
from robota.sdk.view.neutral import neutralise, visible

DECISION, ANSWER = "decision", "answer"
ALLOW, SESSION, PROJECT, REJECT = "allow", "allow-session", "allow-project", "reject"
LONGEST = 4_000
"""Characters of what is shown of a call."""


def make_form(question: Question) -> types.ElicitRequestFormParams:
    """What the client's user is asked."""
    match question:
        case PermissionQuestion():
            choices = [(ALLOW, "Allow")]
            if question.rule:
                choices += [
                    (SESSION, f"Allow {question.rule} for this session"),
                    (PROJECT, f"Always allow {question.rule} in this project"),
                ]
            return _form(describe_call(question), DECISION, [*choices, (REJECT, "Reject")])
        case PlanQuestion(plan=plan):
            return _form(
                f"Go to work on this plan?\n\n{neutralise(plan)[:LONGEST]}",
                DECISION,
                [(ALLOW, "Yes"), (REJECT, "No, keep planning")],
            )
        case ChoiceQuestion(question=words, options=options) if options:
            return _form(neutralise(words), ANSWER, [(each.label, each.label) for each in options])
        case ChoiceQuestion(question=words):
            schema: JsonObject = {"type": "object", "properties": {ANSWER: {"type": "string"}}}
            return types.ElicitRequestFormParams(message=neutralise(words), requested_schema=schema)
        case FormQuestion(message=words, schema=schema):
            return types.ElicitRequestFormParams(message=neutralise(words), requested_schema=schema)
    raise AssertionError(f"unknown question {question!r}")


def describe_call(question: PermissionQuestion) -> str:
    """All that somebody needs who decides whether a call may run; nothing in it is hidden."""
    shown = [f"{key}: {visible(str(value))[:LONGEST]}" for key, value in question.tool_input.items()]
    lines = [f"The agent wants to use {question.tool_name}.", *shown]
    if question.reason:
        lines.append(neutralise(question.reason))
    return "\n".join(lines)


def _form(message: str, field: str, choices: list[tuple[str, str]]) -> types.ElicitRequestFormParams:
    options = [{"const": value, "title": title} for value, title in choices]
    schema: JsonObject = {
        "type": "object",
        "properties": {field: {"type": "string", "oneOf": options}},
        "required": [field],
    }
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


def read_form(question: Question, given: types.ElicitResult) -> object:
    """The answer, as the session takes it. Whatever is not clearly a yes is a no."""
    content = dict(given.content or {}) if given.action == "accept" else {}
    decision = content.get(DECISION)
    match question:
        case PermissionQuestion():
            if decision == SESSION:
                return PermissionAnswer(allow=True, scope="session")
            if decision == PROJECT:
                return PermissionAnswer(allow=True, scope="project")
            return PermissionAnswer(allow=decision == ALLOW)
        case PlanQuestion():
            return PlanAnswer(approve=decision == ALLOW)
        case ChoiceQuestion():
            chosen = content.get(ANSWER)
            return ChoiceAnswer(chosen=(chosen,)) if isinstance(chosen, str) else ChoiceAnswer(dismissed=True)
        case _:
            return FormAnswer(action=given.action, content=content)
