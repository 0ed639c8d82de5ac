"""Subagents that were at work when a process was killed: what became of them, for the user and the model."""

from __future__ import annotations

import os
from collections.abc import Iterator

from anyio import to_thread
from msgspec import Struct

from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage
from robota.core.plain_text import shorten
from robota.sessions.journal.records import SessionEnded
from robota.sessions.session import Session
from robota.sessions.start import SessionStart, restore_journal
from robota.sessions.store.session_store import SessionStore

TAIL = 1 << 16
"""Bytes at the end of a journal in which its last record is looked for."""
WORDS_TOLD = 4_000


class CutAgent(Struct, frozen=True, kw_only=True):
    """A subagent whose session nobody ended."""

    agent_id: str
    agent_type: str
    finished: bool
    """It had done its task, and only its report did not arrive."""
    words: str
    """The last that it said."""
    path: str

    @property
    def summary(self) -> str:
        who = f"The subagent {self.agent_type} ({self.agent_id})"
        if self.finished:
            return f"{who} had completed its task when the session was cut; its report did not arrive."
        return f"{who} was cut in the middle of its task when the session was; what it did until then stays."


def find_cut_agents(store: SessionStore, session_id: str) -> tuple[CutAgent, ...]:
    """Those of a session, in the order of their names."""
    directory = os.path.join(os.path.splitext(store.journal_path(session_id))[0], "subagents")
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".jsonl"))
    except OSError:  # it has none
        return ()
    return tuple(_look_into(directory, names, session_id))


def _look_into(directory: str, names: list[str], session_id: str) -> Iterator[CutAgent]:
    for name in names:
        path = os.path.join(directory, name)
        if _was_ended(path):
            continue
        start = restore_journal(path, session_id=session_id)
        said = [each for each in start.messages if isinstance(each, AssistantMessage) and each.content]
        agent_id = name.removesuffix(".jsonl")
        yield CutAgent(
            agent_id=agent_id,
            agent_type=start.name or agent_id,
            finished=start.cut is None and bool(said) and start.messages[-1] is said[-1],
            words=said[-1].content if said else "",
            path=path,
        )


def _was_ended(path: str) -> bool:
    """Whether the last record says so; a long one does not."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        record = decode(last)
    except ValueError:  # cut itself, or longer than the tail
        return False
    return isinstance(record, dict) and record.get("event") == SessionEnded.name


async def tell_of_cut_agents(session: Session, start: SessionStart) -> None:
    """Say once, to the user and the model, what became of them when the session was cut. Those of background
    tasks are told of as tasks."""
    if start.closed or start.session_id != session.session_id or not isinstance(session.store, SessionStore):
        return
    for agent in await to_thread.run_sync(find_cut_agents, session.store, session.session_id):
        key = f"{agent.agent_id}-cut"
        if agent.agent_id in session.background.tasks or session.inbox.knows(key):
            continue
        sentence = f"{agent.summary} Its transcript is {agent.path}."
        words = f"\nIts last words:\n{shorten(agent.words, WORDS_TOLD)}" if agent.words else ""
        session.log.notice(sentence)
        session.inbox.put(sentence + words, origin="task", id=key)
