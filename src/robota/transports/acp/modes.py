"""What an editor may choose for a session: a permission mode and a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp.schema import (
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from robota.transports.session_maker import OfferedModel

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

MODES = (
    ("default", "Ask", "Ask before files are changed and commands are run"),
    ("acceptEdits", "Accept edits", "Edit files of the workspace without a question"),
    ("plan", "Plan", "Look and plan, change nothing"),
    ("bypassPermissions", "Bypass", "Never ask"),
)
MODEL = "model"


def describe_modes(session: InteractiveSession) -> SessionModeState:
    closed = not session.is_ready_made and session.project.settings.bypass_is_disabled
    return SessionModeState(
        current_mode_id=session.permission_mode,
        available_modes=[
            SessionMode(id=id, name=name, description=description)
            for id, name, description in MODES
            if not (closed and id == "bypassPermissions")
        ],
    )


def describe_options(
    session: InteractiveSession, models: Sequence[OfferedModel]
) -> list[SessionConfigOptionSelect]:
    """The model, chosen from those that are known here and the one in use."""
    now = session.session.model
    known = {each.id: each.title or each.id for each in models}
    known.setdefault(now, now)
    return [
        SessionConfigOptionSelect(
            type="select",
            id=MODEL,
            name="Model",
            category="model",
            current_value=now,
            options=[SessionConfigSelectOption(value=id, name=title) for id, title in known.items()],
        )
    ]
