"""What the seed documents require of the SDK and is easy to miss: one test for each line of the list.

Where decisions read a line in another way for Python, the test says so.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import robota
import robota.core
import robota.sdk
import robota.tools
from robota.core.bus import EventBus
from robota.core.errors import ConfigurationError, SessionBusyError
from robota.core.events import SessionInit
from robota.core.messages import is_chat_entry
from robota.core.provider import Capabilities, NativeWebTool
from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.agents.loader import load_agents
from robota.sdk.agents.model_choice import expand_shortcut
from robota.sdk.agents.subagent import (
    assemble_subagent_prompt,
    create_subagent_logger,
    create_subagent_session,
    select_tools,
)
from robota.sdk.commands.registry import Command, CommandRegistry
from robota.sdk.interactive import InteractiveSession
from robota.sdk.places import find_places
from robota.sdk.skills.loader import load_skills
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("ROBOTA_HOME", str(path / ".robota"))
    return path


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    path.joinpath("notes.txt").write_text("milk\n")
    return path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make(project: Path, *replies: Any, **options: Any) -> InteractiveSession:
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), trust_project=True, **options)


def system_prompt(session: InteractiveSession) -> str:
    return session.session.agent.system_message or ""


async def test_01_no_provider_no_session() -> None:
    with pytest.raises(ConfigurationError, match="provider"):
        InteractiveSession(cwd=".")


async def test_02_settings_and_context_come_from_the_directory(project: Path) -> None:
    write(project / "AGENTS.md", "Always say please.")
    write(project / ".robota/settings.json", '{"permissions": {"deny": ["Read(./notes.txt)"]}}')
    provider_replies = ([call("Read", file_path="notes.txt")], "done")
    async with make(project, *provider_replies) as session:
        ended: list[Any] = []
        session.on("tool_end", ended.append)
        await session.submit("read")

        assert "Always say please." in system_prompt(session)
        assert ended[0].result == "denied"


async def test_03_an_injected_session_reads_nothing(tmp_path: Path) -> None:
    session = InteractiveSession(session=Session(provider=ScriptedProvider("ok"), cwd="/does/not/exist"))

    assert (await session.submit("go")).text == "ok"


async def test_04_nobody_needs_a_terminal_and_nobody_to_ask_is_a_no(project: Path) -> None:
    async with make(project, [call("Write", file_path="a", content="x")], "done") as session:
        await session.submit("go")

    assert not (project / "a").exists()


async def test_05_06_one_prompt_waits_and_abort_clears_it(project: Path) -> None:
    session = make(project, [call("Bash", command="sleep 100")], permission_mode="bypassPermissions")
    started = asyncio.Event()
    session.on("tool_start", lambda _: started.set())
    first = asyncio.create_task(session.submit("one"))
    await started.wait()
    second = asyncio.create_task(session.submit("two"))
    await asyncio.sleep(0)
    with pytest.raises(SessionBusyError):
        await session.submit("three")
    session.cancel_queue()
    assert (await second).interrupted
    assert session.is_executing
    session.abort()
    assert (await first).interrupted
    await session.shutdown()


async def test_07_interrupted_comes_when_the_abort_has_ended(project: Path) -> None:
    session = make(project, [call("Bash", command="sleep 100")], permission_mode="bypassPermissions")
    order: list[str] = []
    session.on("tool_start", lambda _: (order.append("abort"), session.abort()))
    session.on("tool_end", lambda _: order.append("tool_end"))
    session.on("interrupted", lambda _: order.append("interrupted"))
    await session.submit("go")

    assert order == ["abort", "tool_end", "interrupted"]
    await session.shutdown()


async def test_08_09_tool_entries_a_summary_and_messages_without_them(project: Path) -> None:
    async with make(project, [call("Read", file_path="notes.txt")], "Milk.") as session:
        await session.submit("read")
        kinds = [entry.type for entry in session.full_history]

        assert kinds == ["user", "tool-start", "tool-end", "tool-summary", "assistant"]
        assert [message.role for message in session.messages] == ["user", "assistant"]
        assert [entry.type for entry in session.full_history if is_chat_entry(entry)] == ["user", "assistant"]


async def test_10_a_skill_leaves_an_entry(project: Path) -> None:
    write(project / ".claude/skills/audit/SKILL.md", "---\ndescription: Audits.\n---\nLook closely.")
    async with make(project, "audited") as session:
        await session.submit("/audit")
        [entry] = [entry for entry in session.full_history if entry.type == "skill-invocation"]

        assert entry.data == {"skillName": "audit", "displayInput": "/audit"}


async def test_11_an_unknown_command_is_none(project: Path) -> None:
    async with make(project) as session:
        assert await session.execute_command("nosuch", "") is None


async def test_12_commands_signal_what_the_caller_has_to_do(project: Path) -> None:
    async with make(project) as session:
        found = {}
        for name, args in (
            ("model", "m-2"), ("language", "ko"), ("reset", ""), ("resume", ""), ("rename", "new name"),
        ):  # fmt: skip
            result = await session.execute_command(name, args)
            assert result is not None
            found |= result.data

        assert found["modelId"] == "m-2"
        assert found["language"] == "ko"
        assert found["resetRequested"] is True
        assert found["triggerResumePicker"] is True
        assert found["name"] == "new name"


async def test_13_commands_are_listed_for_transports(project: Path) -> None:
    async with make(project) as session:
        listed = {command.name: command.description for command in session.list_commands()}

    assert all(listed[name] for name in ("help", "clear", "compact", "mode", "model", "language"))
    assert all(listed[name] for name in ("cost", "context", "permissions", "resume", "rename", "reset"))


def test_14_what_a_transport_has_to_be_is_said_where_it_is_attached() -> None:
    assert robota.sdk.TransportAdapter is robota.core.TransportAdapter


async def test_14_a_transport_is_attached_and_not_started(project: Path) -> None:
    class Wire:
        name = "wire"
        attached: Any = None

        def attach(self, session: Any) -> None:
            self.attached = session

        async def start(self) -> None:
            raise AssertionError

        async def stop(self) -> None:
            raise AssertionError

    wire, session = Wire(), make(project)
    session.attach_transport(wire)

    assert wire.attached is session


async def test_15_16_17_18_each_submit_is_kept_and_resume_and_fork_use_it(
    project: Path, tmp_path: Path
) -> None:
    store = SessionStore(str(tmp_path / "kept"))
    session = make(project, "one", "two", session_store=store)
    for count, prompt in enumerate(("first", "second"), 1):
        await session.submit(prompt)
        kept = [message.content for message in resumed_messages(store, project, session.session_id)]
        assert len(kept) == 2 * count
    session.name = "named"
    await session.shutdown()
    assert store.load(session.session_id).name == "named"  # type: ignore[union-attr]

    again = make(project, "three", session_store=store, resume_session_id=session.session_id)
    with pytest.raises(ConfigurationError):
        _ = again.session  # nothing was injected by the constructor
    await again.submit("third")
    assert again.session_id == session.session_id
    assert [message.content for message in again.messages][-2:] == ["third", "three"]
    await again.shutdown()

    fork = make(project, "x", session_store=store, resume_session_id=session.session_id, fork_session=True)
    await fork.submit("other")
    assert fork.session_id != session.session_id
    assert "third" in [message.content for message in fork.messages]
    await fork.shutdown()


def resumed_messages(store: SessionStore, project: Path, session_id: str) -> list[Any]:
    return make(project, session_store=store, resume_session_id=session_id, fork_session=True).messages


async def test_19_files_that_shape_a_session_may_be_read(project: Path) -> None:
    write(project / ".agents/notes.md", "n")
    async with make(project, settings={"permissions": {"allow": ["Bash(ls)"]}}) as session:
        await session.ready()
        allow = session.session.rules.rules.allow

    for folder in (".agents", ".claude", ".robota"):
        assert {f"Read({folder}/**)", f"Glob({folder}/**)"} <= set(allow)
    assert "Bash(ls)" in allow


async def test_20_six_layers_of_settings(project: Path, home: Path) -> None:
    layers = [
        (home / ".claude/settings.json", "zz"),
        (home / ".robota/settings.json", "ja"),
        (project / ".claude/settings.json", "fr"),
        (project / ".robota/settings.json", "de"),
        (project / ".robota/settings.local.json", "ko"),
    ]
    for path, language in layers:
        write(path, json.dumps({"language": language}))
        async with make(project) as session:
            await session.ready()
            assert session.project.settings.language == language
    async with make(project, settings={"language": "en"}) as session:
        await session.ready()
        assert session.project.settings.language == "en"


async def test_21_references_are_resolved_after_the_merge(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANTED_MODEL", "m-9")
    write(home / ".robota/settings.json", '{"model": "$ENV:WANTED_MODEL"}')
    async with make(project) as session:
        await session.ready()
        assert session.session.model == "m-9"


async def test_22_23_language_and_compact_instructions(project: Path) -> None:
    write(project / ".robota/settings.json", '{"language": "Korean"}')
    write(
        project / "CLAUDE.md", "# Project\n\n## Compact Instructions\nKeep the names of tables.\n\n# Else\nx"
    )
    async with make(project, "one", "a summary that is long enough to be taken") as session:
        await session.submit("hi")
        assert "Korean" in system_prompt(session)
        instructions = session.session.options.compaction.instructions
        assert "Keep the names of tables." in instructions
        assert "Else" not in instructions


async def test_24_skills_are_found_in_order(project: Path, home: Path) -> None:
    for place in (
        project / ".agents/skills/x/SKILL.md",
        home / ".robota/skills/x/SKILL.md",
        project / ".claude/commands/x.md",
        project / ".claude/skills/x/SKILL.md",
    ):  # from the last to the first, so that each one takes the name from those before
        write(place, f"---\ndescription: {place.parts[-3]}\n---\nbody")
        skills = load_skills(find_places(project), trusted=True)
        found = skills.find("x")
        assert found is not None
        assert found.path == str(place)


async def test_25_a_short_name_of_a_plugin_command(project: Path) -> None:
    class Source:
        name = "plugin"

        def commands(self) -> list[Command]:
            return [Command(name="my-plugin:audit", description="Audits.", source="plugin")]

    registry = CommandRegistry()
    registry.add_source(Source())

    assert registry.resolve("audit") == "my-plugin:audit"
    assert registry.resolve("other") is None


def test_26_six_tools_come_from_the_sdk() -> None:
    for name in ("bash_tool", "read_tool", "write_tool", "edit_tool", "glob_tool", "grep_tool"):
        assert callable(getattr(robota.sdk, name))
    for name in ("web_fetch_tool", "web_search_tool"):
        assert not hasattr(robota.sdk, name)
        assert callable(getattr(robota.tools, name))


async def test_27_native_web_search_is_a_field_of_the_request(project: Path) -> None:
    provider = ScriptedProvider(
        "found", capabilities=Capabilities(web_search=NativeWebTool(supported=True, enabled=True))
    )
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("search")
        wanted = provider.requests[0].native_web_tools

        assert wanted is not None
        assert wanted.web_search
        assert "web search" in system_prompt(session).lower()


def test_28_inner_parts_are_not_public() -> None:
    for name in ("SystemCommandExecutor", "create_session", "AgentDefinitionLoader"):
        assert name not in robota.__all__
        assert name not in robota.sdk.__all__


def test_29_tools_of_a_subagent(project: Path) -> None:
    from robota.sdk import bash_tool, grep_tool, read_tool, write_tool

    agent = AgentDefinition(
        name="a",
        description="d",
        system_prompt="p",
        tools=("Read", "Write", "Agent"),
        disallowed_tools=("Write",),
    )
    tools = [read_tool(), write_tool(), grep_tool(), bash_tool()]

    assert [tool.name for tool in select_tools(agent, tools)] == ["Read"]


async def test_30_a_subagent_session_reads_nothing(project: Path) -> None:
    parent = Session(provider=ScriptedProvider("from the child"), cwd=str(project))
    agent = AgentDefinition(name="a", description="d", system_prompt="Do it.")
    child = create_subagent_session(parent, agent, agent_id="a-1")

    assert await child.run("go") == "from the child"
    await parent.shutdown()


def test_31_shortcuts_of_models() -> None:
    for shortcut, family in (
        ("sonnet", "claude-sonnet-"),
        ("haiku", "claude-haiku-"),
        ("opus", "claude-opus-"),
    ):
        assert expand_shortcut(shortcut).startswith(family)
    assert expand_shortcut("gpt-9") == "gpt-9"


def test_32_33_built_in_agents_and_who_overrides_them(project: Path, home: Path) -> None:
    agents = load_agents(find_places(project), trusted=True).definitions
    assert agents["Explore"].model == "claude-haiku-4-5"
    assert set(agents["Explore"].disallowed_tools or ()) >= {"Write", "Edit"}
    assert set(agents["Plan"].disallowed_tools or ()) >= {"Write", "Edit"}
    assert agents["Plan"].model in (None, "")
    for place in (home / ".robota/agents", project / ".claude/agents", project / ".robota/agents"):
        write(place / "Explore.md", f"---\nname: Explore\ndescription: {place}\n---\nbody")
        assert load_agents(find_places(project), trusted=True).definitions["Explore"].description == str(
            place
        )


def test_34_35_the_prompt_of_a_subagent() -> None:
    notes = {"claude_md": "CLAUDE NOTES", "agents_md": "AGENTS NOTES"}
    prompt = assemble_subagent_prompt("BODY", **notes)
    forked = assemble_subagent_prompt("BODY", **notes, is_fork_worker=True)

    for text in (prompt, forked):
        assert text.index("BODY") < text.index("CLAUDE NOTES") < text.index("AGENTS NOTES")
    assert "500 words" in forked
    assert "500 words" not in prompt


async def test_36_the_log_of_a_subagent(tmp_path: Path) -> None:
    events = EventBus()
    logger = create_subagent_logger("parent", "agent-1", str(tmp_path))
    await logger.journal.open()
    logger.attach(events)
    events.emit(SessionInit(data={}, seq=0))
    await logger.aclose()

    assert (tmp_path / "parent" / "subagents" / "agent-1.jsonl").exists()
