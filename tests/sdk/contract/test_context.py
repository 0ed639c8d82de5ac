"""What the model is told: instructions, rules, references, the parts of the system prompt, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, write

from robota import InteractiveSession, create_project_session_store
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


def make(project: Path, *replies: Any, **more: Any) -> tuple[InteractiveSession, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    return InteractiveSession(cwd=project, provider=provider, **more), provider


def system(provider: ScriptedProvider, at: int = -1) -> str:
    return str(provider.requests[at].messages[0].content)


async def test_instructions_are_read_from_the_root_down(project: Path) -> None:
    write(project.parent / "AGENTS.md", "Outer.")
    write(project / "AGENTS.md", "Middle.")
    write(project / "CLAUDE.md", "Middle notes.")
    write(project / "deep/AGENTS.md", "Inner.")
    session, provider = make(project / "deep", "Fine.")
    async with session:
        await session.submit("Go")
    told = system(provider)
    assert told.index("Outer.") < told.index("Middle.") < told.index("Inner.")
    assert "Middle notes." in told


async def test_a_file_that_only_repeats_the_other_counts_once(project: Path) -> None:
    write(project / "AGENTS.md", "Use tabs everywhere.")
    write(project / "CLAUDE.md", "@AGENTS.md")
    session, provider = make(project, "Fine.")
    async with session:
        await session.submit("Go")
    assert system(provider).count("Use tabs everywhere.") == 1


async def test_compact_instructions_reach_the_summary(project: Path) -> None:
    write(
        project / "CLAUDE.md",
        "# Notes\n\n## Compact Instructions\n\nKeep the port numbers.\n\n## Other\n\nNot this.\n",
    )
    session, provider = make(project, "One.", "A summary.")
    async with session:
        await session.submit("Go")
        await session.execute_command("compact", "")
    asked = str(provider.requests[1].messages)
    assert "Keep the port numbers." in asked


@pytest.mark.parametrize(("code", "name"), [("ko", "Korean"), ("de", "German"), ("Klingon", "Klingon")])
async def test_the_language_is_in_the_system_prompt_and_survives_compaction(
    project: Path, home: Path, code: str, name: str
) -> None:
    write(home / ".robota/settings.json", {"language": code})
    session, provider = make(project, "One.", "A summary.", "Two.")
    async with session:
        await session.submit("Go")
        await session.execute_command("compact", "")
        await session.submit("On")
    assert name in system(provider, 0)
    assert name in system(provider, 2)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"package.json": '{"name": "shop"}', "tsconfig.json": "{}", "pnpm-lock.yaml": ""},
            ["node", "typescript", "pnpm"],
        ),
        ({"pyproject.toml": '[project]\nname = "shop"\n'}, ["python"]),
        ({"Cargo.toml": '[package]\nname = "shop"\n'}, ["rust"]),
        ({"go.mod": "module shop\n"}, ["go"]),
    ],
)
async def test_the_kind_of_project_is_told(project: Path, files: dict[str, str], words: list[str]) -> None:
    for name, text in files.items():
        write(project / name, text)
    session, provider = make(project, "Fine.")
    async with session:
        await session.submit("Go")
    told = system(provider).lower()
    assert all(word in told for word in words)
    assert str(project).lower() in told


async def test_rules_with_paths_are_told_when_such_a_file_is_touched(project: Path) -> None:
    write(project / ".claude/rules/api.md", "---\npaths:\n  - 'src/api/**'\n---\nValidate all input.\n")
    write(project / ".claude/rules/all.md", "Write tests.\n")
    write(project / "src/api/a.py", "x = 1\n")
    session, provider = make(project, "One.", [call("Read", file_path="src/api/a.py")], "Two.", "Three.")
    async with session:
        await session.submit("Go")
        assert "Write tests." in system(provider)
        assert "Validate all input." not in str(provider.requests[0].messages)
        await session.submit("Read")
        await session.submit("On")
    assert "Validate all input." in str(provider.requests[-1].messages)


async def test_nested_instructions_are_told_when_their_directory_is_touched(project: Path) -> None:
    write(project / "web/AGENTS.md", "Use React here.")
    write(project / "web/a.js", "let x\n")
    session, provider = make(project, [call("Read", file_path="web/a.js")], "One.", "Two.")
    async with session:
        await session.submit("Go")
        await session.submit("On")
    assert "Use React here." not in str(provider.requests[0].messages)
    assert "Use React here." in str(provider.requests[-1].messages)


async def test_a_file_in_the_prompt_goes_with_it_and_people_see_what_they_typed(project: Path) -> None:
    session, provider = make(project, "Milk.")
    async with session:
        await session.submit("What is in @notes.txt?")
        assert session.messages[0].content == "What is in @notes.txt?"
        assert "milk" in str(provider.requests[0].messages[-1].content)


@pytest.mark.parametrize(
    ("prompt", "why"),
    [("@../outside.txt", "outside"), ("@missing.txt", "does not exist"), ("@big.txt", "65,536")],
)
async def test_a_reference_that_cannot_be_followed_holds_the_prompt_back(
    project: Path, prompt: str, why: str
) -> None:
    write(project.parent / "outside.txt", "secret words")
    write(project / "big.txt", "x" * 70_000)
    session, provider = make(project, "never")
    async with session:
        heard = Heard(session)
        result = await session.submit(f"Look at {prompt}")
        assert heard.closings() == ["error"]
        assert prompt in str(result.error)
        assert why in str(result.error)
    assert provider.requests == []


async def test_at_most_eight_files_go_with_a_prompt(project: Path) -> None:
    for number in range(9):
        write(project / f"f{number}.txt", "x")
    session, provider = make(project, "Fine.")
    async with session:
        result = await session.submit(" ".join(f"@f{number}.txt" for number in range(9)))
        assert result.error is not None
        assert "8" in str(result.error)
        assert provider.requests == []


async def test_files_that_are_kept_survive_compaction_resume_and_follow_changes(
    project: Path, tmp_path: Path
) -> None:
    store = create_project_session_store(tmp_path / "sessions")
    session, provider = make(project, "One.", "A summary.", "Two.", session_store=store)
    async with session:
        added = await session.execute_command("context", "add notes.txt")
        assert added is not None
        assert added.success
        await session.submit("Go")
        assert "milk" in str(provider.requests[0].messages)
        await session.execute_command("compact", "")
        write(project / "notes.txt", "bread\n")
        await session.submit("On")
        assert "bread" in str(provider.requests[2].messages)
    record = store.load(session.session_id)
    assert record is not None
    assert [each["path"] for each in record.context_references or []] == ["notes.txt"]
    again, later = make(project, "Three.", session_store=store, resume_session_id=session.session_id)
    async with again:
        shown = await again.execute_command("context", "")
        assert shown is not None
        assert "notes.txt" in shown.message
        removed = await again.execute_command("context", "remove notes.txt")
        assert removed is not None
        assert removed.success
        await again.submit("On")
    assert "bread" not in system(later)


async def test_context_shows_each_part_with_its_tokens(project: Path) -> None:
    write(project / "AGENTS.md", "Use tabs.")
    session, _ = make(project, "Fine.")
    async with session:
        await session.submit("Go")
        shown = await session.execute_command("context", "")
        assert shown is not None
        lines = shown.message.splitlines()
        assert lines[0].startswith("Context: ")
        assert sum(" tokens" in line for line in lines[1:]) >= 5
        assert set(shown.data) >= {"usedTokens", "maxTokens", "percentage"}


async def test_instructions_survive_any_number_of_compactions_word_for_word(project: Path) -> None:
    write(project / "AGENTS.md", "Never use the word «obviously».\n")
    session, provider = make(project, *["Said.", "A summary."] * 4, "Done.")
    async with session:
        for _ in range(4):
            await session.submit("Go")
            await session.execute_command("compact", "")
        await session.submit("Last")
    assert "Never use the word «obviously»." in system(provider)


async def test_memory_is_off_until_somebody_turns_it_on(project: Path, home: Path) -> None:
    session, _ = make(project, "Fine.")
    async with session:
        await session.submit("Remember that the port is 7070.")
    assert not (project / ".robota/memory").exists()


async def test_memory_waits_for_approval_and_is_told_later(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"memory": {"enabled": True}})
    session, _ = make(project, "Noted.")
    async with session:
        await session.submit("Please remember that the port is 7070.")
        pending = await session.execute_command("memory", "pending")
        assert pending is not None
        assert "7070" in pending.message
        identity = next(word for word in pending.message.split() if word.startswith("mem_")).strip(":,()")
        approved = await session.execute_command("memory", f"approve {identity}")
        assert approved is not None
        assert approved.success, approved.message
    assert "7070" in (project / ".robota/memory/MEMORY.md").read_text()
    later, provider = make(project, "7070.")
    async with later:
        await later.submit("Which port?")
    assert "7070" in system(provider)


async def test_secrets_are_never_remembered(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"memory": {"enabled": True, "autoSave": True}})
    session, _ = make(project, "Noted.")
    async with session:
        await session.submit("Remember that the password is hunter2-hunter2.")
        refused = await session.execute_command("memory", "add my password: hunter2-hunter2")
        assert refused is not None
        assert not refused.success
    kept = [path.read_text() for path in (project / ".robota").rglob("*") if path.is_file()]
    assert not [text for text in kept if "hunter2" in text]


async def test_what_is_saved_by_itself_is_deduplicated(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"memory": {"enabled": True, "autoSave": True}})
    session, _ = make(project, "Noted.", "Noted.")
    async with session:
        await session.submit("Remember that we deploy on Fridays.")
        await session.submit("Remember that we deploy on Fridays.")
    text = (project / ".robota/memory/MEMORY.md").read_text()
    assert text.count("Fridays") == 1
