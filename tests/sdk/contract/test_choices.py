"""Which provider answers, which web search it has, and what instructions may bring in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.sdk.contract.heard import write

from robota import InteractiveSession, choose_provider
from robota.core import Capabilities, NativeWebTool
from robota.sdk import KeyStore
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio
KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "ROBOTA_PROVIDER",
    "ROBOTA_MODEL",
)


async def test_a_program_finds_the_key_that_its_user_keeps(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)  # a system without one
    KeyStore(str(home / ".robota")).set("anthropic", "sk-ant-kept-0123456789")
    chosen = await choose_provider(provider="anthropic", model="claude-sonnet-4-6")
    try:
        assert "sk-ant-kept-0123456789" in chosen.secrets
    finally:
        await chosen.provider.aclose()


@pytest.mark.parametrize("hosted", [True, False])
async def test_one_web_search_is_offered_that_of_the_service_if_it_has_one(
    project: Path, hosted: bool
) -> None:
    can = Capabilities(web_search=NativeWebTool(supported=hosted, enabled=hosted))
    provider = ScriptedProvider("Fine.", capabilities=can)
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Go")
    (request,) = provider.requests
    assert ("WebSearch" in {tool.name for tool in request.tools}) != hosted
    assert bool(request.native_web_tools and request.native_web_tools.web_search) == hosted
    assert "WebFetch" in {tool.name for tool in request.tools}


async def test_a_rule_about_searches_brings_our_own_back(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"permissions": {"ask": ["WebSearch"]}})
    can = Capabilities(web_search=NativeWebTool(supported=True, enabled=True))
    provider = ScriptedProvider("Fine.", capabilities=can)
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Go")
    (request,) = provider.requests
    assert "WebSearch" in {tool.name for tool in request.tools}
    assert not (request.native_web_tools and request.native_web_tools.web_search)


async def test_imports_from_outside_wait_for_a_yes(project: Path) -> None:
    outside = write(project.parent / "elsewhere/rules.md", "Always whisper.")
    write(project / "AGENTS.md", f"See @{outside}\n")
    provider = ScriptedProvider("One.", "Two.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Go")
        assert "Always whisper." not in str(provider.requests[0].messages[0].content)
        assert any(str(outside) in line for line in session.describe_outside_imports())
        shown = await session.execute_command("trust", "")
        assert shown is not None
        assert str(outside) in shown.message
        assert "/trust imports" in shown.message
        answer = await session.execute_command("trust", "imports")
        assert answer is not None
        assert answer.success
        assert session.describe_outside_imports() == []
        await session.submit("Again")
        assert "Always whisper." in str(provider.requests[1].messages[0].content)
    later = ScriptedProvider("Three.")
    async with InteractiveSession(cwd=project, provider=later) as session:
        await session.submit("Go")
    assert "Always whisper." in str(later.requests[0].messages[0].content)
