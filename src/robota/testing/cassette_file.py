"""Cassettes on disk: YAML for people to review. What is written reads back as the same, or is not written.

    version: 1
    exchanges:
    - request: {method: POST, url: https://…, body: …}
      response: {status: 200, headers: …, body: [first event, second event, …]}

`after` stands only beside requests that were sent while another was under way: so many of the exchanges
before had been answered by then.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import yaml
from msgspec import Struct, field

from robota.core.errors import ConfigurationError
from robota.core.messages import Json

VERSION = 1
HEADER = (
    "# Recorded by robota_cassette and replayed by the test. To record anew, delete the file or run pytest\n"
    "# with --robota-cassette=all.\n"
)
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
Ending = Literal["complete", "early", "broken"]


class SentRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What of a request counts, without secrets."""

    method: str
    url: str
    body: Json = None
    """JSON as it is, anything else as text."""


class RecordedReply(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: tuple[str, ...] = ()
    """In pieces, as it is replayed: one event each."""
    encoding: Literal["text", "base64"] = "text"
    ended: Ending = "complete"
    """`early`: the client left before the end; `broken`: the connection did."""

    def pieces(self) -> Iterator[bytes]:
        for piece in self.body:
            yield piece.encode() if self.encoding == "text" else base64.b64decode(piece)


class Exchange(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    request: SentRequest
    response: RecordedReply
    after: int | None = None
    """How many of the exchanges before it were answered when it began; `None` for all of them."""


class _Tape(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    exchanges: tuple[Exchange, ...]


def split_events(data: bytes) -> list[bytes]:
    """A stream cut behind each of its events."""
    pieces, start = [], 0
    for end in _EVENT_END.finditer(data):
        pieces.append(data[start : end.end()])
        start = end.end()
    return [*pieces, data[start:]] if start < len(data) else pieces


def read_cassette(path: Path) -> tuple[Exchange, ...]:
    """What was recorded; a file that is none of ours is a `ConfigurationError`."""
    try:
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_loader())
        tape = msgspec.convert(loaded, _Tape)
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            f"The cassette {path} cannot be read: {reason}. Restore it, or delete it and record anew."
        ) from error
    if tape.version != VERSION:
        raise ConfigurationError(
            f"The cassette {path} has version {tape.version}, and this robota reads version {VERSION}; "
            "record it anew with --robota-cassette=all."
        )
    return tape.exchanges


def format_cassette(exchanges: Sequence[Exchange]) -> str:
    """The text of a cassette."""
    tape = msgspec.json.decode(msgspec.json.encode(_Tape(VERSION, tuple(exchanges))))
    text = HEADER + to_yaml(tape)
    if yaml.load(text, Loader=_loader()) != tape:
        raise ConfigurationError("This traffic cannot be written as YAML without loss; it was not recorded.")
    return text


def write_cassette(path: Path, text: str) -> None:
    """Put the file in its place as a whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def to_yaml(value: Json, *, width: float = float("inf")) -> str:
    """JSON as YAML with texts of several lines as blocks."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _loader() -> type[yaml.SafeLoader]:
    return yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # type: ignore[return-value]  # twins
