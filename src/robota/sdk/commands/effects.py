"""What a command answers: words for people, and an effect for whoever called it.

A command changes its session and nothing else. What belongs to the caller (leaving, a picker, another model)
is an effect, which the caller carries out or leaves. `CommandResult.data` is the effect as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from robota.core.background import TaskSnapshot
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.sdk.background.task_log import LogPage


class Effect(Struct, frozen=True, rename="camel"):
    """What a command found, did, or wants its caller to do."""


class ModelChosen(Effect, frozen=True):
    """Another model is to answer from now on."""

    model_id: str


class ProviderChosen(Effect, frozen=True):
    """Another provider profile is to be used from now on."""

    provider: str


class LanguageChosen(Effect, frozen=True):
    """The language in which the model is to answer."""

    language: str


class ResetRequested(Effect, frozen=True):
    """The user's settings are to be deleted, and the program left."""

    reset_requested: bool = True


class ResumePicker(Effect, frozen=True):
    """A list of earlier sessions to choose from is to be shown."""

    trigger_resume_picker: bool = True


class ExitRequested(Effect, frozen=True):
    """The program is to be left."""

    exit_requested: bool = True


class Renamed(Effect, frozen=True):
    """The session is to have this name."""

    name: str


class ModeSet(Effect, frozen=True):
    """The permission mode that counts now."""

    mode: str


class Compacted(Effect, frozen=True):
    """How full the context window was, and is, in per cent."""

    before: float
    after: float


class CostShown(Effect, frozen=True, omit_defaults=True):
    """What the session has cost so far."""

    session_id: str
    message_count: int
    cost_usd: float | None = None
    """Missing when nothing is known about prices."""


class ContextShown(Effect, frozen=True):
    """How full the context window is."""

    used_tokens: int
    max_tokens: int
    percentage: float


class PermissionsShown(Effect, frozen=True):
    """The permission mode, and what was allowed for the session."""

    mode: str
    session_allowed: tuple[str, ...]


class SubmitPrompt(Effect, frozen=True):
    """A prompt to be submitted, with what is shown of it and what was typed."""

    input: str
    display_input: str | None = None
    raw_input: str | None = None
    verbatim: bool = False
    """Whether files that it seems to name stay what they are: words of somebody else."""


class Written(Effect, frozen=True):
    """A file that the command wrote."""

    path: str


class TasksShown(Effect, frozen=True):
    """Background tasks, as they are now."""

    tasks: tuple[TaskSnapshot, ...]


class LogShown(Effect, frozen=True):
    """A page of a background task's log."""

    task_id: str
    page: LogPage


class AgentSwitcher(Effect, frozen=True):
    """A list of the agents in the background to choose from is to be shown."""

    tasks: tuple[TaskSnapshot, ...]
    trigger_agent_switcher: bool = True


class Rewound(Effect, frozen=True):
    """Something was taken back, or done again."""

    chat: bool = False
    """Whether the conversation is another one, so that front ends show it anew."""
    files: tuple[str, ...] = ()
    """What is different on the disk."""
    prompt: str | None = None
    """The prompt that may be changed and sent again."""


class CommandResult(Struct, frozen=True):
    """What became of a command; one that could not be carried out says why."""

    message: str
    success: bool = True
    effect: Effect | None = None

    @property
    def data(self) -> Mapping[str, Json]:
        """The effect in the spelling of the wire; empty without one."""
        return MappingProxyType({} if self.effect is None else decode(encode(self.effect)))


def failure(message: str) -> CommandResult:
    return CommandResult(message, success=False)
