"""Lists to choose from: earlier sessions, models, prompts to go back to, tasks in the background."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from robota.core.errors import RobotaError
from robota.sdk.view.neutral import neutral_line
from robota.tui.dialogs import Dialog, Line, Option

if TYPE_CHECKING:
    from robota.core.background import TaskSnapshot
    from robota.tui.front import FrontEnd
    from robota.tui.words import Words

PARTS = ("both", "chat", "code")


def list_dialog(title: str, options: Iterable[Option]) -> Dialog:
    """Opened by the user, so that keys count at once and letters look for an entry."""
    lines = [Line(title, "dialog.title")]
    return Dialog(lines, tuple(options), guarded=False, filtered=True, closable=True)


async def pick_session(app: FrontEnd, wanted: str = "") -> None:
    """An earlier session in the place of this one: that of an id or a name, or one of a list."""
    if wanted:
        await _open_session(app, wanted)
        return
    kept = await app.host.list_sessions()
    if not kept:
        app.presenter.notice(app.words("sessions.none"))
        return
    options = [
        Option(
            label=neutral_line(each.name or each.preview or each.id),
            value=each.id,
            detail=" · ".join(
                (
                    when_shown(each.updated),
                    *([] if each.messages is None else [app.words("sessions.messages", count=each.messages)]),
                    each.id[:8],
                )
            ),
        )
        for each in kept
    ]
    chosen = await app.dialogs.ask(list_dialog(app.words("sessions.title"), options))
    if chosen is not None:
        await _open_session(app, chosen)


async def _open_session(app: FrontEnd, wanted: str) -> None:
    try:
        app.adopt(await app.host.open_session(wanted), recap=True)
    except RobotaError as error:
        app.presenter.error(str(error))


async def pick_model(app: FrontEnd) -> None:
    """Another model of the same provider, where that says which it has; else how to name one."""
    now, why = app.host.read_status(app.session).model, ""
    models: Sequence[str] = ()
    try:
        models = await app.host.list_models()
    except RobotaError as error:
        why = f" {app.words('models.unlisted', reason=error)}"
    if not models:
        app.presenter.notice(app.words("models.none", model=now) + why)
        return
    options = [
        Option(label=neutral_line(each), value=each, detail=app.words("models.now") if each == now else "")
        for each in models
    ]
    chosen = await app.dialogs.ask(list_dialog(app.words("models.title"), options))
    if chosen is not None:
        app.turns.command("model", chosen)


def when_shown(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%d %b %H:%M")
    except ValueError:
        return ""


async def pick_rewind(app: FrontEnd) -> None:
    """Go back to before a prompt: which one, then files, conversation or both."""
    try:
        known = await app.host.list_checkpoints()
    except RobotaError as error:
        app.presenter.error(str(error))
        return
    if not known:
        app.presenter.notice(app.words("rewind.none"))
        return
    options = [
        Option(
            label=neutral_line(each.prompt),
            value=each.number,
            detail=f"{each.at.astimezone():%H:%M}"
            + (f" · {app.words('rewind.files', count=each.files)}" if each.files else ""),
        )
        for each in reversed(known)
    ]
    number = await app.dialogs.ask(list_dialog(app.words("rewind.title"), options))
    if number is None:
        return
    part = await app.dialogs.ask(part_dialog(app.words))
    if part is not None:
        app.turns.command("rewind", f"restore {number} {part}")


def part_dialog(words: Words) -> Dialog:
    options = [Option(label=words(f"rewind.{part}"), value=part) for part in PARTS]
    return list_dialog(words("rewind.what"), options)


async def pick_task(app: FrontEnd, tasks: tuple[TaskSnapshot, ...]) -> None:
    """What one of the tasks in the background has to say."""
    if not tasks:
        app.presenter.notice(app.words("tasks.none"))
        return
    options = [
        Option(label=neutral_line(each.label), value=each.task_id, detail=f"{each.state} · {each.task_id}")
        for each in tasks
    ]
    chosen = await app.dialogs.ask(list_dialog(app.words("tasks.title"), options))
    if chosen is not None:
        app.turns.command("background", f"read {chosen}")
