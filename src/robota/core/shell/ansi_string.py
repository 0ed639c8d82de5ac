"""Strings of the form `$'…'`, decoded as bash decodes them."""

from __future__ import annotations

import re

from robota.core.shell.script import ShellSyntaxError

_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_NUMBER_ESCAPES = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")


def read_ansi_string(src: str, position: int) -> tuple[str, int]:
    """The text of `$'…'` whose first character is at the position, and where it ends."""
    text: list[str] = []
    while position < len(src):
        character = src[position]
        if character == "'":
            return _refuse_controls("".join(text)), position + 1
        if character != "\\":
            text.append(character)
            position += 1
            continue
        value, position = _read_escape(src, position + 1)
        text.append(value)
    raise ShellSyntaxError("a quoted string is not closed")


def _read_escape(src: str, position: int) -> tuple[str, int]:
    character = src[position : position + 1]
    if character in _SIMPLE_ESCAPES and character:
        return _SIMPLE_ESCAPES[character], position + 1
    number = _NUMBER_ESCAPES.match(src, position)
    if number is not None:
        byte, octal = number.group(1), number.group(4)
        value = int(octal, 8) & 0xFF if octal else int(next(filter(None, number.groups())), 16)
        # Bytes above ASCII combine to characters only in the shell's locale; zero ends the string in bash.
        if value == 0 or value > 0x10FFFF or 0xD800 <= value <= 0xDFFF or (value > 0x7F and (byte or octal)):
            raise ShellSyntaxError("a quoted string holds bytes whose meaning depends on the locale")
        return chr(value), number.end()
    if character == "c":
        raise ShellSyntaxError("a quoted string holds a control character")
    return "\\" + character, position + 1


def _refuse_controls(text: str) -> str:
    if any(character < " " and character not in "\t\n" for character in text):
        raise ShellSyntaxError("a quoted string holds control characters")
    return text
