"""The values that front ends are given."""

from __future__ import annotations

import pytest

from robota.sdk.view.model import Block, Live, Status, View


def test_values_are_frozen_and_have_defaults() -> None:
    block = Block(id=1, kind="answer", text="Hello.")
    with pytest.raises(AttributeError):
        block.text = "other"  # type: ignore[misc]
    assert (block.format, block.gap) == ("plain", True)
    assert (Live().activity, Live().queued) == ("idle", None)
    assert Status().cost_usd is None


def test_a_plain_class_is_a_view() -> None:
    class Kept:
        def __init__(self) -> None:
            self.seen: list[object] = []

        def block(self, block: Block) -> None:
            self.seen.append(block)

        def live(self, live: Live) -> None:
            self.seen.append(live)

        def status(self, status: Status) -> None:
            self.seen.append(status)

    kept = Kept()
    view: View = kept
    view.block(Block(id=1, kind="notice", text="x"))
    view.live(Live(tail="y"))
    assert len(kept.seen) == 2
