from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.messages import ToolMessage
from robota.core.permissions import PermissionMode
from robota.sdk.interactive import InteractiveSession
from robota.sdk.sandbox import allows_network, make_sandbox
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.sessions.session import Session
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


def bash_of(session: Session) -> BashTool:
    [tool] = [tool for tool in session.agent.tools if tool.name == "Bash"]
    assert isinstance(tool, BashTool)
    return tool


async def test_a_session_has_a_sandbox_unless_it_is_switched_off(tmp_path: Path) -> None:
    async def made(**sandbox: object) -> BashTool:
        session = InteractiveSession(
            cwd=tmp_path,
            provider=ScriptedProvider("done"),
            environment={"HOME": str(tmp_path)},
            settings={"sandbox": sandbox} if sandbox else {},
        )
        return bash_of(await session.ready())

    default = await made()
    assert default.sandbox is not None
    assert (default.sandbox.mode, default.auto_allow_bash_if_sandboxed) == ("auto", False)
    assert "dangerouslyDisableSandbox" in default.parameters["properties"]
    required = await made(failIfUnavailable=True, autoAllowBashIfSandboxed=True)
    assert required.sandbox is not None
    assert (required.sandbox.mode, required.auto_allow_bash_if_sandboxed) == ("required", True)
    assert "dangerouslyDisableSandbox" not in required.parameters["properties"]
    off = await made(enabled=False)
    assert off.sandbox is None
    assert "dangerouslyDisableSandbox" not in off.parameters["properties"]


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_command_of_a_session_says_where_it_ran(tmp_path: Path, mode: PermissionMode) -> None:
    provider = ScriptedProvider([call("Bash", command="echo ran")], "done")
    session = InteractiveSession(
        cwd=tmp_path,
        provider=provider,
        environment={"HOME": str(tmp_path)},
        permission_mode=mode,
        settings={"permissions": {"allow": ["Bash(echo *)"]}},
    )
    inner = await session.ready()
    sandbox = bash_of(inner).sandbox
    assert sandbox is not None
    await session.submit("go")
    [message] = [message for message in inner.messages if isinstance(message, ToolMessage)]
    backend, _ = await sandbox.find_backend()
    assert message.content == "ran"
    assert message.metadata["sandbox"] == (backend or "off")
    await session.shutdown()
