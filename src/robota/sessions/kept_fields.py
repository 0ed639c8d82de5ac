"""What the layers above keep in the record of a session: opaque here, journaled, and found by a resume."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from robota.core.messages import Json
from robota.sessions.journal.records import KeptField
from robota.sessions.log import SessionLog


class KeptFields:
    __slots__ = ("_log", "values")

    def __init__(self, log: SessionLog, values: Mapping[KeptField, list[Json]]) -> None:
        self._log = log
        self.values: dict[KeptField, list[Json]] = dict(values)

    def get(self, field: KeptField) -> list[Json]:
        return self.values.get(field, [])

    def put(self, field: KeptField, value: list[Json]) -> None:
        """Have this in the record from now on; a list that was put is not to be changed."""
        self.values[field] = value
        self._log.when_open(partial(self._log.note_change, field, value))
