"""Tool calls in Gemma's own notation: `call:name{key:<|"|>text<|"|>,n:1,tags:[a,b]}`."""

from __future__ import annotations

import re

from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject, ToolCall
from robota.providers.families.written_call import Offered

QUOTE = '<|"|>'
_DEEPEST = 50
_CALL = re.compile(r"\s*call:\s*([\w.-]+)\s*(?=\{)")
_KEY = re.compile(r"\s*(?:<\|\"\|>)?\"?([\w.$-]+)\"?(?:<\|\"\|>)?\s*:\s*")
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BARE = re.compile(r"[^,{}\[\]]*")


def read_gemma_calls(text: str, offered: Offered) -> list[ToolCall]:
    """The calls a text consists of; none if it is anything else."""
    reader = _Reader(text)
    calls = []
    while reader.at < len(text):
        name = reader.match(_CALL)
        if name is None or name not in offered:
            return []
        try:
            arguments = reader.read_object(0)
        except ValueError:
            return []
        calls.append(ToolCall("", name, encode(arguments).decode()))
        reader.skip_space()
    return calls


class _Reader:
    """Where we are in the notation. What does not fit raises `ValueError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, mark: str) -> bool:
        self.skip_space()
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def require(self, mark: str) -> None:
        if not self.take(mark):
            raise ValueError(f"There is no {mark} at {self.at}.")

    def read_object(self, depth: int) -> JsonObject:
        self.require("{")
        fields: JsonObject = {}
        while not self.take("}"):
            if fields:
                self.require(",")
            key = self.match(_KEY)
            if key is None:
                raise ValueError(f"There is no name at {self.at}.")
            fields[key] = self.read_value(depth)
        return fields

    def read_list(self, depth: int) -> list[Json]:
        self.require("[")
        items: list[Json] = []
        while not self.take("]"):
            if items:
                self.require(",")
            items.append(self.read_value(depth))
        return items

    def read_value(self, depth: int) -> Json:
        if depth > _DEEPEST:
            raise ValueError("It is nested too deeply.")
        if self.take(QUOTE):
            end = self.text.index(QUOTE, self.at)
            words, self.at = self.text[self.at : end], end + len(QUOTE)
            return words
        if self.text.startswith("{", self.at):
            return self.read_object(depth + 1)
        if self.text.startswith("[", self.at):
            return self.read_list(depth + 1)
        return self.read_bare()

    def read_bare(self) -> Json:
        """A number, `true`, `null`, or a text whose quotes were forgotten or are those of JSON."""
        found = _JSON_TEXT.match(self.text, self.at) or _BARE.match(self.text, self.at)
        words = "" if found is None else found[0]
        self.at += len(words)
        try:
            return decode(words)
        except ValueError:
            if not words.strip():
                raise
        return words.strip()
