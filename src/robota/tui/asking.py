"""The questions of a session as dialogs, and what was chosen as their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robota.core.messages import Json, JsonObject
from robota.core.questions import (
    ChoiceAnswer,
    ChoiceQuestion,
    FormAnswer,
    FormQuestion,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanQuestion,
    allow_changed,
)
from robota.sdk.tool_states import SUBJECTS, write_value
from robota.sdk.view.neutral import visible
from robota.tui.dialogs import Dialog, Line, Option

if TYPE_CHECKING:
    from robota.core.questions import Question
    from robota.tui.app import TerminalApp
    from robota.tui.front import FrontEnd
    from robota.tui.words import Words

DIFF_ROWS = 12
SUBJECT_ROWS = 40
EDITABLE = "command"


def permission_dialog(question: PermissionQuestion, words: Words, rows: int) -> Dialog:
    """The question before a call. Nothing is hidden in it, and the marked answer is no."""
    options = [Option(key="y", label=words("permission.once"), value=PermissionAnswer(allow=True))]
    if question.rule:
        rule = visible(question.rule)
        options += [
            Option(
                key="a",
                label=words("permission.session", rule=rule),
                value=PermissionAnswer(allow=True, scope="session"),
            ),
            Option(
                key="p",
                label=words("permission.project", rule=rule),
                value=PermissionAnswer(allow=True, scope="project"),
            ),
        ]
    command = question.tool_input.get(EDITABLE)
    if isinstance(command, str):
        options.append(
            Option(
                key="e",
                label=words("permission.edit"),
                entry=True,
                text=command,
                value=lambda text: allow_changed(question, EDITABLE, text),
            )
        )
    no = len(options)
    options += [
        Option(key="n d", label=words("permission.no"), value=PermissionAnswer(allow=False)),
        Option(
            key="w",
            label=words("permission.no-because"),
            entry=True,
            value=lambda text: PermissionAnswer(allow=False, message=text),
        ),
    ]
    return Dialog(permission_lines(question, words, rows), options, default=no)


def permission_lines(question: PermissionQuestion, words: Words, rows: int) -> list[Line]:
    lines = [Line(words("permission.title", tool=visible(question.tool_name)), "dialog.title")]
    if question.agent_id:
        lines.append(Line(f"  {words('permission.agent', agent=visible(question.agent_id))}", "dim"))
    given = question.tool_input
    for name in sorted(given, key=lambda name: name not in SUBJECTS):
        if question.diff and name not in SUBJECTS:
            continue  # the diff says it better
        lines += _argument(name, given[name], words, rows)
    if not given:
        lines.append(Line(f"  {words('permission.no-arguments')}", "dim"))
    if question.diff:
        lines += _diff_lines(question.diff, words, rows if rows > SUBJECT_ROWS else DIFF_ROWS)
    lines.append(Line(f"  {words('permission.cwd', cwd=visible(question.cwd))}", "dim"))
    is_said = question.part in [str(value) for value in given.values()] or question.reason.endswith(
        f": {question.part}."
    )
    if question.part and not is_said:
        lines.append(Line(words("permission.part", part=visible(question.part)), "dialog.part", "  "))
    if question.reason:
        lines.append(Line(visible(question.reason), "dim", "  "))
    return lines


def _argument(name: str, value: Json, words: Words, rows: int) -> list[Line]:
    """Of many lines the first and the last: what is bad about a command often stands at its end."""
    given = _written(value)
    if name not in SUBJECTS and len(given) == 1:
        return [Line(f"{visible(name)}: {visible(given[0])}", mark="  ")]
    head = [] if name in SUBJECTS else [Line(f"  {visible(name)}:", "dim")]
    shown = [Line(visible(row), "dialog.subject", "  | ") for row in given]
    left, half = len(given) - rows, rows // 2
    if left <= 0:
        return [*head, *shown]
    more = Line(f"  {words('permission.more', count=left)}", "dialog.part")
    return [*head, *shown[:half], more, *shown[-half:]]


def _written(value: Json) -> list[str]:
    """An argument as the model wrote it."""
    return (value if isinstance(value, str) else write_value(value)).split("\n")


def _diff_lines(diff: str, words: Words, rows: int) -> list[Line]:
    """Without its two lines of names: the file is named above it."""
    given = diff.rstrip("\n").split("\n")
    given = given[2:] if diff.startswith("--- ") else given
    shown = [Line(f"  {visible(row)}", _diff_style(row)) for row in given[:rows]]
    left = len(given) - rows
    return [*shown, Line(f"  {words('permission.more', count=left)}", "dim")] if left > 0 else shown


def _diff_style(row: str) -> str:
    return {"+": "diff.added", "-": "diff.removed", "@": "diff.place"}.get(row[:1], "")


def choice_dialog(question: ChoiceQuestion, words: Words) -> Dialog:
    """What a tool wants to know; Esc does not answer."""
    options = [
        Option(
            key=str(at) if at < 10 else "",
            label=visible(each.label),
            value=each.label,
            detail=visible(each.description),
        )
        for at, each in enumerate(question.options, 1)
    ]
    if question.allow_free_text or not options:
        options.append(
            Option(key="o", label=words("choice.own-words"), entry=True, value=lambda text: OwnWords(text))
        )
    head = visible(question.header)
    lines = [*([Line(head, "dim")] if head else []), *_text_lines(question.question, "dialog.title")]
    return Dialog(
        lines, options, many=question.multi_select, closable=True, escape=ChoiceAnswer(dismissed=True)
    )


class OwnWords(str):
    """An answer that is none of the options."""


def choice_answer(chosen: Any) -> ChoiceAnswer:
    if isinstance(chosen, ChoiceAnswer):
        return chosen
    return ChoiceAnswer(
        chosen=tuple(str(each) for each in chosen) if isinstance(chosen, list) else (str(chosen),)
    )


def plan_dialog(question: PlanQuestion, words: Words) -> Dialog:
    """The plan itself is printed above; this only asks."""
    options = [
        Option(key="y", label=words("plan.yes"), value=PlanAnswer(approve=True)),
        Option(key="a", label=words("plan.accept-edits"), value=PlanAnswer(approve=True, mode="acceptEdits")),
        Option(key="n d", label=words("plan.no"), value=PlanAnswer(approve=False)),
        Option(
            key="w",
            label=words("plan.no-because"),
            entry=True,
            value=lambda text: PlanAnswer(approve=False, feedback=text),
        ),
    ]
    return Dialog([Line(words("plan.title"), "dialog.title")], options, default=2)


def _text_lines(text: str, style: str) -> list[Line]:
    """All of a text that somebody has to answer."""
    return [Line(visible(line), style, "") for line in text.split("\n")]


def make_dialog(question: Question, words: Words, rows: int) -> Dialog | None:
    """The dialog for a question, with so many rows of what it is about; `None` for a form, which is
    several."""
    match question:
        case PermissionQuestion():
            return permission_dialog(question, words, rows)
        case ChoiceQuestion():
            return choice_dialog(question, words)
        case PlanQuestion():
            return plan_dialog(question, words)
    return None


class Asking:
    """Puts the questions of a session to the user."""

    def __init__(self, app: FrontEnd, rows: int = SUBJECT_ROWS) -> None:
        """`rows` of an argument and of a diff are shown at once."""
        self._app = app
        self._rows = rows

    async def __call__(self, question: Question) -> Any:
        """The handler of the session's questions; cancelled when somebody else has answered."""
        app = self._app
        dialog = make_dialog(question, app.words, self._rows)
        if dialog is None:
            return await ask_form(question, app) if isinstance(question, FormQuestion) else None
        if isinstance(question, PermissionQuestion):
            dialog.details = lambda: app.presenter.notice(all_of(question))
        app.presenter.flush()
        app.notify(app.words("notify.question"))
        answer = await app.dialogs.ask(dialog)
        return choice_answer(answer) if isinstance(question, ChoiceQuestion) else answer

    async def confirm(self, question: str, *, lines: Sequence[str] = ()) -> bool:
        """A yes or no, which is no unless somebody says yes."""
        words = self._app.words
        options = [
            Option(key="y", label=words("yes"), value=True),
            Option(key="n d", label=words("no"), value=False),
        ]
        head = [*(Line(visible(line), mark="") for line in lines), Line(question, "dialog.title", "")]
        return bool(
            await self._app.dialogs.ask(Dialog(head, options, default=1, closable=True, escape=False))
        )


class ScreenAsking(Asking):
    """The same where dialogs are drawn and keys choose."""

    def __init__(self, app: TerminalApp) -> None:
        super().__init__(app)
        self._screen = app

    async def __call__(self, question: Question) -> Any:
        """What the question is about stands above it when it opens."""
        self._screen.presenter.flush()
        await self._screen.printing.done()
        return await super().__call__(question)

    def changed(self) -> None:
        """A dialog opened, closed, or is another one: show it and send the keys where they belong."""
        app = self._screen
        dialog = app.dialogs.current
        if dialog is not None and dialog.entry is not None and app.layout.current_buffer is not app.entry:
            app.entry.text = dialog.entry.text
            app.entry.cursor_position = len(dialog.entry.text)
        app.region.focus()
        if dialog is None:
            app.surface.redraw()
        else:
            app.surface.invalidate()

    def write(self) -> None:
        """The line of an option is written."""
        dialog = self._screen.dialogs.current
        if dialog is not None:
            dialog.write(self._screen.entry.text)
            self.changed()

    def show_details(self) -> None:
        """All of what is asked about, as a block: no pager, and it stays in the scrollback."""
        dialog = self._screen.dialogs.current
        if dialog is not None and dialog.details is not None:
            dialog.details()


def all_of(question: PermissionQuestion) -> str:
    parts = [f"{visible(question.tool_name)}:"]
    for name, value in question.tool_input.items():
        parts += (f"  {visible(name)}:", *(f"  | {visible(row)}" for row in _written(value)))
    if question.diff:
        parts += (f"  {visible(row)}" for row in question.diff.split("\n"))
    return "\n".join(parts)


async def ask_form(question: FormQuestion, app: FrontEnd) -> FormAnswer:
    """The fields of a form, one after the other."""
    app.presenter.flush()
    content: JsonObject = {}
    fields = question.schema.get("properties")
    for name, schema in (fields if isinstance(fields, dict) else {}).items():
        answer = await app.dialogs.ask(field_dialog(question, str(name), schema, app.words))
        if answer is None:
            return FormAnswer(action="decline")
        content[str(name)] = answer
    return FormAnswer(action="accept", content=content)


def field_dialog(question: FormQuestion, name: str, schema: Any, words: Words) -> Dialog:
    schema = schema if isinstance(schema, dict) else {}
    about = visible(str(schema.get("description") or schema.get("title") or name))
    lines = [*_text_lines(question.message, "dialog.title"), Line(f"  {visible(name)}: {about}")]
    choices = [True, False] if schema.get("type") == "boolean" else schema.get("enum")
    if isinstance(choices, list):
        options = [Option(label=visible(str(each)), value=each) for each in choices]
    else:
        read = _READERS.get(str(schema.get("type")), str)
        options = [Option(key="o", label=words("choice.own-words"), entry=True, value=read)]
    return Dialog(lines, options, closable=True)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # whoever asked says what is wrong with it


def _integer(text: str) -> int | str:
    return int(text) if text.strip().lstrip("-").isdigit() else text


_READERS: dict[str, Any] = {"number": _number, "integer": _integer}
