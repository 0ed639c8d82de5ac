"""Where Claude Code keeps the transcripts of a project, and which of them belong to a directory.

The directory's name is the project's path with everything but letters and digits as `-`, so two projects can
share one; a long name is cut and ends in a hash. In both cases the path recorded in the file decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from robota.core.jsontext import decode, object_of, text_of
from robota.core.messages import JsonObject
from robota.sessions.files import REAL_FILES, Files, opened

NAME_LIMIT = 200
HEAD = 64 << 10
"""Bytes at either end of a file that are looked at to describe it."""
TITLE_LIMIT = 200


class SubagentTranscript(Struct, frozen=True):
    agent_id: str
    path: str


class FoundTranscript(Struct, frozen=True, kw_only=True):
    path: str
    session_id: str
    modified: float
    """Seconds since the epoch."""
    size: int
    cwd: str
    """As recorded in the file; empty when its beginning does not tell."""
    title: str
    """The name the user or the model gave it, else the first prompt."""


def find_claude_transcripts(
    cwd: str, *, config_dir: str | None = None, files: Files = REAL_FILES
) -> list[FoundTranscript]:
    """The transcripts of the sessions that ran in a directory, the latest first."""
    root = config_dir or os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    projects = os.path.join(root, "projects")
    wanted = {_plain(cwd), _plain(os.path.realpath(cwd))}
    found = [
        transcript
        for name in _directories(projects, {_directory_name(path) for path in wanted})
        for path in _transcripts(os.path.join(projects, name))
        if (transcript := _describe(path, files)) is not None and _belongs(transcript.cwd, wanted, name)
    ]
    return sorted(found, key=lambda transcript: (-transcript.modified, transcript.path))


def find_subagents(path: str) -> tuple[SubagentTranscript, ...]:
    """The transcripts of the subagents that a session started."""
    found = []
    for directory, _, names in os.walk(os.path.join(path.removesuffix(".jsonl"), "subagents")):
        for name in names:
            if name.startswith("agent-") and name.endswith(".jsonl"):
                agent = name.removeprefix("agent-").removesuffix(".jsonl")
                found.append(SubagentTranscript(agent, os.path.join(directory, name)))
    return tuple(sorted(found, key=lambda transcript: transcript.path))


def _plain(path: str) -> str:
    import unicodedata  # noqa: PLC0415 - rarely needed

    return unicodedata.normalize("NFC", os.path.abspath(path))


def _directory_name(path: str) -> str:
    """The name without the cut; only ASCII letters and digits stay, each UTF-16 half of others counts."""
    return "".join(
        letter if letter.isascii() and letter.isalnum() else "-" * (1 + (letter > "\uffff"))
        for letter in path
    )


def _directories(projects: str, wanted: set[str]) -> list[str]:
    short = {name for name in wanted if len(name) <= NAME_LIMIT}
    cut = tuple(f"{name[:NAME_LIMIT]}-" for name in wanted if len(name) > NAME_LIMIT)
    return [name for name in _names(projects) if name in short or (cut and name.startswith(cut))]


def _belongs(recorded: str, wanted: set[str], directory: str) -> bool:
    if not recorded:
        return len(directory) <= NAME_LIMIT
    path = _plain(recorded)
    # A session that was moved here with its directory has another path, but one that also has another name.
    return path in wanted or (len(directory) <= NAME_LIMIT and _directory_name(path) != directory)


def _transcripts(directory: str) -> list[str]:
    names = (name for name in _names(directory) if not name.startswith("agent-"))
    return [os.path.join(directory, name) for name in names if name.endswith(".jsonl")]


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _describe(path: str, files: Files) -> FoundTranscript | None:
    try:
        status = os.stat(path)
    except OSError:  # gone since the directory was listed
        return None
    cwd = prompt = ""
    titles = dict.fromkeys(("customTitle", "aiTitle"), "")
    try:
        with opened(files, path) as fd:
            head, tail = (files.read_at(fd, HEAD, at) for at in (0, max(status.st_size - HEAD, 0)))
        for record in _records(head, tail):
            cwd = cwd or text_of(record.get("cwd"))
            prompt = prompt or _prompt(record)
            titles |= {name: text_of(record.get(name)) for name in titles if text_of(record.get(name))}
    except OSError as error:
        prompt = f"(cannot be read: {error.strerror or error})"
    return FoundTranscript(
        path=path,
        session_id=os.path.basename(path).removesuffix(".jsonl"),
        modified=status.st_mtime,
        size=status.st_size,
        cwd=cwd,
        title=titles["customTitle"] or titles["aiTitle"] or prompt,
    )


def _records(*pieces: bytes) -> Iterator[JsonObject]:
    """The records that lie whole within some pieces of a file."""
    for piece in pieces:
        for line in piece.split(b"\n"):
            try:
                record = decode(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _prompt(record: JsonObject) -> str:
    if record.get("type") != "user" or record.get("isMeta") or record.get("isSidechain"):
        return ""
    content = text_of(object_of(record.get("message")).get("content"))
    return " ".join(content.split())[:TITLE_LIMIT]
