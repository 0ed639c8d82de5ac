"""Tables of commands that share an answer, checked at once: a failure lists every row that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def table(text: str) -> list[str]:
    """The cells of a table: `¦` separates commands, `⏎` is a line end and `⇥` a tab."""
    cells = (cell.strip(" ") for line in text.strip().splitlines() for cell in line.split("¦"))
    return [cell.replace("⏎", "\n").replace("⇥", "\t") for cell in cells if cell]


def assert_answers(expected: object, commands: Iterable[str], decide: Callable[[str], object]) -> None:
    answers = [(command, decide(command)) for command in commands]
    wrong = [f"{answer} for {command!r}" for command, answer in answers if answer != expected]
    assert answers
    assert not wrong, f"{len(wrong)} of {len(answers)} are not {expected}:\n" + "\n".join(wrong)
