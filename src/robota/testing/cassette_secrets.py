"""What must never stand in a cassette: the secrets of the environment, and the keys that requests carry."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, quote

import msgspec

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.sessions.redaction import Redactor
from robota.sessions.redaction.names import name_strength
from robota.sessions.redaction.redactor import hides
from robota.testing.cassette_file import Exchange

SHORTEST = 8
"""A shorter value would be found in ordinary words."""


KEY_PARAMETERS = ("key", "token", "sig", "code")
"""Query parameters whose names say little elsewhere, and here what they are."""


class Secrets:
    """Knows secrets by where they come from, hides them, and finds those that are left."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._origins: dict[str, str] = {}
        self._redactor = Redactor()
        for name, value in environment.items():
            if hides(name_strength(name), value) and not os.path.exists(value):
                self.add(value, f"the environment variable {name}")

    def add(self, value: str, origin: str) -> None:
        value = value.strip()
        if len(value) >= SHORTEST:
            self._origins.setdefault(value, origin)
            self._redactor.add_secret(value)

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

    def hide(self, value: Json) -> Json:
        return self._redactor.value(value)

    def hide_in_text(self, text: str) -> str:
        return self._redactor.text(text)

    def hide_in_piece(self, piece: str) -> str:
        """A piece of a reply: the JSON in its `data` lines or in all of it by its names, the rest as text."""
        return "".join(self._hide_line(line) for line in piece.splitlines(keepends=True))

    def _hide_line(self, line: str) -> str:
        opening = "data:" if line.startswith("data:") else ""
        content = line[len(opening) :]
        text = content.strip()
        if not text.startswith(("{", "[")):
            return self._redactor.text(line)
        encoded = text.encode()
        hidden = self._redactor.json(encoded)
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
