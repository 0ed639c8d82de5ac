"""What can go wrong with a request: what was asked for, or what came of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

FailureKind: TypeAlias = Literal[
    "dns", "refused", "connect", "connect_timeout", "certificate", "tls", "trust", "proxy", "descriptors",
    "silence", "closed", "protocol",
]  # fmt: skip
"""In the first line there was no connection: `trust` means that the certificates to trust cannot be read,
`descriptors` that this process may open no more files. `closed`: it ended before the answer did."""


class HttpError(Exception):
    """No answer, or none to its end. The text says how, without host, address or anything that was sent."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class UrlError(ValueError):
    """A URL that is refused; the text is a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The URL is refused: {reason}.")


class HeaderError(ValueError):
    """A header that cannot be sent; its value may be secret, so only its name is told."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The header {name!r} cannot be sent.")
        self.name = name
