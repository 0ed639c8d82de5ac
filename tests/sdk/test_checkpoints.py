"""Going back to before a prompt, through the front door: real files, real commands, a scripted model."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from robota.sdk.commands.effects import CommandResult, Rewound
from robota.sdk.interactive import InteractiveSession
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    path = tmp_path / "project"
    path.mkdir()
    (path / "notes.txt").write_text("milk\n")
    return path


def make(project: Path, *replies: Any, **options: Any) -> InteractiveSession:
    return InteractiveSession(
        cwd=project,
        provider=ScriptedProvider(*replies),
        permission_mode="bypassPermissions",
        session_store=SessionStore(project.parent / "sessions"),
        **options,
    )


def write(path: Path, text: str) -> list[Any]:
    return [call("Write", file_path=str(path), content=text)]


WORK = (
    [call("Bash", command="echo bread >> notes.txt; mkdir made; echo x > made/x")],
    "Shopping.",
)


async def work(project: Path, **options: Any) -> InteractiveSession:
    """Three prompts: a new file, an edit of it with a command, and nothing on the disk."""
    session = make(
        project,
        write(project / "plan.md", "one\n"),
        "Planned.",
        [call("Edit", file_path=str(project / "plan.md"), old_string="one", new_string="two")],
        *WORK,
        "Hello.",
        "Again.",
        **options,
    )
    for prompt in ("Plan it", "Change it", "Say hello"):
        result = await session.submit(prompt)
        assert result.error is None
    return session


def state(project: Path) -> dict[str, str]:
    files = sorted(each for each in project.rglob("*") if each.is_file())
    return {str(each.relative_to(project)): each.read_text() for each in files}


DONE = {"made/x": "x\n", "notes.txt": "milk\nbread\n", "plan.md": "two\n"}
BEFORE_SECOND = {"notes.txt": "milk\n", "plan.md": "one\n"}


def said(session: InteractiveSession) -> list[str]:
    return [message.content for message in session.messages if message.role in ("user", "assistant")]


async def run(session: InteractiveSession, line: str) -> CommandResult:
    name, _, args = line.partition(" ")
    answer = await session.execute_command(name, args)
    assert answer is not None
    return answer


async def test_files_and_conversation_go_back_together_and_forth_again(project: Path) -> None:
    session = await work(project)
    assert state(project) == DONE
    whole = said(session)

    answer = await run(session, "rewind restore 2")

    assert answer.success, answer.message
    assert isinstance(answer.effect, Rewound)
    assert (answer.effect.chat, answer.effect.prompt) == (True, "Change it")
    assert state(project) == BEFORE_SECOND
    assert not (project / "made").exists()
    assert said(session) == ["Plan it", "Planned."]

    answer = await run(session, "redo")
    assert answer.success, answer.message
    assert state(project) == DONE
    assert said(session) == whole
    assert not (await run(session, "redo")).success
    await session.shutdown()


@pytest.mark.parametrize(
    ("part", "files", "prompts"), [("code", BEFORE_SECOND, 3), ("chat", DONE, 1), ("both", BEFORE_SECOND, 1)]
)
async def test_only_what_was_asked_for_goes_back(
    project: Path, part: str, files: dict[str, str], prompts: int
) -> None:
    session = await work(project)
    assert (await run(session, f"rewind restore 2 {part}")).success
    assert state(project) == files
    assert sum(message.role == "user" for message in session.messages) == prompts
    assert (await run(session, "redo")).success
    assert state(project) == DONE
    assert sum(message.role == "user" for message in session.messages) == 3
    await session.shutdown()


async def test_the_list_and_the_preview_say_what_would_happen(project: Path) -> None:
    session = await work(project)
    (project / "plan.md").write_text("the user's own\n")

    listed = (await run(session, "rewind")).message.splitlines()
    assert [line.split("  ")[-2:] for line in listed[:2]] == [
        ["Plan it", "[1 file]"],
        ["Change it", "[4 files]"],
    ]
    assert listed[2].endswith("Say hello")

    preview = (await run(session, "rewind inspect 2")).message
    assert "restore notes.txt" in preview
    assert "delete made/x" in preview
    assert "restore plan.md (changed by somebody else since" in preview
    assert state(project)["plan.md"] == "the user's own\n"
    await session.shutdown()


async def test_the_users_own_edits_are_kept_unless_they_say_otherwise(project: Path) -> None:
    session = await work(project)
    (project / "plan.md").write_text("the user's own\n")

    answer = await run(session, "rewind restore 1 code")
    assert "kept plan.md: it was changed after the call" in answer.message
    assert state(project) == {"notes.txt": "milk\n", "plan.md": "the user's own\n"}

    assert (await run(session, "rewind restore 1 code overwrite")).success
    assert state(project) == {"notes.txt": "milk\n"}
    assert (await run(session, "redo")).success
    assert state(project)["plan.md"] == "the user's own\n"
    await session.shutdown()


async def test_a_resumed_session_knows_its_checkpoints_and_what_it_did_is_replayed(project: Path) -> None:
    session = await work(project)
    id = session.session_id
    await session.shutdown()

    later = make(project, "Fresh.", resume_session_id=id)
    known = await (await ready(later)).kit.checkpoints.all()
    assert [(each.prompt, each.files) for each in known] == [
        ("Plan it", 1),
        ("Change it", 4),
        ("Say hello", 0),
    ]
    assert (await run(later, "rewind restore 2")).success
    assert state(project) == BEFORE_SECOND
    await later.shutdown()

    last = make(project, "Fresh.", resume_session_id=id)
    assert said(await ready(last)) == ["Plan it", "Planned."]
    assert (await run(last, "redo")).success
    assert state(project) == DONE
    assert said(last)[-2:] == ["Say hello", "Hello."]
    assert (await run(last, "rewind restore 3 chat")).success
    await last.submit("Something else")
    await last.shutdown()
    report = await replay_session(project.parent / "sessions" / f"{id}.jsonl")
    assert report.divergence is None, str(report.divergence)


async def ready(session: InteractiveSession) -> InteractiveSession:
    await session.ready()
    return session


async def test_what_was_rewound_in_words_only_is_still_gone_back_over_in_files(project: Path) -> None:
    session = await work(project)
    assert (await run(session, "rewind restore 2 chat")).success
    assert state(project) == DONE

    assert (await run(session, "rewind restore 1 code")).success

    assert state(project) == {"notes.txt": "milk\n"}
    await session.shutdown()


async def test_going_on_after_a_rewind_cannot_be_taken_back_but_files_of_later_prompts_can(
    project: Path,
) -> None:
    session = await work(project)
    await run(session, "rewind restore 3 chat")
    await session.submit("Another third")

    answer = await run(session, "redo")
    assert not answer.success
    assert "went on since" in answer.message
    assert said(session)[-2:] == ["Another third", "Again."]
    assert (await run(session, "rewind restore 2")).success
    assert state(project) == BEFORE_SECOND
    await session.shutdown()


async def test_single_calls_are_listed_undone_and_redone(project: Path) -> None:
    session = await work(project)
    listed = (await run(session, "undo list")).message.splitlines()
    assert [line.split("  ")[-1] for line in listed] == ["[3 files]", "[1 file]", "[1 file]"]
    assert "echo bread" in listed[0]

    assert (await run(session, "undo")).success
    assert state(project) == {"notes.txt": "milk\n", "plan.md": "two\n"}
    assert (await run(session, "undo")).success
    assert state(project) == BEFORE_SECOND
    assert "[undone]" in (await run(session, "undo list")).message
    assert "was taken back already" in (await run(session, "undo 1")).message
    assert (await run(session, "redo")).success
    assert (await run(session, "redo")).success
    assert state(project) == DONE
    assert (await run(session, "undo 3")).success is False  # plan.md was changed by a later call
    assert state(project) == DONE
    await session.shutdown()


async def test_nothing_is_taken_back_while_a_prompt_runs(project: Path) -> None:
    answers: list[CommandResult] = []

    @tool
    async def interfere() -> str:
        """Try to take back what is under way."""
        answers.extend([await run(session, line) for line in ("rewind restore 1", "undo", "redo")])
        return "tried"

    session = make(
        project, write(project / "plan.md", "one\n"), [call("interfere")], "Done.", tools=[interfere]
    )
    await session.submit("Plan it")

    assert [answer.success for answer in answers] == [False] * 3
    assert {answer.message for answer in answers} == {
        "Nothing is taken back while a prompt or an agent runs: stop it first."
    }
    assert state(project) == {"notes.txt": "milk\n", "plan.md": "one\n"}
    await session.shutdown()


KILLED = """
import asyncio, os, signal, sys
from robota.sdk.interactive import InteractiveSession
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool
from robota.tools.function_tool import tool

@tool
async def die() -> str:
    "Die."
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    session = InteractiveSession(
        provider=ScriptedProvider(
            [call("Write", file_path="plan.md", content="one\\n")],
            "Planned.",
            [call("Bash", command="echo two > plan.md; echo x > made")],
            [call("die")],
        ),
        permission_mode="bypassPermissions",
        session_store=SessionStore("../sessions"),
        tools=[die],
    )
    print(session.session_id, flush=True)
    await session.submit("Plan it")
    await session.submit("Change it")

asyncio.run(main())
"""


async def test_a_session_that_was_killed_in_mid_turn_goes_back_to_before_it(project: Path) -> None:
    done = await anyio.run_process([sys.executable, "-c", KILLED], cwd=project, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert state(project) == {"made": "x\n", "notes.txt": "milk\n", "plan.md": "two\n"}

    session = make(project, resume_session_id=done.stdout.decode().strip())
    answer = await run(session, "rewind restore 2")

    assert answer.success, answer.message
    assert state(project) == {"notes.txt": "milk\n", "plan.md": "one\n"}
    assert said(session) == ["Plan it", "Planned."]
    assert (await run(session, "redo")).success
    assert state(project)["plan.md"] == "two\n"
    await session.shutdown()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rewind restore 9", "There is no checkpoint 9: there are 1 to 3."),
        ("rewind restore", "Usage: /rewind restore N"),
        ("rewind restore 1 everything", "Usage: /rewind restore N"),
        ("rewind inspect x", "Usage: /rewind inspect N"),
        ("rewind back", "/rewind knows no 'back'"),
        ("undo 99", "There is nothing to undo there"),
        ("undo x", "Usage: /undo"),
        ("redo", "There is nothing to redo."),
    ],
)
async def test_what_cannot_be_done_is_said(project: Path, line: str, words: str) -> None:
    session = await work(project)
    answer = await run(session, line)
    assert not answer.success
    assert words in answer.message
    assert state(project) == DONE
    await session.shutdown()
