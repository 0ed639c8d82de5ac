"""Markdown with a head of YAML, as skills, agents and rules have it.

Read leniently: what is almost YAML is mended, what cannot be read is named, and the body is never lost.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from typing import BinaryIO

from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import Json
from robota.core.regular_file import open_regular
from robota.sdk.problems import Problem

MAX_BYTES = 1 << 20
"""Of a file that goes to a model as a whole; more is a mistake."""
_HEAD = lazy_pattern(r"\A---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_EXAMPLE = lazy_pattern(r"(?ms)^<(?P<tag>\w+)>$.*?^</(?P=tag)>$")
"""Belongs to the description above it, which goes on without being indented."""
_GLOB_ITEM = lazy_pattern(r"(?m)^([ \t]*-[ \t]+)(\*[^'\n]*?)[ \t]*$")
"""`- *.css`, which is an alias to YAML."""
_KEY = lazy_pattern(r"(?P<key>[\w-]+):(?:[ \t]+(?P<value>.*)|[ \t]*\Z)", re.DOTALL)
_UNCLOSED = lazy_pattern(r"""\[[^\]]*\Z|\{[^}]*\Z|"[^"]*\Z|'[^']*\Z""")
_LINE = lazy_pattern(
    r"""(?P<key>[A-Za-z][\w-]*):[ ]+
    (?: "(?P<double>[^"\\]*)" | '(?P<single>[^']*)'
      | (?P<plain>[A-Za-z/.($](?:[^:\#]++|:(?=[^ ])|(?<=[^ ])\#)*+) )[ ]*\Z""",
    re.VERBOSE,
)
"""A line that means the same to YAML and to anybody: most heads consist of these, and need no YAML."""
_CONSTANTS: dict[str, Json] = {
    spelling: value
    for word, value in (("true", True), ("false", False), ("null", None))
    for spelling in (word, word.title(), word.upper())
}
HEAD_BYTES = 4096
"""Read of a file of which only the head is wanted; a longer head is read to its end."""
_YES = frozenset(("true", "yes", "on", "1"))
_NO = frozenset(("false", "no", "off", "0"))


class Document(Struct, frozen=True, kw_only=True):
    """A file with its head taken apart."""

    path: str
    fields: Mapping[str, Json] = field(default_factory=dict)
    body: str = ""
    problem: Problem | None = None
    """What of the head could not be read; the rest of it and the body are there all the same."""

    def text(self, key: str) -> str:
        """A field as one line of text; empty when it is missing."""
        value = self.fields.get(key)
        if isinstance(value, str):
            return " ".join(value.split())
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
    with open_regular(path) as file:
        return parse_bytes(read_within(file), path)


def read_within(file: BinaryIO, limit: int = MAX_BYTES + 1) -> bytes:
    """A file to its end, or as much of it as the limit. To ask for a megabyte takes room for one, which costs
    more than to read what most files have."""
    data = file.read(min(HEAD_BYTES, limit))
    return data + file.read(limit - len(data)) if data and len(data) == HEAD_BYTES < limit else data


def read_head(path: str) -> Document:
    """The same with no more of the body than comes along; a file that is too large is named all the same."""
    with open_regular(path, buffering=0) as file:
        data = file.read(HEAD_BYTES) or b""
        if len(data) < HEAD_BYTES or _HEAD.match(_decode(data)) or not data.startswith((b"---", b"\xef")):
            size = os.fstat(file.fileno()).st_size if len(data) == HEAD_BYTES else 0
            return parse_bytes(data, path) if size <= MAX_BYTES else _too_large(path)
        while len(data) <= MAX_BYTES and (more := file.read(MAX_BYTES)):
            data += more
        return parse_bytes(data, path)


def parse_bytes(data: bytes, path: str) -> Document:
    if len(data) > MAX_BYTES:
        return _too_large(path)
    if b"\0" in data:
        what = "The file is not a text and was not read: save it as UTF-8."
        return Document(path=path, problem=Problem(path, what))
    return parse_document(_decode(data), path)


def _too_large(path: str) -> Document:
    what = f"The file is larger than {MAX_BYTES >> 20} MB and was not read: split it."
    return Document(path=path, problem=Problem(path, what))


def _decode(data: bytes) -> str:
    text = data.removeprefix(BOM_UTF8).decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def parse_document(text: str, path: str) -> Document:
    found = _HEAD.match(text)
    if found is None:
        return Document(path=path, body=text)
    fields, problem = _read_head(found["head"], path)
    return Document(path=path, fields=fields, body=text[found.end() :], problem=problem)


def _read_simple(head: str) -> dict[str, Json] | None:
    """A head of plain lines; `None` when it takes a reader of YAML to tell what it means."""
    fields: dict[str, Json] = {}
    for line in head.split("\n"):
        if not line:
            continue
        found = _LINE.match(line) if line.isprintable() else None
        if found is None:
            return None
        key, double, single, plain = found.groups()
        if key in _CONSTANTS:
            return None
        plain = plain and plain.rstrip(" ")
        fields[key] = _CONSTANTS.get(plain, plain) if plain else double or single or ""
    return fields


def _read_head(head: str, path: str) -> tuple[Mapping[str, Json], Problem | None]:
    simple = _read_simple(head)
    if simple is not None:
        return simple, None
    from robota.tools.yaml_text import read_yaml  # noqa: PLC0415 - most heads are simple

    try:
        read = read_yaml(head)
    except ValueError:
        return _read_blocks(head, path, read_yaml)
    if isinstance(read, dict) or read is None:
        return read or {}, None
    what = "The head of the file is no list of `key: value` lines; it was left out."
    return {}, Problem(path, what, 1)


def _read_blocks(
    head: str, path: str, read_yaml: Callable[[str], Json]
) -> tuple[Mapping[str, Json], Problem | None]:
    """Each field for itself, so that a broken one costs no other. Texts that are no YAML, such as
    `description: Use when: …` and `argument-hint: [a] [b]`, are common and taken as they are."""
    head = _EXAMPLE.sub(lambda example: "\n" * example[0].count("\n"), head)
    head = _GLOB_ITEM.sub(r"\1'\2'", head)
    blocks: list[tuple[int, str]] = []
    for number, line in enumerate(head.splitlines(), 2):
        if _KEY.match(line) or not blocks:
            blocks.append((number, line))
        else:  # a line that begins no field belongs to the last
            blocks[-1] = (blocks[-1][0], f"{blocks[-1][1]}\n{line}")
    fields: dict[str, Json] = {}
    problem: Problem | None = None
    for number, block in blocks:
        found = _KEY.match(block)
        try:
            read = read_yaml(block)
            fields |= read if isinstance(read, dict) else {}
        except ValueError as error:
            if found is not None and found["value"] and not _UNCLOSED.match(found["value"]):
                fields[found["key"]] = " ".join(found["value"].split())
                continue
            cause = error.__cause__
            mark = getattr(cause, "context_mark", None) or getattr(cause, "problem_mark", None)
            why = getattr(cause, "problem", None) or str(error)
            what = f"`{found['key']}`" if found else "A line of the head"
            problem = problem or Problem(
                path, f"{what} is not YAML ({why}) and was left out.", number + (mark.line if mark else 0)
            )
    return fields, problem


def find_key(path: str, key: str) -> int:
    """The line of a key in the head of a file, however it is spelt; 0 if it is not there."""
    try:
        with open_regular(path) as file:
            head = _HEAD.match(_decode(read_within(file)))
    except OSError:  # whoever wants to name a line has told that
        return 0
    for number, line in enumerate(head["head"].splitlines() if head else (), 2):
        if (found := _KEY.match(line)) and fold_key(found["key"]) == fold_key(key):
            return number
    return 0


def fold_key(key: str) -> str:
    """`max-turns`, `max_turns` and `maxTurns` as one word."""
    return key.replace("-", "").replace("_", "").casefold()


def list_markdown(directory: str) -> list[str]:
    """The Markdown files of a directory and those below it, in the order of their names."""
    found: list[str] = []
    for place, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        found += [os.path.join(place, name) for name in sorted(files) if name.endswith(".md")]
    return found
