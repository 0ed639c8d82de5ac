"""What a task printed or said, line by line, beside the session's journal: it outlives the process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from robota.core.private_directory import make_private_directories

PAGE_LINES = 200
TRUNCATED = "[output truncated]"
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN ", "-----END "
_KEY_LINES = 200
_BEFORE = 400
"""Characters of the lines before, which may tell that a line holds a secret: a name, the head of a table."""


class LogPage(Struct, frozen=True, kw_only=True):
    """Some lines of a log."""

    lines: tuple[str, ...]
    offset: int
    """The number of the first of them, counted from 0."""
    next_offset: int
    """Where to go on."""
    total: int

    @property
    def more(self) -> bool:
        return self.next_offset < self.total


def log_path(journal_path: str, task_id: str) -> str:
    """Where the log of a task is, whatever its record says; empty for a session that is not kept."""
    name = os.path.basename(task_id)
    return f"{journal_path.removesuffix('.jsonl')}/tasks/{name}.log" if journal_path else ""


def read_page(lines: list[str], offset: int = 0) -> LogPage:
    begin = min(max(offset, 0), len(lines))
    page = tuple(lines[begin : begin + PAGE_LINES])
    return LogPage(lines=page, offset=begin, next_offset=begin + len(page), total=len(lines))


def read_lines(path: str) -> list[str]:
    """The lines of a log that another process may have written; none if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        return [f"[{path} cannot be read: {error.strerror}]"]


class TaskLog:
    """Takes text in any pieces and keeps whole lines, without secrets, up to a limit."""

    __slots__ = (
        "_before",
        "_held",
        "_limit",
        "_partial",
        "_path",
        "_redact",
        "_size",
        "_unwritten",
        "trouble",
    )

    def __init__(self, path: str, redact: Callable[[Sequence[str]], list[str]], limit: int) -> None:
        """Without a path the lines are in memory alone. `redact` takes texts that follow each other."""
        self._path = path
        self._redact = redact
        self._limit = limit
        self._size = 0
        self._partial = ""
        self._before = ""
        self._held: list[str] = []
        """The lines of a private key so far, which are one secret together."""
        self._unwritten: list[str] = []
        self.trouble = ""
        """Why nothing more is written to the file."""

    @property
    def is_full(self) -> bool:
        return self._size >= self._limit

    def add(self, text: str) -> None:
        if self.is_full:
            return
        *lines, self._partial = (self._partial + text).split("\n")
        if len(self._partial) > self._limit:
            lines, self._partial = [*lines, self._partial], ""
        self._keep(lines)

    def add_line(self, line: str) -> None:
        """A line of its own, wherever the text is."""
        self.add(f"\n{line}\n" if self._partial else f"{line}\n")

    def end(self) -> None:
        """Nothing more comes."""
        rest, self._partial = self._partial, ""
        self._keep([rest] if rest else [], final=True)

    def lines(self) -> list[str]:
        """All there is, a line that is not complete yet included."""
        kept = read_lines(self._path) if self._path else []
        rest = "" if self._held else self._partial
        return [*kept, *self._unwritten, *([self._redact((self._before, rest))[1]] if rest else [])]

    def _keep(self, lines: list[str], *, final: bool = False) -> None:
        ready: list[str] = []
        plain: list[str] = []
        for line in lines:
            if not self._held and _KEY_BEGINS not in line:
                plain.append(line)
                continue
            ready += self._show(plain)
            plain = []
            self._held.append(line)
            if _KEY_ENDS in line or len(self._held) >= _KEY_LINES:
                ready += self._release()
        ready += self._show(plain)
        if final:
            ready += self._release()
        if ready:
            self._write(self._cut(ready))

    def _release(self) -> list[str]:
        held, self._held = self._held, []
        return self._show(held)

    def _show(self, lines: list[str]) -> list[str]:
        """These lines without secrets; those that went into the secret of another line are left out."""
        if not lines:
            return []
        texts = [self._before, *(f"{line}\n" for line in lines)]
        _, *shown = self._redact(texts)
        self._before = "".join(texts)[-_BEFORE:]
        return "".join(shown).removesuffix("\n").split("\n")

    def _cut(self, lines: list[str]) -> list[str]:
        kept: list[str] = []
        for line in lines:
            if self.is_full:
                break
            room = self._limit - self._size
            self._size += len(line.encode("utf-8", "replace")) + 1
            kept.append(line[:room])
        if self.is_full:
            kept.append(TRUNCATED)
        return kept

    def _write(self, lines: list[str]) -> None:
        if not self._path:
            self._unwritten += lines
            return
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        try:
            make_private_directories(os.path.dirname(self._path))
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except OSError as error:
            self.trouble = f"The log {self._path} cannot be written: {error.strerror}."
            self._unwritten += [*read_lines(self._path), *lines]
            self._path = ""
