"""Skills in a session, called by people and by models."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from robota.core.messages import ToolMessage, UserMessage
from robota.core.questions import PermissionQuestion
from robota.sdk.commands.effects import SubmitPrompt
from robota.sdk.interactive import InteractiveSession
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider
from robota.testing import call as make_call

pytestmark = pytest.mark.anyio


def call(name: str, **arguments: Any) -> list[Any]:
    return [make_call(name, **arguments)]


async def yes(question: PermissionQuestion) -> bool:
    return True


def write_skill(project: Path, body: str, head: str = "", name: str = "audit") -> Path:
    path = project / ".claude" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\ndescription: Look for mistakes.\n{head}---\n{body}")
    return path


def make(project: Path, *answers: Any, **options: Any) -> tuple[InteractiveSession, ScriptedProvider]:
    provider = ScriptedProvider(*answers)
    options = {"trust_project": True, "model": "m", **options}
    home = {"HOME": str(project / "home")}
    return InteractiveSession(cwd=project, provider=provider, environment=home, **options), provider


def sent(provider: ScriptedProvider, request: int = 0) -> str:
    return next(
        message.content
        for message in reversed(provider.requests[request].messages)
        if isinstance(message, UserMessage)
    )


async def test_a_line_with_the_name_of_a_skill_submits_its_text(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look at $ARGUMENTS.")
    session, provider = make(tmp_path, "Done.")
    async with session:
        result = await session.submit("/audit the tests")

        assert result.text == "Done."
        assert sent(provider) == (
            '<skill name="audit">\nLook at the tests.\n</skill>\n\nExecute the "audit" skill: the tests'
        )
        shown = [message.content for message in session.messages]
        assert shown == ["/audit the tests", "Done."]
        entries = [entry for entry in session.full_history if entry.type == "skill-invocation"]
        assert [entry.data for entry in entries] == [
            {"skillName": "audit", "displayInput": "/audit the tests"}
        ]


async def test_executing_a_skill_gives_the_prompt_to_submit(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look.", "name: check\n")
    session, provider = make(tmp_path, "Done.")
    async with session:
        result = await session.execute_command("check", "now")

        assert result is not None
        assert result.effect == SubmitPrompt(
            '<skill name="audit">\nLook.\n\nARGUMENTS: now\n</skill>\n\nExecute the "audit" skill: now',
            display_input="/audit now",
            raw_input="/audit now",
        )
        assert provider.requests == []
        assert "audit" in [command.name for command in session.list_commands()]


async def test_inline_commands_run_under_the_rules_of_the_bash_tool(tmp_path: Path) -> None:
    asked: list[PermissionQuestion] = []

    async def approve(question: PermissionQuestion) -> bool:
        asked.append(question)
        return True

    write_skill(tmp_path, "Files: !`echo a.py`", "allowed-tools: Bash(echo *)\n")
    write_skill(tmp_path, "Files: !`echo b.py`", name="asking")
    session, provider = make(tmp_path, "Done.", "Done.", permission_handler=approve)
    async with session:
        await session.submit("/audit")
        assert asked == []
        await session.submit("/asking")

        assert "Files: a.py\n" in sent(provider)
        assert "Files: b.py\n" in sent(provider, 1)
        assert [question.tool_input["command"] for question in asked] == ["echo b.py"]
        data = [entry.data for entry in session.full_history if entry.type == "skill-invocation"]
        assert [each["commands"][0]["by"] for each in data if isinstance(each, dict)] == ["rule", "user"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 3", "`exit 3`: it ended with exit code 3"),
        ("touch denied", "`touch denied`: Permission denied"),
    ],
)
async def test_a_command_that_fails_or_may_not_run_stops_the_skill(
    tmp_path: Path, command: str, said: str
) -> None:
    write_skill(tmp_path, f"!`{command}`\nGo on.", "allowed-tools: Bash(exit *)\n")
    session, provider = make(tmp_path)
    async with session:
        result = await session.submit("/audit")

        assert said in str(result.error)
        assert provider.requests == []
        assert session.messages == []
        assert not (tmp_path / "denied").exists()


async def test_a_search_that_finds_nothing_is_no_failure(tmp_path: Path) -> None:
    write_skill(tmp_path, "Found: [\n!`grep nothing SKILLS`\n]", "allowed-tools: Bash\n")
    (tmp_path / "SKILLS").write_text("something\n")
    session, provider = make(tmp_path, "Done.")
    async with session:
        await session.submit("/audit")

        assert "Found: [\n\n]" in sent(provider)


async def test_a_deny_rule_binds_inline_commands_whatever_the_skill_allows(tmp_path: Path) -> None:
    write_skill(tmp_path, "!`echo x > out.txt`", "allowed-tools: Bash\n")
    session, _ = make(tmp_path, permission_mode="bypassPermissions")
    async with session:
        inner = await session.ready()
        inner.reload(rules=type(inner.rules.rules)(mode="bypassPermissions", deny=("Bash(echo *)",)))
        result = await session.submit("/audit")

        assert "denied" in str(result.error)
        assert not (tmp_path / "out.txt").exists()


async def test_what_a_skill_allows_counts_for_its_turn_only(tmp_path: Path) -> None:
    write_skill(tmp_path, "Write it.", "allowed-tools: Bash(touch *)\ndisallowed-tools: [Read]\n")
    touch, read = call("Bash", command="touch made"), call("Read", file_path=str(tmp_path / "made"))
    session, provider = make(tmp_path, touch, read, "Done.", call("Bash", command="touch later"), "Done.")
    async with session:
        await session.submit("/audit")
        await session.submit("And again?")

        results = [each.content for each in provider.requests[-1].messages if isinstance(each, ToolMessage)]
        assert (tmp_path / "made").exists()
        assert not (tmp_path / "later").exists()
        assert [("denied" in result) for result in results] == [False, True, True]
        assert (await session.ready()).rules.lent == ((), (), ())


async def test_a_prompt_that_is_never_submitted_lends_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path, "Write it.", "allowed-tools: Bash(touch *)\n")
    session, _ = make(tmp_path, call("Bash", command="touch made"), "Done.")
    async with session:
        await session.execute_command("audit")
        await session.submit("Something else.")

        assert not (tmp_path / "made").exists()


async def test_a_model_calls_a_skill_and_may_do_what_it_allows(tmp_path: Path) -> None:
    write_skill(tmp_path, "Touch $0: !`echo now`", "allowed-tools: Bash(touch *), Bash(echo *)\n")
    use, touch = call("Skill", skill="audit", args="made"), call("Bash", command="touch made")
    session, provider = make(tmp_path, use, touch, "Done.", call("Bash", command="touch later"), "Done.")
    async with session:
        await session.submit("Look for mistakes.")
        await session.submit("Again.")

        (result, *_) = (m.content for m in provider.requests[1].messages if isinstance(m, ToolMessage))
        assert result.startswith('<skill name="audit">\nTouch made: now\n</skill>')
        assert (tmp_path / "made").exists()
        assert not (tmp_path / "later").exists()


async def test_in_plan_mode_a_skill_allows_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path, "Touch it.", "allowed-tools: Bash(touch *)\n")
    use, touch = call("Skill", skill="audit"), call("Bash", command="touch made")
    session, _ = make(tmp_path, use, touch, "Done.", permission_mode="plan")
    async with session:
        await session.submit("Look for mistakes.")

        assert not (tmp_path / "made").exists()


async def test_a_model_is_told_why_it_does_not_get_a_skill(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look.", "disable-model-invocation: true\n", name="mine")
    write_skill(tmp_path, "!`touch made`", name="asking")
    uses = [call("Skill", skill=name) for name in ("mine", "mien", "asking")]
    session, provider = make(tmp_path, *uses, "Done.", permission_handler=yes)
    async with session:
        await session.submit("Look for mistakes.")

        results = [each.content for each in provider.requests[-1].messages if isinstance(each, ToolMessage)]
        assert "ask them to type /mine" in results[0]
        assert "did you mean 'mine'" in results[1]
        assert "stopped at its command `touch made`" in results[2]
        assert not (tmp_path / "made").exists()


async def test_an_untrusted_project_offers_its_skills_as_text_to_people_alone(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look.", "allowed-tools: Bash\n")
    write_skill(tmp_path, "!`touch made`", name="trap")
    answers = call("Skill", skill="audit"), call("Bash", command="touch made"), "Done.", "Looked."
    session, provider = make(tmp_path, *answers, trust_project=False)
    async with session:
        await session.submit("Look for mistakes.")
        results = [each.content for each in provider.requests[2].messages if isinstance(each, ToolMessage)]
        result = await session.submit("/trap")
        text = await session.submit("/audit")

        assert "for the user to call" in results[0]
        assert "not trusted" in str(result.error)
        assert text.text == "Looked."
        assert not (tmp_path / "made").exists()


async def test_the_system_prompt_lists_what_a_model_may_call(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look.", "when_to_use: Late.\n")
    write_skill(tmp_path, "Look.", "disable-model-invocation: yes\n", name="mine")
    write_skill(tmp_path, "Look.", "paths: '*.sql'\n", name="tables")
    session, provider = make(tmp_path, "Done.")
    untrusted, other = make(tmp_path, "Done.", trust_project=False)
    async with session, untrusted:
        await session.submit("Hi")
        await untrusted.submit("Hi")

        system = provider.requests[0].messages[0].content
        assert "- audit: Look for mistakes. Late." in system
        assert "- mine" not in system
        assert "- tables" not in system
        assert "- audit" not in other.requests[0].messages[0].content


async def test_effort_and_rounds_of_a_skill_count_for_its_turn(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look.", "effort: high\nmax-turns: 1\nmodel: other\n")
    session, provider = make(tmp_path, call("Read", file_path="x"), "Cut short.", "Done.")
    async with session:
        await session.submit("/audit")
        await session.submit("Go on.")

        first, last = provider.requests[0], provider.requests[-1]
        assert (first.settings.effort, first.model) == ("high", "other")
        assert (last.settings.effort, last.model) == (None, "m")


async def test_a_skill_that_forks_is_carried_out_by_a_subagent(tmp_path: Path) -> None:
    write_skill(
        tmp_path, "Look at $0.", "context: fork\nagent: general-purpose\nallowed-tools: Bash(touch *)\n"
    )
    answers = call("Bash", command="touch made"), "Found nothing.", "Thanks."
    session, provider = make(tmp_path, *answers)
    async with session:
        result = await session.submit("/audit this")
        await session.submit("And?")

        assert result.text == "Found nothing."
        assert "under 500 words" in provider.requests[0].messages[0].content
        assert sent(provider) == "Look at this."
        assert (tmp_path / "made").exists()
        shown = [message.content for message in session.messages]
        assert shown == ["/audit this", "Found nothing.", "And?", "Thanks."]
        kinds = [entry.type for entry in session.full_history]
        assert kinds.index("skill-invocation") < kinds.index("assistant")


async def test_a_model_gets_the_report_of_a_skill_that_forks(tmp_path: Path) -> None:
    write_skill(tmp_path, "Look.", "context: fork\nagent: Nobody\n", name="lost")
    write_skill(tmp_path, "Look.", "context: fork\n")
    answers = call("Skill", skill="lost"), call("Skill", skill="audit"), "Found nothing.", "Done."
    session, provider = make(tmp_path, *answers)
    async with session:
        await session.submit("Look for mistakes.")

        results = [each.content for each in provider.requests[-1].messages if isinstance(each, ToolMessage)]
        assert "Unknown agent type: Nobody" in results[0]
        assert results[1] == "Found nothing."


async def test_an_agent_has_the_skills_it_names_from_the_start(tmp_path: Path) -> None:
    write_skill(tmp_path, "Mind the commas: !`touch made`")
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    agents.joinpath("editor.md").write_text(
        "---\nname: editor\ndescription: Edits.\nskills: [audit, nowhere]\n---\nEdit."
    )
    use = call("Agent", prompt="Go.", subagent_type="editor")
    session, provider = make(tmp_path, use, "Edited.", "Done.", permission_handler=yes)
    async with session:
        await session.submit("Edit it.")

        assert "Mind the commas: !`touch made`" in provider.requests[1].messages[0].content
        assert not (tmp_path / "made").exists()


async def test_a_skill_that_is_changed_or_new_counts_as_it_is_now(tmp_path: Path) -> None:
    path = write_skill(tmp_path, "Look.")
    session, provider = make(tmp_path, "One.", "Two.", "Three.", call("Bash", command="touch made"), "Four.")
    async with session:
        await session.submit("/audit")
        write_skill(tmp_path, "Look again.", "allowed-tools: Bash(touch *)\n")
        write_skill(tmp_path, "Look away.", name="other")
        await session.submit("/other")
        assert "Look away." in sent(provider, 1)
        assert "- other: Look for mistakes." in provider.requests[1].messages[0].content
        await session.submit("Something else.")
        await session.submit("/audit")
        assert "Look again." in sent(provider, 3)
        assert (tmp_path / "made").exists()
        path.unlink()
        assert await session.execute_command("audit") is None


async def test_a_trusted_skill_that_begins_to_run_commands_is_asked_about_again(tmp_path: Path) -> None:
    path = write_skill(tmp_path, "Look.")
    session, _ = make(tmp_path, trust_project=None)
    async with session:
        await session.trust_project()
        path.write_text("---\ndescription: x\nallowed-tools: Bash\n---\n!`touch made`")
        result = await session.submit("/audit")

        assert "not trusted" in str(result.error)
        assert not (tmp_path / "made").exists()


async def test_words_of_a_skill_that_look_like_files_are_no_mistake(tmp_path: Path) -> None:
    write_skill(tmp_path, "Read @notes.txt, @missing.py and @param for a@b.c.")
    (tmp_path / "notes.txt").write_text("milk\n")
    session, provider = make(tmp_path, "Done.")
    async with session:
        result = await session.submit("/audit")

        assert result.error is None
        assert "@missing.py" in sent(provider)
        assert "milk" in sent(provider)
        assert session.messages[0].content == "/audit"


async def test_an_abort_stops_the_commands_of_a_skill(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def approve(question: PermissionQuestion) -> bool:
        asked.set()
        return True

    write_skill(tmp_path, "!`sleep 100`")
    session, provider = make(tmp_path, permission_handler=approve)
    async with session:
        running = asyncio.ensure_future(session.submit("/audit"))
        await asked.wait()
        session.abort()
        result = await running

        assert (result.interrupted, result.error, provider.requests) == (True, None, [])


async def test_a_skill_for_certain_files_is_offered_when_one_is_touched(tmp_path: Path) -> None:
    write_skill(tmp_path, "Mind the keys.", "paths: ['db/**/*.sql']\n", name="tables")
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "a.sql").write_text("select 1\n")
    (tmp_path / "b.sql").write_text("select 2\n")
    reads = [call("Read", file_path=name) for name in ("b.sql", "db/a.sql", "db/a.sql")]
    session, provider = make(tmp_path, *reads, "Done.")
    async with session:
        await session.submit("Look.")

        told = ["- tables: Look for mistakes." in str(request.messages) for request in provider.requests]
        assert told == [False, False, True, True]
        assert str(provider.requests[-1].messages).count("- tables:") == 1


async def test_hooks_of_a_skill_live_on_after_it(tmp_path: Path) -> None:
    hooks = (
        "hooks: {PreToolUse: [{matcher: Bash, hooks: [{type: command, command: 'echo no >&2; exit 2'}]}]}\n"
    )
    write_skill(tmp_path, "Look.", hooks)
    touch = call("Bash", command="touch made")
    session, provider = make(tmp_path, "Looked.", touch, "Done.", permission_mode="bypassPermissions")
    async with session:
        await session.submit("/audit")
        await session.submit("Touch it.")

        results = [each.content for each in provider.requests[-1].messages if isinstance(each, ToolMessage)]
        assert "Blocked by hook: no" in results[-1]


async def test_hooks_hear_inline_commands_and_what_was_typed(tmp_path: Path) -> None:
    write_skill(tmp_path, "!`touch made`", "allowed-tools: Bash\n")
    session, provider = make(tmp_path, "Done.")
    async with session:
        inner = await session.ready()
        block = {"type": "command", "command": "echo not today >&2; exit 2"}
        inner.reload(hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [block]}]})
        result = await session.submit("/audit")

        assert "not today" in str(result.error)
        assert not (tmp_path / "made").exists()
        told = tmp_path / "told"
        write = {"type": "command", "command": f"cat > {told}"}
        inner.reload(hooks={"UserPromptSubmit": [{"hooks": [write]}]})
        await session.submit("/audit now")
        assert '"/audit now"' in told.read_text()
        assert len(provider.requests) == 1


async def test_skills_in_use_survive_a_compaction(tmp_path: Path) -> None:
    write_skill(tmp_path, "Always mind the commas.\n" + "x" * 30_000)
    write_skill(tmp_path, "Mind the dots.", name="dots")
    use = call("Skill", skill="dots")
    session, provider = make(tmp_path, "Looked.", use, "Dotted.", "A summary.", "Done.")
    async with session:
        await session.submit("/audit")
        await session.submit("And the dots.")
        inner = await session.ready()
        await inner.compact()
        await session.submit("Go on.")

        context = "\n".join(message.content for message in provider.requests[-1].messages)
        assert context.index("Mind the dots.") < context.index("Always mind the commas.")
        assert context.count("x" * 100) < 220
        assert "- Always mind the commas." not in context


async def test_a_session_with_skills_replays(tmp_path: Path) -> None:
    write_skill(tmp_path, "Files: !`echo a.py`\n$ARGUMENTS")
    write_skill(tmp_path, "More: !`echo b.py`", "allowed-tools: Bash(echo *)\n", name="more")
    store = SessionStore(tmp_path / "store")
    use = call("Skill", skill="more")
    session, _ = make(tmp_path, "Done.", use, "More.", session_store=store, permission_handler=yes)
    async with session:
        inner = await session.ready()
        inner.reload(hooks={"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]})
        await session.submit("/audit now")
        await session.submit("More?")

    replayed = await replay_session(store.journal_path(session.session_id))
    assert replayed.identical, replayed
