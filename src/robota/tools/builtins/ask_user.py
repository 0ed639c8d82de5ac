"""The AskUserQuestion tool: questions with options for whoever sits in front of the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from robota.core.errors import describe_exception
from robota.core.messages import Json, JsonObject
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, QuestionOption
from robota.core.tool import Ask, ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema

NOBODY = "Nobody is attached to this session who could answer."
PARAMETERS = arguments_schema(
    {
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
    "questions",
)


def ask_user_tool() -> FunctionTool:
    """The `AskUserQuestion` tool: the model asks the user to choose."""

    async def ask_questions(
        ctx: ToolContext, questions: list[JsonObject], answers: JsonObject | None = None
    ) -> ToolResult:
        wanted = [_read(question) for question in questions]
        try:
            return await _ask_each(wanted, dict(answers or {}), ctx.ask)
        except Exception as error:  # noqa: BLE001 - the front end is foreign code
            return _answer({"unavailable": True, "reason": f"Asking failed: {describe_exception(error)}"})

    return FunctionTool(
        "AskUserQuestion", text_beside(__file__), PARAMETERS, ask_questions, tool_class="inspect"
    )


def _read(question: Mapping[str, Json]) -> ChoiceQuestion:
    options = [
        QuestionOption(option)
        if isinstance(option, str)
        else QuestionOption(option["label"], option.get("description", ""))
        for option in question.get("options", ())
    ]
    return ChoiceQuestion(
        question=question["question"],
        header=question.get("header", ""),
        options=tuple(options),
        multi_select=question.get("multiSelect", False),
        allow_free_text=question.get("allowFreeText", True) or not options,
    )


async def _ask_each(questions: Sequence[ChoiceQuestion], known: JsonObject, ask: Ask | None) -> ToolResult:
    """One after the other, so that a dismissed one saves the user the rest."""
    answers: JsonObject = {}
    for index, question in enumerate(questions):
        if question.question in known:
            answers[question.question] = _tidy(known[question.question], question)
            continue
        answer = None if ask is None else await ask(question)
        if not isinstance(answer, ChoiceAnswer):
            return _answer({"unavailable": True, "reason": NOBODY})
        if answer.dismissed:
            rest = [one.question for one in questions[index + 1 :]]
            said: JsonObject = {"said": answer.feedback} if answer.feedback else {}
            return _answer({"answers": answers, "dismissed": question.question, "cancelled": rest, **said})
        answers[question.question] = _tidy(answer.chosen, question)
    return _answer({"answers": answers})


def _tidy(answer: Json, question: ChoiceQuestion) -> Json:
    """A text, or a list of texts where several may be chosen."""
    if isinstance(answer, list | tuple):
        texts = [str(one) for one in answer]
        return texts if question.multi_select else ", ".join(texts)
    return [str(answer)] if question.multi_select else str(answer)


def _answer(value: JsonObject) -> ToolResult:
    return ToolResult(content=msgspec.json.encode(value).decode(), metadata=value)
