"""The lists of states that entries refer to, read back from the contents of the store."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from robota.core.errors import StorageError
from robota.tools.undo.blobs import BlobStore
from robota.tools.undo.entry import OpenEntry
from robota.tools.undo.journal import Begun, Ended
from robota.tools.undo.state import Change, Manifest, PathState

_MANIFEST = msgspec.msgpack.Decoder(Manifest)
_CHANGES: msgspec.msgpack.Decoder[list[Change]] = msgspec.msgpack.Decoder(list[Change])


class SavedStates:
    __slots__ = ("_blobs",)

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    def before(self, begun: Begun) -> Manifest:
        return _MANIFEST.decode(self._blobs.read(bytes.fromhex(begun.manifest)))

    def changes(self, ended: Ended) -> list[Change]:
        return _CHANGES.decode(self._blobs.read(bytes.fromhex(ended.changes)))

    def needed_by(self, pair: OpenEntry) -> set[bytes]:
        """The contents without which an entry could not be undone."""
        own = pair.begun.manifest if pair.ended is None else pair.ended.changes
        states: Iterable[PathState | None]
        try:
            if pair.ended is None:
                states = self.before(pair.begun).states.values()
            else:
                states = [change.before for change in self.changes(pair.ended)]
        except StorageError:
            return set()  # such an entry cannot be undone any more, whatever is kept for it
        digests = (state.digest for state in states if state is not None and state.digest is not None)
        return {bytes.fromhex(own), *digests}
