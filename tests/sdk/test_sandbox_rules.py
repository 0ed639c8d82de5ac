from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.messages import ToolMessage
from robota.core.permissions import PermissionMode
from robota.sdk.assembly import PermissionRules, create_session
from robota.sdk.sandbox import allows_network, make_sandbox
from robota.sessions.permissions.live_rules import LiveRules
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.bash import BashTool
from robota.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("allow", "deny", "ask", "asked_about", "unasked"),
    [
        ((), (), (), True, False),
        (("WebFetch",), (), (), True, True),
        (("WebFetch(domain:*)",), (), (), True, True),
        (("WebFetch(domain:example.com)",), (), (), True, False),
        (("WebFetch",), ("WebFetch(domain:example.com)",), (), False, False),
        ((), ("WebFetch",), (), False, False),
        (("WebFetch",), (), ("WebFetch",), False, False),
        ((), ("Read(.env)", "WebSearch"), (), True, False),
    ],
)
def test_the_network_is_what_the_rules_say_of_the_web(
    allow: tuple[str, ...], deny: tuple[str, ...], ask: tuple[str, ...], asked_about: bool, unasked: bool
) -> None:
    rules = LiveRules(PermissionRules(allow=allow, deny=deny, ask=ask))
    assert allows_network(rules, unasked=False) == asked_about
    assert allows_network(rules, unasked=True) == unasked


def test_the_sandbox_follows_the_rules_as_they_change() -> None:
    rules = LiveRules(PermissionRules())
    sandbox = make_sandbox("auto", rules)
    assert isinstance(sandbox, Sandbox)
    assert sandbox.network == "on"
    rules.replace(PermissionRules(deny=("WebFetch",)))
    assert sandbox.network == "off"


def bash_of(session: object) -> BashTool:
    [tool] = [tool for tool in session.agent.tools if tool.name == "Bash"]  # type: ignore[attr-defined]
    assert isinstance(tool, BashTool)
    return tool


def test_a_session_has_a_sandbox_unless_it_is_switched_off(tmp_path: Path) -> None:
    def made(**options: object) -> BashTool:
        return bash_of(create_session(ScriptedProvider("done"), model="m", cwd=str(tmp_path), **options))  # type: ignore[arg-type]

    default = made()
    assert default.sandbox is not None
    assert (default.sandbox.mode, default.auto_allow_bash_if_sandboxed) == ("auto", False)
    assert "dangerouslyDisableSandbox" in default.parameters["properties"]
    required = made(sandbox="required", auto_allow_bash_if_sandboxed=True)
    assert required.sandbox is not None
    assert (required.sandbox.mode, required.auto_allow_bash_if_sandboxed) == ("required", True)
    assert "dangerouslyDisableSandbox" not in required.parameters["properties"]
    off = made(sandbox="off")
    assert off.sandbox is None
    assert "dangerouslyDisableSandbox" not in off.parameters["properties"]


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_command_of_a_session_says_where_it_ran(tmp_path: Path, mode: PermissionMode) -> None:
    rules = PermissionRules(mode=mode, allow=("Bash(echo *)",))
    provider = ScriptedProvider([call("Bash", command="echo ran")], "done")
    session = create_session(provider, model="m", cwd=str(tmp_path), rules=rules)
    sandbox = bash_of(session).sandbox
    assert sandbox is not None
    await session.run("go")
    [message] = [message for message in session.messages if isinstance(message, ToolMessage)]
    backend, _ = await sandbox.find_backend()
    assert message.content == "ran"
    assert message.metadata["sandbox"] == (backend or "off")
