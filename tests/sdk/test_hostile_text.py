"""Text that would take over a screen, and keys that would end up in files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from robota.core.events import Event, Noticed, PermissionDecided, ToolEnded
from robota.core.questions import PermissionQuestion
from robota.sdk.interactive import InteractiveSession
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
TITLE = "\x1b]0;taken over\x07\x1b[2J\u202e"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
KEY = "zq9-Fh27xKpLw04mTnB8"
"""Of no known shape: it is a secret because a profile has it."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".robota").mkdir(parents=True)
    path = tmp_path / f"pro{TITLE}ject"
    (path / ".robota" / "agents").mkdir(parents=True)
    return path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_traps(project: Path) -> None:
    """Everything that robota has a sentence about."""
    own, name = project / ".robota", f"na{TITLE}me"
    head = 'tools: "Read, Fo\\e[2Jo, Bash(\\e[2J"\npermissionMode: "p\\e[2J"\nmodel: "m\\e[2J"'
    write(own / "agents" / "w.md", f'---\nname: w\ndescription: "d\\e[2J"\n{head}\n---\nWork.')
    write(own / "agents" / f"{name}.md", "---\nx: 1\n---\nWork.")
    write(own / "skills" / name / "SKILL.md", '---\ncontext: "c\\e[2J"\n---\nLook.')
    write(own / "skills" / "ok" / "SKILL.md", f"---\ndescription: x\n---\n!`echo {TITLE}`")
    write(project / "AGENTS.md", f"See @no{TITLE}.md\n")
    write(project / ".mcp.json", "{\x1b")
    rules = {"allow": [f"Bash({TITLE}", name], "deny": [f"Reed({TITLE})"], "additionalDirectories": [name]}
    hook = {"type": "command", "command": "printf '\\033[2J' >&2; exit 2"}
    settings = {
        name: 1,
        "permissions": rules,
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]},
        "currentProvider": name,
        "skillOverrides": {"ok": name},
    }
    write(own / "settings.json", json.dumps(settings))


def sentences(event: Event) -> Iterator[str]:
    """What an event says in our words; the rest of it is what others said."""
    match event:
        case Noticed():
            yield event.message
        case ToolEnded():
            yield event.error or ""
        case PermissionDecided():
            for each in event.data["judged"]:
                yield from (each.get("reason", ""), each.get("part") or "")


COMMANDS = [
    ("rename", TITLE), ("skills", ""), ("agents", ""), ("hooks", ""), ("doctor", ""), ("status", ""),
    ("config", ""), ("context", f"add no{TITLE}"), ("memory", f"show {TITLE}"), ("trust", ""),
    ("permissions", ""), ("agent", TITLE), ("mode", TITLE), ("provider", TITLE), ("model", TITLE),
    ("export", f"md /{TITLE}/x"), ("language", TITLE), ("resume", TITLE), ("background", ""),
    ("rewind", TITLE),
]  # fmt: skip


async def test_no_sentence_of_ours_carries_what_moves_a_cursor(project: Path) -> None:
    write_traps(project)
    calls = [
        call("Read", file_path=f"no{TITLE}.txt"), call(f"No{TITLE}Tool"),
        call("Bash", command=f"echo {TITLE}"),
        call("Skill", skill=TITLE), call("Skill", skill="ok"), call("Agent", prompt="x", subagent_type=TITLE),
        call("Agent", prompt="x", subagent_type="w", model=TITLE, isolation="worktree"),
        call("WebFetch", url=f"http://{TITLE}.example"), call("Write", file_path=f"b{TITLE}", content="x"),
        call("Edit", file_path=f"a{TITLE}.txt", old_string="q", new_string="z"),
        call("KillBash", shell_id=TITLE),
    ]  # fmt: skip
    said: list[str] = []

    async def refuse(question: PermissionQuestion) -> bool:
        said.extend((question.reason, question.part or ""))
        return False

    session = InteractiveSession(
        cwd=project, provider=ScriptedProvider(calls, "Done.", repeat=True), model="m", trust_project=True,
        environment={"HOME": str(project.parent / "home")}, permission_handler=refuse,
    )  # fmt: skip
    async with session:
        session.events.on(Event, lambda event: said.extend(sentences(event)))
        await session.submit("Go.")
        said += [*map(str, session.problems), *session.describe_trust()]
        for name, args in COMMANDS:
            answer = await session.execute_command(name, args)
            said.append("" if answer is None else answer.message)
    assert len(list(filter(None, said))) > 40
    assert [text for text in said if CONTROLS.search(text)] == []


async def test_a_key_is_in_no_file_that_robota_writes_and_in_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK_KEY", KEY)
    home, project = tmp_path / "home", tmp_path / "plain"
    profile = {"type": "openai", "model": "m", "apiKey": "$ENV:WORK_KEY"}
    settings = {
        "currentProvider": "work",
        "providers": {"work": profile},
        "memory": {"enabled": True, "autoSave": True},
    }
    write(home / ".robota" / "settings.json", json.dumps(settings))
    write(project / "secret.txt", f"the key is {KEY}\n")
    write(project / ".robota" / "agents" / "w.md", f"---\ndescription: d\n---\nUse {KEY}.\n")
    skill = "---\ndescription: d\n---\n!`cat secret.txt`\nGo $ARGUMENTS\n"
    write(project / ".robota" / "skills" / "s" / "SKILL.md", skill)
    hooks = {
        "PostToolUse": [
            {"hooks": [{"type": "command", "command": f"env > hook.env; echo {KEY} >&2; exit 1"}]}
        ],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "cat secret.txt"}]}],
    }
    write(project / ".robota" / "settings.json", json.dumps({"hooks": hooks}))
    provider = ScriptedProvider(
        [call("Read", file_path="secret.txt")],
        [call("Bash", command=f"echo {KEY}; env > bash.env", description=f"say {KEY}")],
        [call("Bash", command=f"cat secret.txt; echo {KEY}", run_in_background=True)],
        [call("Write", file_path="secret.txt", content="no more")],
        [call("TodoWrite", todos=[{"content": f"use {KEY}", "status": "pending", "activeForm": "x"}])],
        [call("Agent", prompt=f"use {KEY}", description=f"d {KEY}", subagent_type="w")],
        [call("Bash", command="cat secret.txt")],
        f"Report {KEY}",
        f"Done {KEY}",
        repeat=True,
    )
    session = InteractiveSession(
        cwd=project, provider=provider, environment={"HOME": str(home), "WORK_KEY": KEY}, trust_project=True,
        permission_mode="bypassPermissions", session_store=SessionStore(home / ".robota" / "sessions"),
    )  # fmt: skip
    async with session:
        await session.submit(f"use the key {KEY}. Please remember that the key is {KEY}.")
        await session.submit(f"/s {KEY}")
        for name, args in [
            ("rename", KEY), ("memory", f"add note {KEY}"), ("compact", KEY), ("export", "markdown e.md"),
            ("export", "html e.html"), ("export", "json e.json"), ("agent", f"w use {KEY}"),
        ]:  # fmt: skip
            await session.execute_command(name, args)
    own = {"settings.json", "w.md"}
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in own]
    undo = home / ".robota" / "undo"
    leaks = [path.relative_to(tmp_path) for path in files if KEY.encode() in path.read_bytes()]
    assert {"bash.env", "hook.env", "e.md", "e.html", "e.json"} <= {path.name for path in files}
    assert [path for path in leaks if "blobs" not in path.parts] == []
    assert leaks, "what undo keeps is what a file was"
    assert undo.stat().st_mode & 0o077 == 0
