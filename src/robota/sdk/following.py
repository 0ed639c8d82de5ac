"""The events of a session in batches, for whoever passes them on to somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sessions.follow import Follower

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def open_follower(session: InteractiveSession, after: int = 0) -> Follower:
    """The events behind number `after`, whenever they happened; `close` it when nobody reads any more."""
    return Follower(session.session.log, session.events, after)
