"""The routes of one session: prompts, commands, answers, and what it is now. They stand below the path of the
session, and at the root for the first one."""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from anyio import to_thread
from msgspec import Meta, Struct, to_builtins
from starlette.types import ASGIApp

from robota.core.messages import ImagePart, Json, JsonObject, Prompt, TextPart
from robota.sdk.commands.system.context import list_parts, show_part
from robota.sdk.context.references import refer_to
from robota.sdk.fuzzy import find
from robota.sdk.project_files import ProjectFiles
from robota.sdk.round_usage import list_rounds
from robota.transports.blocks import IMAGES
from robota.transports.http.call import Call
from robota.transports.http.replies import HttpError, reply
from robota.transports.http.route import Route, at_both
from robota.transports.http.sse import EventStream
from robota.transports.http.turn_stream import TurnStream

if TYPE_CHECKING:
    from robota.core.questions import Question
    from robota.sdk.interactive import InteractiveSession

MOST_FILES = 50
ClientId: TypeAlias = Annotated[str, Meta(max_length=64)]


class Image(Struct, frozen=True, kw_only=True, rename="camel"):
    """An image of a prompt."""

    media_type: str
    data: str
    """Base64."""


class Submit(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A prompt."""

    prompt: str
    display: str | None = None
    """What front ends show in its place."""
    raw: str | None = None
    """What hooks are told was typed."""
    images: tuple[Image, ...] = ()
    stream: bool | None = None
    """Whether the answer is the stream of the turn; by default unless JSON is accepted only."""
    submit_id: str = ""
    """A name for it: the same one sent again is not done twice."""


class RunCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A slash command, without the slash."""

    name: str = ""
    args: str = ""


class Steer(Struct, frozen=True, forbid_unknown_fields=True):
    """Words for the model while it works."""

    text: str


class GivenAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to a question, as its kind takes it."""

    answer: Any


class Typing(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether somebody is writing a prompt."""

    client: ClientId
    """As in the address of its events."""
    typing: bool = True


class EventsQuery(Struct, frozen=True):
    """Where to begin."""

    after: int = 0
    """The number of the last event that is known."""
    client: ClientId = ""
    """Who watches, for the others: a name of the connection that no other client has."""


class ContextQuery(Struct, frozen=True):
    """More about one of the parts."""

    part: str = ""
    """Its name: the answer has its `text`."""


class FilesQuery(Struct, frozen=True):
    """Letters of the file's path."""

    query: str = ""


async def submit(call: Call) -> ASGIApp:
    wanted = await call.body(Submit)
    if not wanted.prompt.strip() and not wanted.images:
        raise HttpError(422, "invalid", "The prompt is empty.")
    prompt = read_prompt(wanted)
    hosted = await call.session()
    streamed = wanted.stream if wanted.stream is not None else not _wants_json(call)
    if streamed:
        return await TurnStream.begin(hosted, prompt, wanted.display, wanted.raw, id=wanted.submit_id)
    task = await hosted.submit(prompt, wanted.display, wanted.raw, id=wanted.submit_id)
    return reply({"submitId": task.get_name()}, 202)


def _wants_json(call: Call) -> bool:
    accepted = call.request.headers.get("accept", "*/*").lower()
    return "application/json" in accepted and "text/event-stream" not in accepted


def read_prompt(wanted: Submit) -> Prompt:
    if not wanted.images:
        return wanted.prompt
    for image in wanted.images:
        if image.media_type not in IMAGES:
            raise HttpError(422, "invalid", f"Images are of these types: {', '.join(IMAGES)}.")
        try:
            base64.b64decode(image.data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise HttpError(422, "invalid", f"The data of an image is not base64: {error}.") from error
    words = (TextPart(wanted.prompt),) if wanted.prompt else ()
    return (*words, *(ImagePart(image.data, image.media_type) for image in wanted.images))


async def run_command(call: Call) -> ASGIApp:
    wanted = await call.body(RunCommand)
    if not wanted.name:
        raise HttpError(400, "no_name", 'Name the command: {"name": "context"}.')
    hosted = await call.session()
    answer = await hosted.session.execute_command(wanted.name, wanted.args)
    if answer is None:
        raise HttpError(
            404, "unknown_command", f"There is no command {wanted.name!r}: GET …/commands has them."
        )
    await hosted.carry_out(answer)
    return reply({"message": answer.message, "success": answer.success, "data": dict(answer.data)})


async def abort(call: Call) -> ASGIApp:
    hosted = await call.session()
    await hosted.take_back(abort=True)
    return reply({"aborted": True})


async def cancel_queue(call: Call) -> ASGIApp:
    hosted = await call.session()
    await hosted.take_back(abort=False)
    return reply({"cancelled": True})


async def steer(call: Call) -> ASGIApp:
    wanted = await call.body(Steer)
    if not wanted.text.strip():
        raise HttpError(422, "invalid", "The text is empty.")
    hosted = await call.session()
    await hosted.session.session.open()
    hosted.session.steer(wanted.text)
    return reply({"accepted": True}, 202)


async def tell_typing(call: Call) -> ASGIApp:
    wanted = await call.body(Typing)
    hosted = await call.find() if call.session_id else await call.session()
    return reply(
        {"accepted": hosted is not None and hosted.presence.set_typing(wanted.client, wanted.typing)}
    )


async def answer_question(call: Call) -> ASGIApp:
    wanted = await call.body(GivenAnswer)
    hosted = await call.session()
    id = call.request.path_params["qid"]
    question = hosted.session.questions.open.get(id)
    if question is None:
        return reply({"accepted": False}, 409)
    if not hosted.session.questions.answer(id, wanted.answer, by=call.client):
        if id not in hosted.session.questions.open:
            return reply({"accepted": False}, 409)
        raise HttpError(422, "invalid", describe_answers(question))
    return reply({"accepted": True})


def describe_answers(question: Question) -> str:
    kind = type(question).__struct_config__.tag
    return f"That is no answer to a question of the kind {kind!r}: docs/serve.md has them."


async def events(call: Call) -> ASGIApp:
    after = max(call.query.after, read_last_id(call))
    hosted = await call.session() if call.session_id is None else await call.find()
    if hosted is not None:
        reader, id = hosted.read(after), call.query.client
        return EventStream(reader, partial(hosted.presence.arrive, id, call.client) if id else None)
    return EventStream(call.host.read_past(call.session_id or "", after))


def read_last_id(call: Call) -> int:
    given = call.request.headers.get("last-event-id", "").strip()
    if not given:
        return 0
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise HttpError(400, "bad_event_id", "Last-Event-ID is the number of an event, as `id:` gave it.")
    return int(given)


# --- what it is now -----------------------------------------------------------------------------------------


async def messages(call: Call) -> ASGIApp:
    session = (await call.session()).session
    return reply({"messages": to_builtins(session.messages)})


async def history(call: Call) -> ASGIApp:
    session = (await call.session()).session
    return reply({"history": to_builtins(session.full_history)})


async def context(call: Call) -> ASGIApp:
    session = (await call.session()).session
    told = describe_context(session)
    return reply({**told, "text": show_part(session, call.query.part)} if call.query.part else told)


def describe_context(session: InteractiveSession) -> JsonObject:
    state = session.context_state
    parts = [] if session.is_ready_made else list_parts(session)
    return {
        "maxTokens": state.max_tokens,
        "usedTokens": state.used_tokens,
        "usedPercentage": state.used_percentage,
        "remainingPercentage": state.remaining_percentage,
        "parts": [{"name": name, "tokens": tokens} for name, tokens in parts],
    }


async def executing(call: Call) -> ASGIApp:
    return reply({"executing": (await call.session()).session.is_executing})


async def pending(call: Call) -> ASGIApp:
    return reply({"pending": (await call.session()).session.pending_prompt})


async def commands(call: Call) -> ASGIApp:
    session = (await call.session()).session
    known = session.commands.commands()
    return reply({"commands": [
        {"name": each.name, "description": each.description, "argumentHint": each.argument_hint}
        for each in known
    ]})  # fmt: skip


async def tasks(call: Call) -> ASGIApp:
    work = (await call.session()).session.session.background
    return reply(
        {"tasks": to_builtins(list(work.tasks.values())), "groups": to_builtins(list(work.groups.values()))}
    )


async def usage(call: Call) -> ASGIApp:
    session = (await call.session()).session.session
    rounds = list_rounds(session.history, session.usage, session.model)
    report = session.usage.snapshot()
    told = {"costUsd": report.total.cost_usd, "rounds": to_builtins(rounds)}
    return reply({**to_builtins(report), **told})


async def files(call: Call) -> ASGIApp:
    hosted = await call.session()
    session = hosted.session
    hosted.files = hosted.files or ProjectFiles(session.cwd)
    is_denied = session.session.rules.path_filter(session.cwd)
    paths = await to_thread.run_sync(_find_files, hosted.files, session.cwd, call.query.query, is_denied)
    return reply([{"path": path, "reference": refer_to(path)} for path in paths])


def _find_files(known: ProjectFiles, cwd: str, letters: str, is_denied: Any) -> list[str]:
    found = find(letters, known.paths(), str, MOST_FILES * 2)
    if is_denied is not None:
        found = [path for path in found if not is_denied(f"{cwd}/{path}")]
    return list(filter(refer_to, found))[:MOST_FILES]


class Accepted(Struct, frozen=True):
    accepted: bool


class Submitted(Struct, frozen=True, rename="camel"):
    submit_id: str


class CommandAnswer(Struct, frozen=True):
    message: str
    success: bool
    data: dict[str, Json]


_OBJECT = dict[str, Any]

_SHOWN = (
    ("/messages", messages, "What was said."),
    ("/history", history, "The timeline."),
    ("/executing", executing, "Whether a turn is under way."),
    ("/pending", pending, "The prompt that waits."),
    ("/commands", commands, "The slash commands."),
    ("/tasks", tasks, "Work in the background."),
    ("/usage", usage, "Tokens and money."),
)

ROUTES = at_both(
    Route(
        method="POST", path="/submit", handler=submit, body=Submit, changes=True,
        summary="Begin a prompt: the stream of its turn, or at once its id.",
        answers={200: "text/event-stream", 202: Submitted},
    ),
    Route(
        method="POST", path="/command", handler=run_command, body=RunCommand, changes=True,
        summary="Run a slash command.", answers={200: CommandAnswer},
    ),
    Route(
        method="POST", path="/abort", handler=abort, changes=True,
        summary="Stop the turn under way and take back what waits.", answers={200: _OBJECT},
    ),
    Route(
        method="POST", path="/cancel-queue", handler=cancel_queue, changes=True,
        summary="Take back the prompt that waits.", answers={200: _OBJECT},
    ),
    Route(
        method="POST", path="/steer", handler=steer, body=Steer, changes=True,
        summary="Tell the model something while it works.", answers={202: Accepted},
    ),
    Route(
        method="POST", path="/typing", handler=tell_typing, body=Typing,
        summary="Tell the others who watch that a prompt is being written.", answers={200: Accepted},
    ),
    Route(
        method="POST", path="/questions/{qid}", handler=answer_question, body=GivenAnswer, changes=True,
        summary="Answer a question.", answers={200: Accepted, 409: Accepted},
    ),
    Route(
        method="GET", path="/events", handler=events, query=EventsQuery, token_in_query=True,
        summary="The events of the session, live, behind a number.", answers={200: "text/event-stream"},
    ),
    *(Route(method="GET", path=path, handler=handler, summary=summary, answers={200: _OBJECT})
      for path, handler, summary in _SHOWN),
    Route(
        method="GET", path="/context", handler=context, query=ContextQuery,
        summary="How full the window is, and with what.", answers={200: _OBJECT},
    ),
    Route(
        method="GET", path="/files", handler=files, query=FilesQuery,
        summary="Files of the project by some letters of their paths.", answers={200: list[_OBJECT]},
    ),
)  # fmt: skip
