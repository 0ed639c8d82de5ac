"""`/plugin` in a session: the same as the command, with the question put to whoever is attached."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.sdk.bundle.workbench import marketplace, skill, whole_plugin, write_files

from robota.core.events import Noticed
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, Question
from robota.sdk.interactive import InteractiveSession
from robota.sdk.places import Places
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


class Person:
    """Answers what is asked, and remembers it."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, question: Question) -> ChoiceAnswer:
        assert isinstance(question, ChoiceQuestion)
        self.asked.append(question.question)
        return ChoiceAnswer(chosen=(self.answer,))


@pytest.fixture
def market(tmp_path: Path) -> Path:
    root = marketplace(tmp_path / "market", "market", {"helper": {"category": "fun"}})
    write_files(root / "plugins" / "helper", whole_plugin())
    return root


async def say(session: InteractiveSession, line: str) -> str:
    name, _, args = line.partition(" ")
    answer = await session.execute_command(name, args)
    assert answer is not None
    return answer.message


async def test_a_plugin_is_installed_after_a_yes_and_works_at_once(places: Places, market: Path) -> None:
    person = Person("Yes")
    async with InteractiveSession(
        cwd=places.cwd, provider=ScriptedProvider("1"), ask_handler=person
    ) as session:
        assert "offers 1 plugins" in await say(session, f"plugin marketplace add {market}")
        assert "helper@market" in await say(session, "plugin search helper")

        told = await say(session, "plugin install helper")

        assert "helper@market 1.0.0 is installed for you." in told
        assert "Hooks that run by themselves" in person.asked[0]
        assert session.commands.find("helper:audit") is not None
        assert "plugin__helper__count" in session.session.agent.toolset.tools
        assert "enabled" in await say(session, "plugin list")
        assert "Reloaded: 1 plugin, 2 skills, 1 agent, 1 hook, 0 servers, 1 tool." in await say(
            session, "reload-plugins"
        )

        assert "is disabled" in await say(session, "plugin disable helper")
        assert session.commands.find("helper:audit") is None
        assert "is enabled" in await say(session, "plugin enable helper")
        assert session.commands.find("helper:audit") is not None
        assert "is up to date" in await say(session, "plugin update")
        assert "Tools that run commands" in await say(session, "plugin show helper")
        assert "is uninstalled" in await say(session, "plugin uninstall helper")
        assert session.commands.find("helper:audit") is None
        assert "market" in await say(session, "plugin marketplace")
        assert "is removed" in await say(session, "plugin marketplace remove market")


async def test_after_a_no_or_with_nobody_to_ask_nothing_is_installed(places: Places, market: Path) -> None:
    for person, said in ((Person("No"), "Nothing was changed."), (None, "Nobody could be asked")):
        provider = ScriptedProvider()
        async with InteractiveSession(cwd=places.cwd, provider=provider, ask_handler=person) as session:
            await say(session, f"plugin marketplace add {market}")
            assert said in await say(session, "plugin install helper")
            assert "No plugins are installed" in await say(session, "plugin list")
            assert not list(Path(places.user("plugins")).glob(".staging-*"))


async def test_a_mistake_is_answered_in_a_sentence(places: Places) -> None:
    async with InteractiveSession(cwd=places.cwd, provider=ScriptedProvider()) as session:
        assert "knows no 'instal'" in await say(session, "plugin instal x")
        assert "No marketplace has a plugin" in await say(session, "plugin install nothing")
        assert "There is no plugin 'nothing' installed" in await say(session, "plugin disable nothing")
        assert "Usage: /plugin install" in await say(session, "plugin install x --scope planet")


def make_repository(root: Path) -> None:
    who = ("-c", "user.name=Tester", "-c", "user.email=tester@example.com")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "-m", "first")):
        subprocess.run(["git", *words], cwd=root, check=True)


async def test_what_is_fetched_and_what_a_plugin_needs_is_told_before_the_question(
    places: Places, tmp_path: Path
) -> None:
    root = marketplace(tmp_path / "served", "served", {"app": {}, "base": {}})
    write_files(
        root / "plugins" / "app", {".claude-plugin/plugin.json": {"name": "app", "dependencies": ["base"]}}
    )
    write_files(root / "plugins" / "base", {"skills/base/SKILL.md": skill("base")})
    make_repository(root)
    person = Person("Yes")
    provider = ScriptedProvider("1")
    async with InteractiveSession(cwd=places.cwd, provider=provider, ask_handler=person) as session:
        await session.submit("Hello.")
        told: list[str] = []
        session.events.on(Noticed, lambda event: told.append(event.message))
        await say(session, f"plugin marketplace add file://{root}")
        assert [each.startswith("Fetching file://") for each in told] == [True]
        done = await say(session, "plugin install app")
        assert session.commands.find("base:base") is not None
    assert "Install app@served with base@served, which it needs?" in person.asked[0]
    assert "base@served" in done
