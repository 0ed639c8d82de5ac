"""Who watches a session, and who of them is writing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from msgspec import Struct

from robota.core.messages import JsonObject

NAME_LENGTH = 64


class Watcher(Struct):
    """A client for as long as its connection lasts."""

    id: str
    name: str
    typing: bool = False


class Presence:
    """Keeps the clients of one session, and tells all of them when something changes."""

    __slots__ = ("_numbers", "_tell", "_watchers")

    def __init__(self, tell: Callable[[str, JsonObject], None]) -> None:
        self._tell = tell
        self._numbers = count()
        self._watchers: dict[int, Watcher] = {}
        """By connection: a client that comes back may be there twice until its old one has ended."""

    def arrive(self, id: str, name: str) -> Callable[[], None]:
        """A connection of a client; what is returned ends it."""
        number = next(self._numbers)
        self._watchers[number] = Watcher(id, name[:NAME_LENGTH])
        self._show()

        def leave() -> None:
            if self._watchers.pop(number, None) is not None:
                self._show()

        return leave

    def set_typing(self, id: str, typing: bool) -> bool:
        """Whether the client is writing; false if nobody of that id is there."""
        found = [each for each in self._watchers.values() if each.id == id]
        if any(each.typing != typing for each in found):
            for each in found:
                each.typing = typing
            self._show()
        return bool(found)

    def _show(self) -> None:
        there = {each.id: each for each in self._watchers.values()}
        self._tell(
            "presence",
            {
                "clients": [
                    {"id": each.id, "name": each.name, "typing": each.typing} for each in there.values()
                ]
            },
        )
