"""The images that came with prompts, as the journal of a session has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.core.messages import ImagePart
from robota.sessions.journal.records import RunBegan, UserRecord

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore


class PastImage(Struct, frozen=True, kw_only=True):
    """One image of one prompt."""

    event: int
    """The number of the event with which the run of the prompt begins."""
    index: int
    """Its place among the images of the prompt."""
    part: ImagePart


class PastImages:
    """The images of one session, be it open or not; reading them blocks."""

    def __init__(self, session: InteractiveSession | None, store: SessionStore | None, id: str) -> None:
        """`session` is the one of that id if it is open."""
        if session is not None:
            self._journal = session.session.log.journal
        else:
            self._journal = None if store is None else store.open_journal(id)

    def behind(self, after: int) -> Iterator[PastImage]:
        """Those of the prompts whose runs began behind an event."""
        prompt: UserRecord | None = None
        for item in () if self._journal is None else self._journal.read(after_event=after):
            if isinstance(item, UserRecord):
                prompt = item if item.parts is not None else None
            elif isinstance(item, RunBegan):
                if prompt is not None and item.ev > after:
                    images = [part for part in prompt.read_prompt() if isinstance(part, ImagePart)]
                    for index, part in enumerate(images):
                        yield PastImage(event=item.ev, index=index, part=part)
                prompt = None

    def find(self, event: int, index: int) -> PastImage | None:
        for each in self.behind(max(event - 1, 0)):
            if each.event > event:
                break
            if (each.event, each.index) == (event, index):
                return each
        return None
