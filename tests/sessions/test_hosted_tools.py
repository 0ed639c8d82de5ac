from __future__ import annotations

import pytest
from tests.sessions.live_session import Studio

from robota.core.events import PreRun
from robota.core.provider import Capabilities, NativeWebTool, NativeWebTools
from robota.sessions.permissions.live_rules import PermissionRules, permit_web_tools
from robota.testing import ScriptedProvider

BOTH = NativeWebTools(web_search=True, web_fetch=True)
SEARCH = NativeWebTools(web_search=True)
FETCH = NativeWebTools(web_fetch=True)


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (PermissionRules(), BOTH),
        (PermissionRules(mode="plan"), BOTH),
        (PermissionRules(deny=("Bash", "Read(.env)")), BOTH),
        (PermissionRules(deny=("WebSearch",)), FETCH),
        (PermissionRules(deny=("WebFetch",)), SEARCH),
        (PermissionRules(deny=("WebFetch(domain:example.org)",)), SEARCH),
        (PermissionRules(ask=("WebFetch",)), SEARCH),
        (PermissionRules(deny=("Web*",)), None),
        (PermissionRules(deny=("*",)), None),
        (PermissionRules(deny=("WebSearch",), allow=("WebSearch",)), FETCH),
    ],
)
def test_a_hosted_tool_that_a_rule_restricts_is_not_asked_for(rules, left) -> None:
    assert permit_web_tools(BOTH, rules) == left


def test_what_is_not_wanted_stays_away() -> None:
    assert permit_web_tools(SEARCH, PermissionRules()) == SEARCH
    assert permit_web_tools(NativeWebTools(), PermissionRules()) is None


@pytest.mark.anyio
async def test_rules_are_looked_at_before_every_run(tmp_path) -> None:
    able = NativeWebTool(supported=True, enabled=True)
    provider = ScriptedProvider("One.", "Two.", "Three.", capabilities=Capabilities(web_search=able))
    studio = Studio(tmp_path, provider=provider, native_web_tools=SEARCH)
    described = studio.listen(PreRun)
    session = studio.session
    await session.run("First?")
    session.rules.rules = PermissionRules(deny=("WebSearch",))
    await session.run("Second?")
    session.rules.rules = PermissionRules()
    await session.run("Third?")
    assert [request.native_web_tools for request in provider.requests] == [SEARCH, None, SEARCH]
    assert [event.data["webTools"]["webSearch"]["enabled"] for event in described] == [True, False, True]
    await session.shutdown()
