"""What a server may ask of us while it is connected, and on whose behalf."""

from __future__ import annotations

from robota.tools.mcp.open_call import FillIn, OpenCall, Sample, ask_user


class Answers:
    """The calls under way, and what they bring along."""

    __slots__ = ("calls", "fill_in", "roots", "sample")

    def __init__(self, sample: Sample | None, fill_in: FillIn | None, roots: tuple[str, ...]) -> None:
        self.sample = sample
        self.fill_in = fill_in or ask_user
        self.roots = roots
        """The directories that the session works in."""
        self.calls: list[OpenCall] = []

    @property
    def newest_call(self) -> OpenCall | None:
        """The one that a question of the server belongs to, as far as anybody can tell."""
        return self.calls[-1] if self.calls else None
