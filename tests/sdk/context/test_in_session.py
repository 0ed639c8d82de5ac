"""What a session knows of its project, seen in the requests that its model gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.context.files import Disk

from robota import InteractiveSession
from robota.core.events import ContextLoaded
from robota.core.messages import JsonObject
from robota.core.provider import Capabilities, NativeWebTool
from robota.sdk.context.session_context import PromptReferenceError
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    disk = Disk(tmp_path)
    disk.write(
        {
            "~/.claude/CLAUDE.md": "Answer briefly.",
            "AGENTS.md": "Use tabs.\n\n# Compact Instructions\nKeep the numbers.",
            "CLAUDE.md": "@AGENTS.md\n\nAnd see @docs/style.md.",
            "docs/style.md": "No emoji.",
            ".claude/rules/tests.md": "---\npaths: 'tests/**'\n---\nOne assertion each.",
            "api/AGENTS.md": "Validate input.",
            "api/x.py": "x = 1\n",
            "tests/test_x.py": "assert 1\n",
            "package.json": '{"name": "shop"}',
            "tsconfig.json": "{}",
        }
    )
    return disk


def open_session(disk: Disk, *replies: Any, **options: Any) -> tuple[InteractiveSession, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    options = {"permission_mode": "bypassPermissions", **options}
    session = InteractiveSession(
        cwd=disk.project, provider=provider, environment={"HOME": str(disk.home)}, **options
    )
    return session, provider


async def test_the_system_prompt_has_the_project_in_it(disk: Disk) -> None:
    session, provider = open_session(disk, "Hello.")
    loaded: list[JsonObject] = []
    session.events.on(ContextLoaded, lambda event: loaded.append(dict(event.data)))
    await session.submit("Hi.")
    system = provider.requests[0].messages[0].content
    assert system == session.session.agent.system_message
    assert [section.name for section in session.kit.context.prompt.sections] == [
        "Role", "Working Directory", "Current Project", "Permission Mode", "Agent Instructions",
        "Project Notes", "Available Tools",
    ]  # fmt: skip
    order = ["Answer briefly.", "And see @docs/style.md.", "No emoji."]
    assert sorted(order, key=system.index) == order
    assert system.count("Use tabs.") == 1
    assert "One assertion each." not in system
    assert "Validate input." not in system
    assert "Name: shop\nType: node\nLanguage: typescript\nPackage manager: npm" in system
    assert [Path(file["path"]).name for file in loaded[0]["files"]] == [
        "CLAUDE.md", "AGENTS.md", "CLAUDE.md", "style.md", "tests.md",
    ]  # fmt: skip
    await session.shutdown()


async def test_nested_files_and_rules_come_before_the_next_round_and_survive_compactions(disk: Disk) -> None:
    session, provider = open_session(
        disk,
        ["Reading.", call("Read", file_path="api/x.py")],
        ["Reading on.", call("Read", file_path="tests/test_x.py")],
        "Done.",
        "A summary.",
        "Going on.",
        "Another summary.",
        "The end.",
        session_store=SessionStore(disk.home / "kept"),
    )
    await session.submit("Go.")
    assert "Validate input." in provider.requests[1].messages[-1].content
    assert "One assertion each." in provider.requests[2].messages[-1].content
    for words in ("Go on.", "And on."):
        await session.session.compact()
        assert "Keep the numbers." in provider.requests[-1].messages[-1].content
        await session.submit(words)
        system, summary, *_ = provider.requests[-1].messages
        assert "Use tabs." in system.content
        assert '<instructions path="api/AGENTS.md">\nValidate input.\n</instructions>' in summary.content
        assert "One assertion each." in summary.content
    await session.shutdown()
    report = await replay_session(disk.home / "kept" / f"{session.session_id}.jsonl")
    assert report.identical, report.divergence


async def test_a_subagent_is_told_nested_files_too_and_keeps_them(disk: Disk) -> None:
    session, provider = open_session(
        disk,
        [call("Agent", description="look", prompt="Look at api/x.py", subagent_type="general-purpose")],
        [call("Read", file_path="api/x.py")],
        "It sets x.",
        "Done.",
        session_store=SessionStore(disk.home / "kept"),
    )
    await session.submit("Go.")
    second = provider.requests[2].messages
    assert "Validate input." in second[-1].content
    assert second[-1].metadata["keep"] is True
    assert "Validate input." not in provider.requests[3].messages[-1].content
    await session.shutdown()


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_model_whose_service_searches_the_web_is_told_so(disk: Disk, enabled: bool) -> None:
    offered = Capabilities(web_search=NativeWebTool(supported=True, enabled=enabled))
    provider = ScriptedProvider("One.", capabilities=offered)
    session = InteractiveSession(cwd=disk.project, provider=provider, environment={"HOME": str(disk.home)})
    await session.submit("Go.")
    told = "\n\n## Web Search\nThe model's service can search the web itself."
    assert (told in provider.requests[0].messages[0].content) == enabled
    await session.shutdown()


async def test_a_file_that_a_prompt_names_goes_with_it_and_people_see_what_was_typed(disk: Disk) -> None:
    session, provider = open_session(disk, "I see.", session_store=SessionStore(disk.home / "kept"))
    await session.submit("Explain @api/x.py")
    sent = [message.content for message in provider.requests[0].messages[1:]]
    assert sent[0] == 'Explain @api/x.py\n\n<file path="api/x.py">\nx = 1\n</file>'
    assert "Validate input." in sent[1]
    assert session.messages[0].content == "Explain @api/x.py"
    entries = [entry for entry in session.full_history if entry.type == "prompt-file-reference"]
    assert [entry.data for entry in entries] == [{"references": [{"path": "api/x.py", "size": 6}]}]
    await session.shutdown()
    report = await replay_session(disk.home / "kept" / f"{session.session_id}.jsonl")
    assert report.identical, report.divergence


async def test_a_file_that_was_sent_whole_may_be_edited_without_being_read_again(disk: Disk) -> None:
    session, _ = open_session(
        disk, [call("Edit", file_path="api/x.py", old_string="1", new_string="2")], "Done."
    )
    await session.submit("Count up in @api/x.py")
    assert disk.path("api/x.py").read_text() == "x = 2\n"
    await session.shutdown()


async def test_a_fork_keeps_the_files_too(disk: Disk) -> None:
    store = SessionStore(disk.home / "kept")
    first, _ = open_session(disk, "One.", session_store=store)
    await first.ready()
    first.kit.context.references.add("docs/style.md")
    await first.submit("Go.")
    await first.shutdown()
    fork, provider = open_session(
        disk, "Two.", session_store=store, resume_session_id=first.session_id, fork_session=True
    )
    await fork.submit("Go on.")
    assert [reference.path for reference in fork.kit.context.references.active] == ["docs/style.md"]
    assert len([message for message in provider.requests[0].messages if "No emoji." in message.content]) == 2
    await fork.shutdown()
    record = store.load(fork.session_id)
    assert record is not None
    assert record.context_references == [{"path": "docs/style.md", "size": 9}]


async def test_a_reference_that_cannot_be_followed_stops_the_prompt(disk: Disk) -> None:
    session, provider = open_session(disk, "Fine.")
    errors: list[Exception] = []
    session.on("error", errors.append)
    result = await session.submit("Explain @api/gone.py and @../../secret.md")
    assert isinstance(result.error, PromptReferenceError)
    assert str(result.error) == (
        "@api/gone.py does not exist: correct the path. @../../secret.md does not exist: correct the path."
    )
    assert errors == [result.error]
    assert provider.requests == []
    await session.submit("Then without.")
    assert len(provider.requests) == 1
    await session.shutdown()


async def test_kept_files_survive_a_resume_and_are_told_again_when_changed(disk: Disk) -> None:
    store = SessionStore(disk.home / "kept")
    first, _ = open_session(disk, "One.", session_store=store)
    await first.ready()
    first.kit.context.references.add("docs/style.md")
    await first.submit("Go.")
    await first.shutdown()
    disk.write({"docs/style.md": "Emoji everywhere."})
    second, provider = open_session(
        disk, "Two.", "A summary.", session_store=store, resume_session_id=first.session_id
    )
    await second.submit("Go on.")
    assert [reference.path for reference in second.kit.context.references.active] == ["docs/style.md"]
    assert (
        '<file path="docs/style.md">\nEmoji everywhere.\n</file>' in provider.requests[0].messages[-1].content
    )
    assert '<file path="docs/style.md">\nEmoji everywhere.\n</file>' in (await second.session.compact() or "")
    await second.shutdown()


async def test_a_change_of_mode_is_in_the_next_system_prompt(disk: Disk) -> None:
    session, provider = open_session(disk, "One.", "Two.", "Three.")
    await session.submit("Go.")
    session.permission_mode = "plan"
    await session.submit("Go.")
    await session.submit("/language ko")
    disk.write({"AGENTS.md": "Use blanks."})
    await session.submit("Go.")
    systems = [request.messages[0].content for request in provider.requests]
    assert "## Permission Mode\nbypassPermissions:" in systems[0]
    assert "## Permission Mode\nplan:" in systems[1]
    assert "Always answer in Korean" in systems[2]
    assert "Use blanks." in systems[2]
    await session.shutdown()


async def test_a_program_may_give_its_own_prompt_or_add_to_it(disk: Disk) -> None:
    own, provider = open_session(
        disk, "Arr.", system_prompt="You are a pirate.", append_system_prompt="Sing."
    )
    await own.submit("Hi.")
    assert provider.requests[0].messages[0].content == "You are a pirate.\n\n## Further Instructions\nSing."
    await own.shutdown()


async def test_imports_from_outside_are_left_out_with_a_notice_until_somebody_agrees(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "Read @../shared.md", "~/work/shared.md": "Shared words."})
    session, provider = open_session(disk, "One.")
    notices: list[str] = []
    session.events.subscribe(lambda event: notices.append(getattr(event, "message", "")))
    await session.submit("Go.")
    assert "Shared words." not in provider.requests[0].messages[0].content
    assert any("lies outside the project and was left out" in notice for notice in notices)
    assert any("lies outside the project" in problem.message for problem in session.problems)
    await session.shutdown()
    for_once, provider = open_session(disk, "One.", allow_outside_imports=True)
    await for_once.submit("Go.")
    assert "Shared words." in provider.requests[0].messages[0].content
    await for_once.shutdown()


async def test_consent_to_imports_counts_at_once_and_is_kept_in_the_users_settings(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "Read @../shared.md", "~/work/shared.md": "Shared words."})
    disk.write({".robota/settings.json": f'{{"allowOutsideImports": ["{disk.project}"]}}'})
    session, provider = open_session(disk, "One.", "Two.", trust_project=True)
    await session.submit("Go.")
    await session.allow_outside_imports()
    await session.submit("Go on.")
    told = ["Shared words." in request.messages[0].content for request in provider.requests]
    assert told == [False, True]
    await session.shutdown()
    later, provider = open_session(disk, "Three.")
    await later.submit("Go.")
    assert "Shared words." in provider.requests[0].messages[0].content
    await later.shutdown()


async def test_settings_choose_language_files_and_sections(disk: Disk) -> None:
    disk.path(".git").mkdir()
    disk.write(
        {
            "~/.robota/settings.json": '{"language": "ja", "claudeMdExcludes": ["docs/**"]}',
            ".robota/settings.json": '{"permissions": {"deny": ["Read(AGENTS.md)"]}}',
        }
    )
    session, provider = open_session(disk, "One.")
    await session.submit("Go.")
    system = provider.requests[0].messages[0].content
    assert "Always answer in Japanese" in system
    assert "\n\n## Git\n" in system
    assert "No emoji." not in system
    assert "Use tabs." not in system
    assert any("a deny rule of the settings covers it" in problem.message for problem in session.problems)
    await session.shutdown()
    disk.write({"~/.robota/settings.json": '{"includeGitInstructions": false}'})
    server, provider = open_session(disk, "One.", setting_sources=("user",))
    await server.submit("Go.")
    system = provider.requests[0].messages[0].content
    assert "## Git" not in system
    assert "Answer briefly." in system
    assert "Use tabs." not in system
    await server.shutdown()


async def test_instructions_that_change_are_read_again_before_the_next_prompt(disk: Disk) -> None:
    session, provider = open_session(disk, "One.", "Two.", "Three.", "Four.")
    await session.submit("Go.")
    await session.submit("Go.")
    disk.write({"AGENTS.md": "Use blanks.", "~/.robota/AGENTS.md": "Smile."})
    await session.submit("Go.")
    disk.write({"docs/style.md": "Emoji."})
    await session.submit("Go.")
    systems = [request.messages[0].content for request in provider.requests]
    assert systems[0] == systems[1]
    assert ["Use blanks." in system for system in systems] == [False, False, True, True]
    assert ["Smile." in system for system in systems] == [False, False, True, True]
    assert ["No emoji." in system for system in systems] == [True, True, True, False]
    await session.shutdown()


async def test_a_deny_rule_of_the_running_session_binds_nested_files_and_references(disk: Disk) -> None:
    session, provider = open_session(
        disk,
        "One.",
        [call("Read", file_path="api/x.py")],
        "Two.",
        session_store=SessionStore(disk.home / "kept"),
    )
    await session.submit("Go.")
    disk.write(
        {".claude/settings.json": '{"permissions": {"deny": ["Read(./docs/**)", "Read(./api/AGENTS.md)"]}}'}
    )
    result = await session.submit("See @docs/style.md")
    assert str(result.error) == "@docs/style.md may not be read: a deny rule of the settings covers it."
    await session.submit("Read.")
    assert not any("Validate input." in message.content for message in provider.requests[-1].messages)
    await session.shutdown()
