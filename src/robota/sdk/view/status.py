"""How a session stands, for a status line and the title of a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.sdk.view.model import Status
from robota.sdk.view.neutral import neutral_line

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

SHORT = 7
"""Letters of a commit that no branch names."""


def read_status(host: InteractiveSession) -> Status:
    """What is known now; of a session that was not used yet, only where and who it is."""
    known = Status(
        session_id=host.session_id,
        cwd=neutral_line(host.cwd),
        name=neutral_line(host.name or ""),
        branch=neutral_line(find_branch(host.cwd)),
    )
    try:
        session = host.session
    except ConfigurationError:
        return known
    context = session.context_state
    return replace(
        known,
        mode=session.permission_mode,
        model=neutral_line(session.model),
        provider=neutral_line(session.agent.provider.name),
        used_tokens=context.used_tokens,
        max_tokens=context.max_tokens,
        context_percent=context.used_percentage,
        cost_usd=session.usage.total.cost_usd,
        messages=session.message_count,
    )


def find_branch(directory: str) -> str:
    """The branch that is checked out, without starting git; the beginning of the commit when it has no name,
    and nothing outside a repository."""
    try:
        here = Path(directory).absolute()
        place = next((at / ".git" for at in (here, *here.parents) if (at / ".git").exists()), None)
        if place is None:
            return ""
        if place.is_file():  # a working tree of its own says where its repository is
            place = place.parent / place.read_text("utf-8").partition("gitdir:")[2].strip()
        head = (place / "HEAD").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    reference = head.removeprefix("ref: ")
    return reference.removeprefix("refs/heads/") if reference != head else head[:SHORT]
