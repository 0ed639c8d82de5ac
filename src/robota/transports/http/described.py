"""Sessions in the words of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robota.core.messages import JsonObject
from robota.sdk.session_facts import SessionDetails, SessionFacts
from robota.transports.trust_question import find_trust_question, is_trusted

if TYPE_CHECKING:
    from robota.sdk.kept_sessions import SessionSummary
    from robota.transports.host import HostedSession


def describe_kept(summary: SessionSummary, preview: str = "") -> SessionFacts:
    return SessionFacts(
        id=summary.id,
        name=summary.name,
        cwd=summary.cwd,
        preview=preview or summary.preview,
        updated_at=summary.updated_at,
        created_at=summary.created_at,
        message_count=summary.message_count,
        model=summary.model,
    )


def describe_open(hosted: HostedSession, kept: SessionSummary | None, preview: str = "") -> SessionFacts:
    """As it is now, with what only the store knows."""
    return SessionFacts(**_live_fields(hosted, kept, preview))


def describe_whole(
    hosted: HostedSession, kept: SessionSummary | None, *, read_only: bool, branch: str
) -> SessionDetails:
    session = hosted.session
    questions: Any = tuple(session.questions.open.values())
    asked = find_trust_question(session)
    asked = None if asked is None or asked.id == hosted.declined else asked
    return SessionDetails(
        **_live_fields(hosted, kept, ""),
        last_event=session.events.seq,
        executing=session.is_executing,
        pending=session.pending_prompt,
        permission_mode=session.permission_mode,
        questions=questions,
        problems=tuple(str(problem) for problem in session.problems),
        read_only=read_only,
        provider=session.session.agent.provider.name,
        branch=branch,
        trusted=is_trusted(session),
        trust=() if asked is None else asked.lines,
        trust_id="" if asked is None else asked.id,
    )


def describe_change(hosted: HostedSession) -> JsonObject:
    """What everybody is told when somebody has changed the session."""
    session = hosted.session
    return {
        "name": session.name,
        "permissionMode": session.permission_mode,
        "model": session.session.model,
        "trusted": is_trusted(session),
    }


def _live_fields(hosted: HostedSession, kept: SessionSummary | None, preview: str) -> JsonObject:
    session = hosted.session
    said = [message for message in session.session.messages if message.role != "system"]
    return {
        "id": hosted.id,
        "name": session.name,
        "cwd": session.cwd,
        "preview": preview or (kept.preview if kept is not None else ""),
        "updated_at": kept.updated_at if kept is not None else hosted.opened_at,
        "created_at": kept.created_at if kept is not None else hosted.opened_at,
        "message_count": len(said),
        "model": session.session.model or None,
        "cost": session.session.usage.total.cost_usd,
        "state": hosted.state,
    }
