"""The values between a session and whoever shows it.

A `Block` is final: shown once, in order, never changed. `Live` and `Status` are replaced as a whole, and a
view may skip any of them. All texts are neutral already (`robota.sdk.view.neutral`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from robota.core.events import ToolOutcome

BlockKind: TypeAlias = Literal[
    "user", "answer", "thinking", "tool", "diff", "notice", "error", "command", "todo"
]
BlockFormat: TypeAlias = Literal["plain", "markdown", "code", "diff"]
Activity: TypeAlias = Literal["idle", "thinking", "answering", "tools", "waiting", "retrying"]
"""What a session is at. `waiting`: for the user's answer."""
TodoState: TypeAlias = Literal["pending", "in_progress", "completed"]
SHELL = "!"
"""Before a command that the user runs."""
Say: TypeAlias = Callable[..., str]
"""`say("view.more-lines", count=3)`: a sentence of the interface in the user's language."""


class Block(Struct, frozen=True, kw_only=True):
    """Something that is finished."""

    id: int
    """From 1, without a gap."""
    kind: BlockKind
    text: str = ""
    format: BlockFormat = "plain"
    gap: bool = True
    """Whether a blank line goes before it: not where it continues the block above."""
    title: str = ""
    """A tool's name, the file of a diff."""
    about: str = ""
    """What a call is about: its first argument, short enough for a line."""
    state: ToolOutcome | None = None
    """How a call ended."""
    seconds: float | None = None
    """How long a call took."""
    language: str = ""
    """Of code."""
    before: str = ""
    """Lines of code above these, for a highlighter that needs to know where it is."""
    full: str = ""
    """What a key shows in the place of a shortened text; empty when nothing was left out."""
    agent: str = ""
    """The subagent whose doing it was."""


class RunningTool(Struct, frozen=True, kw_only=True):
    """A call that is under way."""

    call_id: str
    name: str
    about: str = ""
    since: float = 0.0
    """When it began, in the time of `time.monotonic`."""
    lines: tuple[str, ...] = ()
    """The last that it printed."""
    agent: str = ""

    @property
    def is_shell(self) -> bool:
        """Whether the user runs it, and not the model."""
        return self.name == SHELL

    @property
    def shown(self) -> str:
        return f"{SHELL}{self.about}" if self.is_shell else f"{self.name}({self.about})"


class RunningTask(Struct, frozen=True, kw_only=True):
    """Something that works in the background."""

    task_id: str
    kind: str
    label: str
    state: str
    doing: str = ""
    """The tool that it is at, or the last words it said."""


class Todo(Struct, frozen=True):
    """An item of the model's list of things to do."""

    text: str
    state: TodoState = "pending"


class Live(Struct, frozen=True, kw_only=True):
    """The moment: what a spinner, a tail and a list of running things show."""

    activity: Activity = "idle"
    tail: str = ""
    """What was said and is not a block yet; plain text."""
    thinking: str = ""
    """The end of what the model thinks at this moment; plain text."""
    since: float = 0.0
    """When the turn began, in the time of `time.monotonic`."""
    tokens: int = 0
    """Said by the model in this turn; an estimate while it speaks."""
    tools: tuple[RunningTool, ...] = ()
    tasks: tuple[RunningTask, ...] = ()
    todos: tuple[Todo, ...] = ()
    queued: str | None = None
    """The prompt that waits for the end of the turn."""


class Status(Struct, frozen=True, kw_only=True):
    """What holds between turns: the status line and the title of the terminal."""

    session_id: str = ""
    name: str = ""
    cwd: str = ""
    mode: str = "default"
    model: str = ""
    provider: str = ""
    used_tokens: int = 0
    max_tokens: int = 0
    context_percent: float = 0.0
    cost_usd: float | None = None
    branch: str = ""
    messages: int = 0


class View(Protocol):
    """What a front end is to the presenter, which never waits for it. All three are called in the loop."""

    def block(self, block: Block, /) -> None: ...
    def live(self, live: Live, /) -> None: ...
    def status(self, status: Status, /) -> None: ...
