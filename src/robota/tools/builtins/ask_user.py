"""The AskUserQuestion tool: questions with options for whoever sits in front of the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from robota.core.errors import describe_exception
from robota.core.messages import Json, JsonObject
from robota.core.tool import Ask, ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside

NOBODY = "Nobody is attached to this session who could answer."
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "minItems": 1,
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string", "minLength": 1},
                    "header": {"type": "string", "description": "A label of at most a few words."},
                    "options": {
                        "type": "array",
                        "maxItems": 10,
                        "items": {
                            "anyOf": [
                                {"type": "string", "minLength": 1},
                                {
                                    "type": "object",
                                    "properties": {
                                        "label": {"type": "string", "minLength": 1},
                                        "description": {"type": "string"},
                                    },
                                    "required": ["label"],
                                },
                            ]
                        },
                    },
                    "multiSelect": {"type": "boolean", "description": "Default: false."},
                    "allowFreeText": {"type": "boolean", "description": "Default: true."},
                },
                "required": ["question"],
            },
        },
        "answers": {
            "type": "object",
            "description": "Leave it out: a program around the session may put in answers it has already.",
        },
    },
    "required": ["questions"],
    "additionalProperties": False,
}


class QuestionOption(Struct, frozen=True):
    label: str
    description: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """What `ToolContext.ask` gets.

    It returns the chosen label or the user's own words, a list of them with `multi_select`, or `None` when
    the user dismissed the question.
    """

    question: str
    header: str = ""
    options: tuple[QuestionOption, ...] = ()
    multi_select: bool = False
    allow_free_text: bool = True
    """Whether the user may answer in their own words; without options there is no other way."""


def ask_user_tool() -> FunctionTool:
    async def ask_questions(
        ctx: ToolContext, questions: list[JsonObject], answers: JsonObject | None = None
    ) -> ToolResult:
        wanted = [_read(question) for question in questions]
        known = dict(answers or {})
        if ctx.ask is None and any(one.question not in known for one in wanted):
            return _answer({"unavailable": True, "reason": NOBODY})
        try:
            return await _ask_each(wanted, known, ctx.ask)
        except Exception as error:  # noqa: BLE001 - the front end is foreign code
            return _answer({"unavailable": True, "reason": f"Asking failed: {describe_exception(error)}"})

    return FunctionTool(
        "AskUserQuestion", text_beside(__file__), PARAMETERS, ask_questions, tool_class="inspect"
    )


def _read(question: Mapping[str, Json]) -> Question:
    options = [
        QuestionOption(option)
        if isinstance(option, str)
        else QuestionOption(option["label"], option.get("description", ""))
        for option in question.get("options", ())
    ]
    return Question(
        question=question["question"],
        header=question.get("header", ""),
        options=tuple(options),
        multi_select=question.get("multiSelect", False),
        allow_free_text=question.get("allowFreeText", True) or not options,
    )


async def _ask_each(questions: Sequence[Question], known: JsonObject, ask: Ask | None) -> ToolResult:
    """One after the other, so that a dismissed one saves the user the rest."""
    answers: JsonObject = {}
    for index, question in enumerate(questions):
        if question.question in known:
            answer = known[question.question]
        else:
            answer = None if ask is None else await ask(question)
        if answer is None:
            rest = [one.question for one in questions[index + 1 :]]
            return _answer({"answers": answers, "dismissed": question.question, "cancelled": rest})
        answers[question.question] = _tidy(answer, question)
    return _answer({"answers": answers})


def _tidy(answer: Json, question: Question) -> Json:
    """A text, or a list of texts where several may be chosen."""
    if isinstance(answer, list | tuple):
        texts = [str(one) for one in answer]
        return texts if question.multi_select else ", ".join(texts)
    return [str(answer)] if question.multi_select else str(answer)


def _answer(value: JsonObject) -> ToolResult:
    return ToolResult(content=msgspec.json.encode(value).decode(), metadata=value)
