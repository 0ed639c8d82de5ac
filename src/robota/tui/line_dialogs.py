"""Dialogs as numbered lists, one after the other, answered with a number, a letter or own words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from robota.tui.dialogs import Dialog, Option
from robota.tui.line_input import LineInput
from robota.tui.words import Words

YES, NO = ("y", "yes"), ("n", "no")


class LineDialogs:
    """Asks for a line until it is an answer; the end of the input is as good as Enter alone."""

    def __init__(self, input: LineInput, write: Callable[[str], None], words: Words) -> None:
        self._input = input
        self._write = write
        self._words = words
        self._one = asyncio.Lock()

    async def ask(self, dialog: Dialog) -> Any:
        async with self._one:
            prompt = self._show(dialog)
            while True:
                line = await self._input.answer(prompt)
                answer = await self._read(dialog, (line or "").strip())
                if answer is not _NONE:
                    return answer
                self._write(self._words("lines.again"))

    def _show(self, dialog: Dialog) -> str:
        """Write the question; what to write before the answer."""
        lines = [f"{line.mark or ''}{line.text}" for line in dialog.lines]
        if _is_yes_or_no(dialog):
            *lines, question = lines
            self._write_lines(lines)
            return f"{question} [y/N] "
        lines += (_describe(number, each) for number, each in enumerate(dialog.options, 1))
        self._write_lines(lines)
        return self._words("lines.many" if dialog.many else "lines.which", choices=_choices(dialog))

    def _write_lines(self, lines: list[str]) -> None:
        if lines:
            self._write("\n".join(lines))

    async def _read(self, dialog: Dialog, line: str) -> Any:
        if not line:
            return dialog.escape if dialog.closable else dialog.options[dialog.at].value
        if dialog.many:
            numbers = line.replace(",", " ").split()
            are_numbers = all(map(_is_number, numbers))
            chosen = [_find(dialog, part.strip()) for part in (numbers if are_numbers else line.split(","))]
            if all(each is not None and not each.entry for each in chosen):
                return [each.value for each in chosen if each is not None]
            if are_numbers and len(numbers) > 1 and any(chosen):
                return _NONE  # a slip, and no words of the user's own
        option = _find(dialog, line)
        own = next((each for each in dialog.options if each.entry and each.key == "o"), None)
        if option is None:
            return _NONE if own is None else own.value(line)
        if not option.entry:
            return [option.value] if dialog.many else option.value
        written = await self._input.answer(f"{option.label}: ", text=option.text)
        return _NONE if written is None else option.value(written)


_NONE = object()
"""No answer."""


def _is_yes_or_no(dialog: Dialog) -> bool:
    return [each.value for each in dialog.options] == [True, False]


def _describe(number: int, option: Option) -> str:
    letter = f" ({option.key.split()[0]})" if option.key and not option.key.isdigit() else ""
    return f"  {number}. {option.label}{letter}{f'  {option.detail}' if option.detail else ''}"


def _choices(dialog: Dialog) -> str:
    """The letters, with a capital one for Enter alone; the numbers where there are none."""
    letters = [each.key.split()[0] for each in dialog.options if each.key and not each.key.isdigit()]
    if len(letters) < len(dialog.options):
        return f"1-{len(dialog.options)}"
    if not dialog.closable:
        letters[dialog.at] = letters[dialog.at].upper()
    return "/".join(letters)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _find(dialog: Dialog, line: str) -> Option | None:
    """The option that is meant: its number, its letter, yes or no; in a long list, words that only it has."""
    if _is_number(line):
        return dialog.options[int(line) - 1] if 0 < int(line) <= len(dialog.options) else None
    if dialog.filtered:
        dialog.needle = line
        return dialog.shown[0] if len(dialog.shown) == 1 else None
    word = line.lower()
    letter = next((each[0] for each in (YES, NO) if word in each), word)
    return next((each for each in dialog.options if letter in each.key.split()), None)
