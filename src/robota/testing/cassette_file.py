"""What stands in a cassette: traffic as it came, without secrets, in YAML for people to review.

What is written reads back as the same, or is not written.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, quote

import msgspec
import yaml
from msgspec import Struct, field

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.sessions.redaction import Redactor
from robota.sessions.redaction.names import hides, name_strength

VERSION = 1
HEADER = (
    "# Recorded by robota_cassette and replayed by the test. To record anew, delete the file or run pytest\n"
    "# with --robota-cassette=all.\n"
)
KEPT_HEADERS = ("content-type", "location", "request-id", "retry-after", "x-request-id")
"""What adapters read from the head of a reply; everything else would only be noise, or a secret."""
SHORTEST_SECRET = 8
"""A shorter value would be found in ordinary words."""
KEY_PARAMETERS = ("key", "token", "sig", "code")
"""Query parameters whose names say little elsewhere, and here what they are."""
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


def to_yaml(value: Json, *, width: float = float("inf"), sort_keys: bool = False) -> str:
    """JSON as YAML with texts of several lines as blocks."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=True, width=width)


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


# --- while it is recorded: requests in the order they began, replies as far as they came ----------------


class Take(Struct):
    """One exchange under way."""

    sent: SentRequest
    after: int
    """How many had been answered when it began."""
    status: int = 0
    """0 while there is no answer."""
    headers: dict[str, str] = {}
    data: bytearray = field(default_factory=bytearray)
    ended: Ending | None = None

    def end(self, how: Ending) -> None:
        """Note how the reply ended; the first word on it counts."""
        self.ended = self.ended or how

    @property
    def failure(self) -> str:
        """What went wrong, empty for a reply to keep."""
        if not self.status:
            return "no answer"
        if self.status >= 400:
            return f"status {self.status}"
        return "a broken connection" if self.ended == "broken" else ""

    def reply(self, hide: Callable[[str], str]) -> RecordedReply:
        streamed = "event-stream" in self.headers.get("content-type", "")
        pieces = split_events(bytes(self.data)) if streamed else [bytes(self.data)] if self.data else []
        ended = self.ended or "early"
        try:
            texts = tuple(hide(piece.decode()) for piece in pieces)
        except UnicodeDecodeError:
            encoded = tuple(base64.b64encode(piece).decode() for piece in pieces)
            return RecordedReply(self.status, self.headers, encoded, "base64", ended)
        return RecordedReply(self.status, self.headers, texts, "text", ended)


def kept_exchanges(takes: Sequence[Take], *, errors: bool, hide: Callable[[str], str]) -> list[Exchange]:
    """What is written down of these; a request without any answer never is."""
    kept = [take.status > 0 and (errors or not take.failure) for take in takes]
    exchanges: list[Exchange] = []
    for at, take in enumerate(takes):
        if kept[at]:
            after = sum(kept[: take.after])
            exchanges.append(
                Exchange(take.sent, take.reply(hide), None if after == len(exchanges) else after)
            )
    return exchanges


# --- what must never stand there: secrets of the environment, and the keys that requests carry ----------


class Secrets:
    """Knows secrets by where they come from, hides them, and finds those that are left."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._origins: dict[str, str] = {}
        self.redactor = Redactor()
        for name, value in environment.items():
            if hides(name_strength(name), value) and not os.path.exists(value):
                self.add(value, f"the environment variable {name}")

    def add(self, value: str, origin: str) -> None:
        value = value.strip()
        if len(value) >= SHORTEST_SECRET:
            self._origins.setdefault(value, origin)
            self.redactor.add_secret(value)

    def learn(self, headers: Iterable[tuple[str, str]], query: str) -> None:
        """Remember the credentials that a request carries."""
        for name, value in headers:
            if name.lower() == "cookie":
                for pair in value.split(";"):
                    self.add(pair.partition("=")[2], "a cookie")
            elif hides(name_strength(name), value):
                self.add(value.split(" ")[-1], f"the header {name}")
        for name, value in parse_qsl(query):
            if name in KEY_PARAMETERS or hides(name_strength(name), value):
                self.add(value, f"the query parameter {name}")

    def hide_in_piece(self, piece: str) -> str:
        """A piece of a reply: the JSON in its `data` lines or in all of it by its names, the rest as text."""
        return "".join(self._hide_line(line) for line in piece.splitlines(keepends=True))

    def _hide_line(self, line: str) -> str:
        opening = "data:" if line.startswith("data:") else ""
        content = line[len(opening) :]
        text = content.strip()
        if not text.startswith(("{", "[")):
            return self.redactor.text(line)
        encoded = text.encode()
        hidden = self.redactor.json(encoded)
        if hidden is encoded:
            return line
        start = content.index(text)
        return opening + content[:start] + hidden.decode() + content[start + len(text) :]

    def refuse(self, exchanges: Sequence[Exchange], text: str) -> None:
        """Raise if a secret is still there, also in pieces over the events of a stream."""
        places = [text, *(joined for exchange in exchanges for joined in _joined_texts(exchange))]
        for secret, origin in self._origins.items():
            if any(form in place for form in _forms(secret) for place in places):
                raise ConfigurationError(
                    f"The traffic holds the value of {origin}, so that nothing was recorded; "
                    "keep it out of the prompt and of what tools return."
                )


def _joined_texts(exchange: Exchange) -> list[str]:
    """The texts that grow over the events of a stream, each put together."""
    grown: dict[str, str] = {}
    for piece in exchange.response.body:
        for line in piece.splitlines():
            if line.startswith("data:"):
                for path, text in _leaves(_decode(line[5:]), ""):
                    grown[path] = grown.get(path, "") + text
    return list(grown.values())


def _decode(text: str) -> Json:
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return None


def _leaves(value: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}/{key}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}/{at}")


def _forms(secret: str) -> tuple[str, ...]:
    return secret, msgspec.json.encode(secret).decode()[1:-1], quote(secret, safe="")
