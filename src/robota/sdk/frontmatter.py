"""Markdown with a head of YAML, as skills, agents and rules have it.

Read leniently: what is almost YAML is mended, what cannot be read is named, and the body is never lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec import Struct, field

from robota.core.messages import Json
from robota.sdk.problems import Problem

MAX_BYTES = 1 << 20
"""Of a file that goes to a model as a whole; more is a mistake."""
_HEAD = re.compile(r"\A---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN_VALUE = re.compile(r"(?m)^(?P<key>[\w-]+):[ \t]+(?P<value>(?:\*\*|[^\s\"'\[{|>&*!#-]).*)$")
_EXAMPLE = re.compile(r"(?ms)^<(?P<tag>\w+)>$.*?^</(?P=tag)>$\n?")
"""Belongs to the description above it, which goes on without being indented."""
_YES = frozenset(("true", "yes", "on", "1"))
_NO = frozenset(("false", "no", "off", "0"))


class Document(Struct, frozen=True, kw_only=True):
    """A file with its head taken apart."""

    path: str
    fields: Mapping[str, Json] = field(default_factory=dict)
    body: str = ""
    problem: Problem | None = None
    """Why the head could not be read; the body is there all the same."""

    def text(self, key: str) -> str:
        """A field as one line of text; empty when it is missing."""
        value = self.fields.get(key)
        if value is None or isinstance(value, dict | list):
            return ""
        return str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())

    def flag(self, key: str, default: bool = False) -> bool:
        """A field that is on or off, in any of the spellings people use."""
        word = self.text(key).lower()
        return default if word not in _YES | _NO else word in _YES

    def words(self, key: str) -> tuple[str, ...] | None:
        """A list, or a text with commas or blanks between the words; blanks inside parentheses do not count.
        `None` when the field is missing."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, list):
            return tuple(str(word).strip() for word in value if str(word).strip())
        return split_words(str(value))


def split_words(text: str) -> tuple[str, ...]:
    """`Read, Bash(git log *) Grep` as its three words."""
    words, depth, word = [], 0, ""
    for letter in text.strip().removeprefix("[").removesuffix("]"):
        depth += (letter == "(") - (letter == ")")
        if depth <= 0 and (letter == "," or letter.isspace()):
            words.append(word)
            word = ""
        else:
            word += letter
    return tuple(each.strip().strip("\"'") for each in (*words, word) if each.strip().strip("\"'"))


def read_document(path: str) -> Document:
    """The file at `path`. An `OSError` is the caller's: only they know whether the file has to be there."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        what = f"The file is larger than {MAX_BYTES >> 20} MB and was not read: split it."
        return Document(path=path, problem=Problem(path, what))
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return parse_document(text, path)


def parse_document(text: str, path: str) -> Document:
    found = _HEAD.match(text)
    if found is None:
        return Document(path=path, body=text)
    body = text[found.end() :]
    try:
        fields = _read_head(found["head"])
    except ValueError as error:
        line = re.search(r"line (\d+)", str(error))
        what = (
            f"The head of the file is not YAML ({error}); it was left out. Put values with colons in quotes."
        )
        at = int(line[1]) + 1 if line else 1
        return Document(path=path, body=body, problem=Problem(path, what, at))
    return Document(path=path, fields=fields, body=body)


def _read_head(head: str) -> Mapping[str, Json]:
    from robota.tools.yaml_text import read_yaml  # noqa: PLC0415 - most projects have no such file

    try:
        read = read_yaml(head)
    except ValueError:
        mended = _PLAIN_VALUE.sub(
            _quote, _EXAMPLE.sub("", head)
        )  # `description: Use when: …` is common, and no YAML
        if mended == head:
            raise
        read = read_yaml(mended)
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise ValueError("a list of `key: value` lines belongs there")
    return read


def _quote(found: re.Match[str]) -> str:
    value = found["value"].rstrip().replace("'", "''")
    return f"{found['key']}: '{value}'"


def list_markdown(directory: str) -> list[str]:
    """The Markdown files of a directory and those below it, in the order of their names."""
    found: list[str] = []
    for place, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        found += [os.path.join(place, name) for name in sorted(files) if name.endswith(".md")]
    return found
