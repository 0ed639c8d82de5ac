"""The question whether the user trusts the directory of a session, as somebody elsewhere is asked it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.core.jsontext import encode
from robota.sdk.trust import Trust

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


class TrustQuestion(Struct, frozen=True):
    """What a directory wants, in the lines that are shown; one that wants something else has another id."""

    id: str
    lines: tuple[str, ...]
    trust: Trust


def find_trust_question(session: InteractiveSession) -> TrustQuestion | None:
    """The question of a session that is ready, if there is one to ask."""
    if session.is_ready_made:
        return None
    trust = session.project.trust
    lines = tuple(trust.describe())
    id = hashlib.sha256(encode(trust)).hexdigest()[:32]
    return TrustQuestion(id, lines, trust) if lines else None


def is_trusted(session: InteractiveSession) -> bool:
    """Whether nothing that the directory wants is kept from it; one that wants nothing needs no trust."""
    if session.is_ready_made:
        return True
    trust = session.project.trust
    return trust.trusted or not trust.wishes
