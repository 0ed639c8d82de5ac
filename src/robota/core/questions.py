"""What a person may be asked while a session works, and what may be answered.

Whoever answers is foreign code: `read_answer` takes only what is exactly one of the answers described here.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from robota.core.messages import Json, JsonObject

HOOK_ASKS = "A hook asks about it: "
"""What stands in front of a hook's own words, where they are the reason."""
AnswerScope: TypeAlias = Literal["once", "session", "project"]


class Question(Struct, frozen=True, kw_only=True, tag_field="kind", rename="camel"):
    """What all questions have: an id, the call that asks, the agent."""

    id: str = ""
    """Given when it is asked: `<call>` or `<call>.<n>`, so that the same question has the same id again."""
    call_id: str = ""
    """The tool call that it is about."""
    agent_id: str = ""


class PermissionQuestion(Question, frozen=True, kw_only=True, tag="permission"):
    """Asked before a tool runs. The input is a copy: changing it changes nothing."""

    tool_name: str
    tool_input: JsonObject
    cwd: str
    reason: str = ""
    """Why it is asked, in one sentence."""
    part: str | None = None
    """The part of the command, the path or the argument that caused the question."""
    rule: str | None = None
    """The narrowest rules an answer for the session or the project would add; `None`: it counts once."""
    diff: str | None = None
    """What would change in a file."""


class QuestionOption(Struct, frozen=True):
    """One of the answers to choose from."""

    label: str
    description: str = ""


class ChoiceQuestion(Question, frozen=True, kw_only=True, tag="choice"):
    """Asked by a tool that needs to know something."""

    question: str
    header: str = ""
    options: tuple[QuestionOption, ...] = ()
    multi_select: bool = False
    allow_free_text: bool = True
    """Whether the user may answer in their own words; without options there is no other way."""


class PlanQuestion(Question, frozen=True, kw_only=True, tag="plan"):
    """Asked when the model has a plan and wants to go to work."""

    plan: str
    plan_file_path: str = ""


class FormQuestion(Question, frozen=True, kw_only=True, tag="form"):
    """Asked by a server that needs values in the form of a JSON schema."""

    message: str
    schema: JsonObject
    server: str = ""


class PermissionAnswer(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """An answer with more to it than yes or no."""

    allow: bool
    scope: AnswerScope = "once"
    """How long a yes counts."""
    message: str = ""
    """What the model is told with a no, or before the result."""
    updated_input: JsonObject | None = None
    """The input to run instead. It is judged again, and a changed one is allowed only once."""


class ChoiceAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the user chose."""

    chosen: tuple[str, ...] = ()
    """Labels, or the user's own words."""
    dismissed: bool = False
    """The user does not want to answer."""
    feedback: str = ""
    """What a user who does not answer says instead, for the model."""


class PlanAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Whether the user approved a plan, and with which words."""

    approve: bool
    feedback: str = ""
    """For the model: what to change, or what to mind."""
    plan: str = ""
    """The plan as the user changed it; empty: as it was."""
    mode: str | None = None
    """The permission mode to go on in; `None` for the one before."""


class FormAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the user filled in."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject = msgspec.field(default_factory=dict)


AnyQuestion: TypeAlias = PermissionQuestion | ChoiceQuestion | PlanQuestion | FormQuestion
Answer: TypeAlias = PermissionAnswer | ChoiceAnswer | PlanAnswer | FormAnswer

_ANSWERS: dict[type[Question], type[Struct]] = {
    PermissionQuestion: PermissionAnswer,
    ChoiceQuestion: ChoiceAnswer,
    PlanQuestion: PlanAnswer,
    FormQuestion: FormAnswer,
}
_SCOPES: dict[str, AnswerScope] = {"allow-session": "session", "allow-project": "project"}


def read_answer(question: Question, given: object) -> Answer | None:
    """What was answered, if it is an answer to this question: one of its type, the same as a mapping, or in
    short a yes or no, `"allow-session"` or `"allow-project"` about a call, words about a plan, a text or a
    list of texts for a choice.
    """
    short = _read_short(question, given)
    if short is not None:
        return short
    kind = _ANSWERS.get(type(question))
    if kind is None or not isinstance(given, dict | kind):
        return None
    try:  # by way of plain values: nothing is shared, and the fields of a struct are checked as well
        plain = msgspec.to_builtins(given)
        return cast("Answer", msgspec.convert(plain, kind))
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError):
        return None


def _read_short(question: Question, given: object) -> Answer | None:
    match question:
        case PermissionQuestion():
            if isinstance(given, bool):
                return PermissionAnswer(allow=given)
            if isinstance(given, str) and given in _SCOPES:
                return PermissionAnswer(allow=True, scope=_SCOPES[given])
        case PlanQuestion():
            if isinstance(given, bool):
                return PlanAnswer(approve=given)
            if isinstance(given, str):
                return PlanAnswer(approve=False, feedback=given)
        case ChoiceQuestion():
            if isinstance(given, str):
                return ChoiceAnswer(chosen=(given,))
            if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
                return ChoiceAnswer(chosen=tuple(given))
    return None


def allow_changed(question: PermissionQuestion, name: str, value: Json) -> PermissionAnswer:
    """A yes to the call with another value, of which the model is told."""
    return PermissionAnswer(
        allow=True,
        message=f"The user changed the {name} before it ran: {value}",
        updated_input={**question.tool_input, name: value},
    )


def answer_to_plain(answer: Answer | None) -> Any:
    """As events and journals have it."""
    return None if answer is None else msgspec.to_builtins(answer)
