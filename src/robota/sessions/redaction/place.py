"""Where a secret's name stands: how it is written, what comes before it and how it is tied to a value."""

from __future__ import annotations

import re

from robota.sessions.redaction.names import Strength


class Place:
    """How the name of a variable is written, and where."""

    __slots__ = (
        "close",
        "ends",
        "is_constant",
        "is_option",
        "is_parameter",
        "lead",
        "name",
        "sign",
        "strength",
        "tight",
    )

    def __init__(
        self, name: str, lead: str, strength: Strength, *, sign: str, close: str, tight: bool
    ) -> None:
        self.name = name
        self.lead = lead
        self.strength = strength
        self.sign = sign
        self.close = close
        self.tight = tight
        self.ends = False
        self.is_constant = name.isupper()
        self.is_option = name.startswith("-")
        self.is_parameter = (
            self.tight and self.sign == "=" and lead.endswith(("?", "&", ";", "[", "%5B", "%5b", "%"))
        )

    @property
    def starts_line(self) -> bool:
        return _LINE_START.search(self.lead[-12:]) is not None

    @property
    def in_row(self) -> bool:
        """Whether another `name=value` stands right before."""
        return _PAIR_BEFORE.match(self.lead[:-80:-1]) is not None


_PAIR_BEFORE = re.compile(r"[\s;,&]{1,4}[^\s=;,&]{0,60}=[\w.-]")  # read backwards
_LINE_START = re.compile(r"(?:\n|\A|\\n|[\"'`])(?:export |set |ENV |ARG |- )?\Z")
