"""Whether the user trusts the directory of a session, answered over the wire.

Whoever has the token may do what the user may, so they may answer this too; a server that only shows takes no
answer. An answer names the question that was shown: what the directory wants may have changed meanwhile.
"""

from __future__ import annotations

from msgspec import Struct
from starlette.types import ASGIApp

from robota.sdk.session_facts import SessionDetails
from robota.transports.http.call import Call
from robota.transports.http.replies import HttpError
from robota.transports.http.route import Route, at_both
from robota.transports.http.sessions import reply_changed
from robota.transports.trust_question import find_trust_question


class TrustAnswer(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The answer of somebody who was shown `trust`."""

    trust: bool
    trust_id: str
    """The `trustId` that stood beside the lines."""


async def answer_trust(call: Call) -> ASGIApp:
    wanted = await call.body(TrustAnswer)
    hosted = await call.session()
    session = hosted.session
    await session.ready()  # its files may want something else by now
    question = find_trust_question(session)
    if question is None:
        raise HttpError(409, "no_question", "There is nothing to trust: this directory asks for nothing.")
    if question.id != wanted.trust_id:
        raise HttpError(409, "trust_changed", "What this directory wants is not what was shown: look again.")
    if wanted.trust:
        await session.trust_project(question.trust)
    else:
        hosted.declined = question.id
    return await reply_changed(call, hosted)


ROUTES = at_both(
    Route(
        method="POST", path="/trust", handler=answer_trust, body=TrustAnswer, changes=True,
        summary="Say whether the directory may do what it was seen to want.", answers={200: SessionDetails},
    ),
)  # fmt: skip
