"""The routes about sessions: list, search, create, resume, fork, rename, export, delete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response
from starlette.types import ASGIApp

from robota.core.errors import SessionNotFoundError, ValidationError
from robota.sdk.past_sessions import ExportFormat, export_session
from robota.sdk.session_facts import SessionDetails, SessionFacts, SessionPage
from robota.sdk.view.status import find_branch
from robota.transports.host import HostedSession, SessionHost
from robota.transports.http.call import Call
from robota.transports.http.described import describe_change, describe_kept, describe_open, describe_whole
from robota.transports.http.replies import HEADERS, HttpError, reply
from robota.transports.http.route import Route
from robota.transports.session_maker import SessionWish

if TYPE_CHECKING:
    from robota.sdk.kept_sessions import SessionSummary

PAGE = 50
_MOST_HITS = 200
_MEDIA = {"markdown": "text/markdown", "html": "text/html", "json": "application/json"}


class ListQuery(Struct, frozen=True, kw_only=True):
    """Which sessions, and how many."""

    query: str = ""
    """Words that were said in it."""
    cwd: str = ""
    limit: int = PAGE
    cursor: str = ""
    """The `next` of the page before."""


class ExportQuery(Struct, frozen=True):
    """In which form."""

    format: ExportFormat = "markdown"


class NewSession(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The session that is wanted."""

    cwd: str | None = None
    name: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    resume: str | None = None
    fork: bool = False
    at: int | None = None
    """With `fork`: the number of messages that the copy begins with."""
    event: int | None = None
    """With `fork`, in the place of `at`: the number of the event up to which the copy goes."""


class ChangedSession(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What shall be different; what is left out stays."""

    name: str | UnsetType | None = UNSET
    permission_mode: str | UnsetType = UNSET
    model: str | UnsetType = UNSET


async def list_sessions(call: Call) -> ASGIApp:
    query: ListQuery = call.query
    if query.limit < 1 or query.limit > _MOST_HITS:
        raise HttpError(422, "invalid", f"limit is a number from 1 to {_MOST_HITS}.")
    found = await to_thread.run_sync(_find_sessions, call.host, query)
    start = 0
    if query.cursor:
        ids = [facts.id for facts in found]
        if query.cursor not in ids:
            raise HttpError(422, "invalid", "The cursor is of another list: leave it out.")
        start = ids.index(query.cursor) + 1
    page = found[start : start + query.limit]
    more = start + query.limit < len(found)
    return reply(SessionPage(sessions=tuple(page), next=page[-1].id if more else None))


def _find_sessions(host: SessionHost, query: ListQuery) -> list[SessionFacts]:
    store, cwd = host.store, query.cwd or None
    kept = [] if store is None else [each for each in store.list(cwd=cwd) if not each.problem]
    if query.query.strip():
        return _search(host, query, {each.id: each for each in kept})
    known = {each.id for each in kept}
    unsaved = [
        hosted for id, hosted in list(host.sessions.items())
        if id not in known and cwd in (None, hosted.session.cwd)
    ]  # fmt: skip
    return [
        *(describe_open(each, None) for each in reversed(unsaved)),
        *(_facts(host, each) for each in kept),
    ]


def _search(host: SessionHost, query: ListQuery, kept: dict[str, SessionSummary]) -> list[SessionFacts]:
    hits = (
        [] if host.store is None else host.store.search(query.query, cwd=query.cwd or None, limit=_MOST_HITS)
    )
    snippets: dict[str, str] = {}
    for hit in hits:
        snippets.setdefault(hit.session_id, hit.snippet)
    return [_facts(host, kept[id], snippet) for id, snippet in snippets.items() if id in kept]


def _facts(host: SessionHost, summary: SessionSummary, preview: str = "") -> SessionFacts:
    hosted = host.sessions.get(summary.id)
    return describe_kept(summary, preview) if hosted is None else describe_open(hosted, summary, preview)


async def create_session(call: Call) -> ASGIApp:
    wanted = await call.body(NewSession)
    wish = SessionWish(
        cwd=wanted.cwd,
        name=wanted.name,
        model=wanted.model,
        permission_mode=wanted.permission_mode,
        resume=wanted.resume,
        fork=wanted.fork,
    )
    host, in_the_middle = call.host, wanted.at is not None or wanted.event is not None
    if wanted.resume is None:
        if wanted.fork or in_the_middle:
            raise HttpError(422, "invalid", "fork, at and event need resume: the session to begin with.")
        hosted, status = await host.create(wish), 201
    elif wanted.fork or in_the_middle:
        hosted, status = await host.fork(wish, wanted.at, wanted.event), 201
    else:
        status = 200 if wanted.resume in host.sessions else 201
        hosted = await host.resume(wish)
    return await reply_whole(call, hosted, status)


async def show_session(call: Call) -> ASGIApp:
    host, id = call.host, call.session_id or ""
    hosted = await call.find()
    if hosted is not None:
        return await reply_whole(call, hosted)
    kept, branch = await to_thread.run_sync(_look, host, id)
    if kept is None:
        raise SessionNotFoundError(f"There is no session {id}.")
    last = await to_thread.run_sync(host.last_event, id)
    facts = describe_kept(kept)
    known = {name: getattr(facts, name) for name in facts.__struct_fields__}
    return reply(SessionDetails(**known, last_event=last, read_only=call.facts.read_only, branch=branch))


async def reply_whole(call: Call, hosted: HostedSession, status: int = 200) -> ASGIApp:
    """A session that is open, as it is now."""
    kept, branch = await to_thread.run_sync(_look, call.host, hosted.id)
    return reply(describe_whole(hosted, kept, read_only=call.facts.read_only, branch=branch), status)


async def reply_changed(call: Call, hosted: HostedSession) -> ASGIApp:
    """The same after somebody has changed it, which everybody is told."""
    hosted.tell("session_changed", describe_change(hosted))
    return await reply_whole(call, hosted)


def _look(host: SessionHost, id: str) -> tuple[SessionSummary | None, str]:
    """What only files know: a session as it is kept, and the branch of its directory."""
    kept = None if host.store is None else next((each for each in host.store.list() if each.id == id), None)
    hosted = host.sessions.get(id)
    cwd = hosted.session.cwd if hosted is not None else "" if kept is None else kept.cwd
    return kept, find_branch(cwd) if cwd else ""


async def change_session(call: Call) -> ASGIApp:
    wanted = await call.body(ChangedSession)
    hosted = await call.session()
    session = hosted.session
    if wanted.permission_mode is not UNSET:
        await session.switch_mode(wanted.permission_mode)
    if wanted.model is not UNSET:
        if not wanted.model:
            raise ValidationError("model is the name of a model.", field="model")
        session.session.set_model(wanted.model)
    if wanted.name is not UNSET:
        await session.session.open()
        session.name = wanted.name
    return await reply_changed(call, hosted)


async def delete_session(call: Call) -> ASGIApp:
    host, id = call.host, call.session_id or ""
    if id not in host.sessions and not host.is_kept(id):
        raise SessionNotFoundError(f"There is no session {id}.")
    await host.close(id)
    if host.store is not None:
        await to_thread.run_sync(host.store.delete, id)
    return Response(status_code=204, headers=HEADERS)


async def export(call: Call) -> ASGIApp:
    query: ExportQuery = call.query
    host, id = call.host, call.session_id or ""
    if host.store is None or not host.is_kept(id):
        raise SessionNotFoundError(f"There is no session {id} that was kept.")
    text = await to_thread.run_sync(partial(export_session, host.store, id, query.format))
    # A page made of what models and tools said must not run here, where the token is.
    headers = {**HEADERS, "content-security-policy": "sandbox", "content-disposition": "attachment"}
    return Response(text, headers=headers, media_type=_MEDIA[query.format])


ROUTES = [
    Route(
        method="GET", path="/sessions", handler=list_sessions, query=ListQuery,
        summary="The sessions, the one used last first; with `query` those in which it was said.",
        answers={200: SessionPage},
    ),
    Route(
        method="POST", path="/sessions", handler=create_session, body=NewSession, changes=True,
        summary="A new session, or one that is kept, or a copy of one.",
        answers={200: SessionDetails, 201: SessionDetails},
    ),
    Route(
        method="GET", path="/sessions/{id}", handler=show_session, summary="A session as it is now.",
        answers={200: SessionDetails},
    ),
    Route(
        method="PATCH", path="/sessions/{id}", handler=change_session, body=ChangedSession, changes=True,
        summary="Give it another name, model or permission mode.", answers={200: SessionDetails},
    ),
    Route(
        method="DELETE", path="/sessions/{id}", handler=delete_session, changes=True,
        summary="End and delete it; its files stay in the trash for thirty days.", answers={204: None},
    ),
    Route(
        method="GET", path="/sessions/{id}/export", handler=export, query=ExportQuery,
        summary="The session as a text, without secrets.", answers={200: " ".join(_MEDIA.values())},
    ),
]  # fmt: skip
