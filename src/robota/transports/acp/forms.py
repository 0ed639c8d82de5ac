"""Questions that an editor shows as a form: a user's own words, several choices, what a server wants."""

from __future__ import annotations

from robota.core.messages import Json, JsonObject
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, FormAnswer, FormQuestion
from robota.sdk.view.neutral import neutralise

CHOICE, WORDS = "choice", "words"


def make_form(question: ChoiceQuestion | FormQuestion) -> tuple[str, JsonObject]:
    """What the user is asked, and the schema of the answer."""
    if isinstance(question, FormQuestion):
        asker = f"{question.server}: " if question.server else ""
        return neutralise(f"{asker}{question.message}"), question.schema
    properties: JsonObject = {}
    if question.options:
        offered = [
            {"const": each.label, "title": neutralise(_title(each.label, each.description))}
            for each in question.options
        ]
        properties[CHOICE] = (
            {"type": "array", "title": "Your choice", "items": {"anyOf": offered}}
            if question.multi_select
            else {"type": "string", "title": "Your choice", "oneOf": offered}
        )
    if question.allow_free_text or not question.options:
        properties[WORDS] = {"type": "string", "title": "In your own words"}
    return neutralise(question.question), {"type": "object", "properties": properties}


def _title(label: str, description: str) -> str:
    return f"{label}: {description}" if description else label


def read_form(question: ChoiceQuestion | FormQuestion, given: Json) -> ChoiceAnswer | FormAnswer:
    """The answer, as the session takes it. What is not clearly one is a refusal to answer."""
    told = given if isinstance(given, dict) else {}
    action = told.get("action")
    content = told.get("content") if action == "accept" else None
    content = content if isinstance(content, dict) else {}
    if isinstance(question, FormQuestion):
        if action == "accept":
            return FormAnswer(action="accept", content=content)
        return FormAnswer(action="decline" if action == "decline" else "cancel")
    words, chosen = content.get(WORDS), content.get(CHOICE)
    if isinstance(words, str) and words.strip():
        return ChoiceAnswer(chosen=(words,))
    labels = {each.label for each in question.options}
    picked = [each for each in (chosen if isinstance(chosen, list) else [chosen]) if each in labels]
    return ChoiceAnswer(chosen=tuple(picked)) if picked else ChoiceAnswer(dismissed=True)
