"""Settings of files take effect in a session that nobody told about them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.sdk.settings.conftest import House

from robota.core.errors import ConfigurationError
from robota.core.messages import ToolMessage
from robota.core.questions import PermissionQuestion
from robota.sdk.commands.effects import SubmitPrompt
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


def open_session(
    house: House, *replies: Any, trust: bool | None = True, **options: Any
) -> InteractiveSession:
    provider = options.pop("provider", None) or ScriptedProvider(*replies)
    return InteractiveSession(
        cwd=house.cwd, provider=provider, environment=house.environment, trust_project=trust, **options
    )


def results(session: InteractiveSession) -> list[str]:
    return [str(message.content) for message in session.session.messages if isinstance(message, ToolMessage)]


async def test_rules_of_every_layer_bind_a_session(house: House) -> None:
    house.write(
        claude={"permissions": {"allow": ["Bash(echo *)"], "deny": ["Read(/secret.txt)"]}},
        claude_user={"permissions": {"deny": ["Bash(echo bye:*)"]}},
    )
    (house.cwd / "secret.txt").write_text("4711")
    calls = [
        [call("Read", file_path="secret.txt")],
        [call("Bash", command="echo hi")],
        [call("Bash", command="echo bye")],
    ]

    async with open_session(house, *calls, "done") as session:
        await session.submit("go")

        read, hi, bye = results(session)
        assert "denied" in read.lower()
        assert "4711" not in read
        assert "hi" in hi
        assert "denied" in bye.lower()


async def test_an_untrusted_project_cannot_allow_but_can_forbid(house: House) -> None:
    house.write(
        project={"permissions": {"allow": ["Bash(echo *)"], "deny": ["Read(a.txt)"]}, "env": {"X": "1"}}
    )
    (house.cwd / "a.txt").write_text("4711")
    asked: list[PermissionQuestion] = []

    async def refuse(question: PermissionQuestion) -> bool:
        asked.append(question)
        return False

    calls = [[call("Bash", command="echo hi")], [call("Read", file_path="a.txt")]]
    async with open_session(house, *calls, "done", trust=None, permission_handler=refuse) as session:
        await session.submit("go")

        assert [question.tool_name for question in asked] == ["Bash"]
        assert "4711" not in " ".join(results(session))
        assert "not trusted" in " ".join(map(str, session.problems))


async def test_hooks_and_variables_of_files_reach_hooks_and_commands(house: House) -> None:
    hook = (
        "import json,os,sys; data=json.load(sys.stdin); "
        "print(json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', 'updatedInput': "
        "{'command': 'echo ' + os.environ['WORD'] + ' $WORD'}}}))"
    )
    entry = {
        "matcher": "Bash",
        "hooks": [{"type": "command", "command": sys.executable, "args": ["-c", hook]}],
    }
    house.write(
        claude={"hooks": {"PreToolUse": [entry]}, "env": {"WORD": "from-settings"}},
        user={"permissions": {"allow": ["Bash(echo:*)"]}},
    )

    async with open_session(house, [call("Bash", command="echo x")], "done") as session:
        await session.submit("go")

        assert results(session)[0].startswith("from-settings from-settings")


async def test_the_language_the_mode_the_threshold_and_the_budget_are_those_of_the_settings(
    house: House,
) -> None:
    house.write(
        user={
            "language": "Korean",
            "permissions": {"defaultMode": "plan"},
            "autoCompactThreshold": 0.5,
            "budget": {"maxRequests": 1},
        }
    )
    provider = ScriptedProvider("one", "two")

    async with open_session(house, provider=provider) as session:
        await session.submit("go")
        refused = await session.submit("again")

        assert "Korean" in str(provider.requests[0].messages[0].content)
        assert session.permission_mode == "plan"
        assert session.session.auto_compact_threshold == 0.5
        assert refused.error is not None
        assert len(provider.requests) == 1


async def test_arguments_outrank_settings_and_flags_outrank_files(house: House) -> None:
    house.write(user={"model": "file", "permissions": {"defaultMode": "plan"}, "language": "file"})

    async with open_session(house, "x", model="argument", permission_mode="acceptEdits") as session:
        await session.submit("go")
        assert (session.session.model, session.permission_mode) == ("argument", "acceptEdits")

    async with open_session(house, "x", settings={"model": "flag"}) as session:
        await session.submit("go")
        assert session.session.model == "flag"

    async with open_session(house, "x", setting_sources=()) as session:
        await session.submit("go")
        assert (session.session.model, session.permission_mode) == ("", "default")


async def test_a_model_of_another_programs_file_is_named_and_not_asked_for(house: House) -> None:
    house.write(claude_user={"model": "opus"})
    provider = ScriptedProvider("x")

    async with open_session(house, provider=provider) as session:
        await session.submit("go")

        assert "opus" not in session.session.model
        assert "does not have the model opus" in " ".join(map(str, session.problems))


async def test_problems_are_told_once_and_the_session_works(house: House) -> None:
    house.write(
        user={"lanugage": "de", "permissions": {"deny": ["Raed(.env)"]}},
        claude={"hooks": {"PreToolUze": []}},
    )
    notices: list[str] = []

    session = open_session(house, "fine")
    session.events.subscribe(lambda event: notices.append(str(getattr(event, "message", ""))))
    async with session:
        result = await session.submit("go")

        assert result.text == "fine"
        told = " ".join(map(str, session.problems))
        for word in ("did you mean 'language'", "did you mean 'Read'", "no event 'PreToolUze'"):
            assert word in told
            assert word in " ".join(notices)


async def test_a_file_that_does_not_parse_keeps_the_session_from_starting(house: House) -> None:
    house.write(project='{"permissions": {"deny": [')

    async with open_session(house, "never") as session:
        with pytest.raises(ConfigurationError, match=r"settings\.json: the text ends too early \(line 1\)"):
            await session.ready()


async def test_a_disabled_mode_is_refused_by_name(house: House) -> None:
    house.write(claude_user={"permissions": {"disableBypassPermissionsMode": "disable"}})

    async with open_session(house, "x", permission_mode="bypassPermissions") as session:
        with pytest.raises(ConfigurationError, match="bypassPermissions is disabled by"):
            await session.ready()


async def test_secrets_of_the_settings_are_written_nowhere(house: House) -> None:
    from robota.sessions.store.session_store import SessionStore

    house.environment["MY_WORD"] = "hunter2-4711-abcdef"
    house.write(user={"env": {"WORD": "$ENV:MY_WORD"}, "permissions": {"allow": ["Bash(echo:*)"]}})
    store = SessionStore(house.root / "sessions")

    async with open_session(
        house, [call("Bash", command="echo $WORD")], "done", session_store=store
    ) as session:
        await session.submit("go")
        assert "hunter2-4711-abcdef" in results(session)[0]

    written = "".join(path.read_text() for path in (house.root / "sessions").rglob("*") if path.is_file())
    assert written
    assert "hunter2" not in written


async def test_the_sandbox_is_that_of_the_settings(house: House) -> None:
    house.write(user={"sandbox": {"enabled": True, "filesystem": {"denyRead": ["hidden"]}}})
    async with open_session(house, "x") as session:
        await session.ready()
        assert session.kit.bash.sandbox is not None
        assert session.kit.bash.sandbox.mode == "auto"
        assert session.project.settings.sandbox.deny_read == (str(house.cwd / "hidden"),)

    house.write(user={"sandbox": "off"})
    async with open_session(house, "x") as session:
        await session.ready()
        assert session.kit.bash.sandbox is None


async def test_what_files_say_now_counts_from_the_next_call_on(house: House) -> None:
    (house.cwd / "a.txt").write_text("4711")
    read = [call("Read", file_path="a.txt")]
    show = [call("Bash", command="echo $WORD")]
    house.write(user={"permissions": {"allow": ["Bash(echo:*)"]}})
    async with open_session(house, read, "one", read, show, "two") as session:
        await session.submit("go")
        assert "4711" in results(session)[0]

        house.write(project={"permissions": {"deny": ["Read(a.txt)"]}, "env": {"WORD": "new"}})
        house.write(user={"permissions": {"allow": ["Bash(echo:*)"]}, "sandbox": "off"})
        await session.submit("again")

        assert "4711" not in results(session)[1]
        assert results(session)[2].startswith("new")
        assert session.kit.bash.sandbox is None


@pytest.mark.parametrize(
    ("attribution", "said"),
    [
        ("Made by a robot", "End each message with these lines:\nMade by a robot"),
        ("", "Do not say who wrote it."),
    ],
)
async def test_commits_say_of_their_author_what_the_settings_say(
    house: House, attribution: str, said: str
) -> None:
    house.write(user={"attribution": {"commit": attribution}})

    async with open_session(house) as session:
        result = await session.execute_command("commit")

        assert result is not None
        assert isinstance(result.effect, SubmitPrompt)
        assert said in result.effect.input
