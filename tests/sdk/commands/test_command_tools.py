from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import ToolMessage
from robota.sdk.commands.command_tools import command_tools, tool_name
from robota.sdk.commands.effects import CommandResult, Renamed
from robota.sdk.commands.registry import Command
from robota.sdk.interactive import InteractiveSession
from robota.sessions.options import PermissionOptions, SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
SKILLS = Command(name="skills", description="List skills", argument_hint="[name]")


async def answer(name: str, args: str) -> CommandResult | None:
    if name == "gone":
        return None
    return CommandResult(f"{name} heard {args!r}", success=args != "fail", effect=Renamed("n"))


async def called(rules: PermissionRules, name: str, **arguments: str) -> str:
    tools = command_tools([SKILLS, Command(name="gone", description="d")], answer)
    session = Session(
        provider=ScriptedProvider([call(name, **arguments)], "done"),
        tools=tools,
        options=SessionOptions(permissions=PermissionOptions(rules=rules)),
    )
    async with session:
        await session.run("go")
        [message] = [each for each in session.messages if isinstance(each, ToolMessage)]
        return message.content


async def test_a_model_gets_the_answer_of_a_command_as_json() -> None:
    content = await called(PermissionRules(mode="bypassPermissions"), "robota_command_skills", args="x")

    assert json.loads(content) == {
        "success": True,
        "command": "skills",
        "message": "skills heard 'x'",
        "data": {"name": "n"},
    }


async def test_a_command_that_fails_says_so_in_its_answer() -> None:
    content = await called(PermissionRules(mode="bypassPermissions"), "robota_command_skills", args="fail")

    assert json.loads(content)["success"] is False


async def test_the_words_may_be_left_out() -> None:
    content = await called(PermissionRules(mode="bypassPermissions"), "robota_command_skills")

    assert json.loads(content)["message"] == "skills heard ''"


async def test_a_command_that_is_gone_is_an_error() -> None:
    content = await called(PermissionRules(mode="bypassPermissions"), "robota_command_gone")

    assert content == "Error: There is no command 'gone' any more."


async def test_rules_bind_commands_by_the_names_of_their_tools() -> None:
    deny = PermissionRules(mode="bypassPermissions", deny=("robota_command_skills",))
    allow = PermissionRules(allow=("robota_command_skills",))

    assert "heard" not in await called(deny, "robota_command_skills")
    assert "heard" in await called(allow, "robota_command_skills")


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_without_a_rule_a_command_is_not_run_unasked(mode: str) -> None:
    content = await called(PermissionRules(mode=mode), "robota_command_skills")  # type: ignore[arg-type]

    assert "heard" not in content


def test_names_of_tools_are_what_services_accept() -> None:
    pattern = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
    long = "a" * 100

    assert tool_name("skills") == "robota_command_skills"
    assert tool_name("plugin:audit") == "robota_command_plugin_audit"
    assert pattern.match(tool_name(long))
    assert re.fullmatch(r"robota_command_a{40}_[0-9a-f]{8}", tool_name(long))
    assert tool_name(long) != tool_name(long + "b")


def test_two_commands_that_would_be_the_same_tool_are_refused() -> None:
    commands = [Command(name="a:b", description="d"), Command(name="a_b", description="d")]

    with pytest.raises(ConfigurationError, match="'a:b' and 'a_b' would both be the tool robota_command_a_b"):
        command_tools(commands, answer)


async def test_a_session_offers_the_commands_that_a_model_may_call(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("robota_command_usage")], "done")
    async with InteractiveSession(
        cwd=tmp_path,
        provider=provider,
        permission_mode="bypassPermissions",
        environment={"HOME": str(tmp_path)},
    ) as session:
        await session.submit("What did this cost?")

        [told] = [each for each in provider.requests[1].messages if isinstance(each, ToolMessage)]
        assert json.loads(told.content)["message"].startswith("Session: 1 request, ")
        offered = {tool.name for tool in provider.requests[0].tools}
        assert {name for name in offered if name.startswith("robota_command_")} == {
            tool_name(each.name) for each in session.commands.for_models()
        }
