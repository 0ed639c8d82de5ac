"""What was skipped, corrected or ignored while files were loaded, so that nothing vanishes silently."""

from __future__ import annotations

from msgspec import Struct

from robota.sdk.view.neutral import neutralise


class Problem(Struct, frozen=True):
    """Something in a file that does not work as it is written."""

    source: str
    """The file, or another place such as an environment variable."""
    message: str
    """One sentence: what is wrong, what was done about it, how to correct it."""
    line: int = 0
    """Counted from 1; 0 when no single line is to blame."""
    subject: str = ""
    """The key, rule, skill or agent that it is about."""
    harmless: bool = False
    """Only the look of a terminal is another: for those who ask what is wrong, and no notice."""

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        about = f"{self.subject}: " if self.subject else ""
        return neutralise(f"{place}: {about}{self.message}")
