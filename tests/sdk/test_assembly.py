from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.messages import ToolMessage
from robota.core.questions import PermissionQuestion
from robota.sdk.interactive import InteractiveSession
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


class Person:
    """Answers every question the same way, and remembers them."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[PermissionQuestion] = []

    async def __call__(self, request: PermissionQuestion) -> bool:
        self.asked.append(request)
        return self.answer


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere"
    path.mkdir()
    path.joinpath("secret.txt").write_text("the secret\n")
    path.joinpath("other.txt").write_text("another\n")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    path.joinpath("notes.txt").write_text("milk\n")
    return path


async def results(
    project: Path, *calls: object, rules: PermissionRules | None = None, person: Person | None = None
) -> list[str]:
    provider = ScriptedProvider(*[[one] for one in calls], "done")  # type: ignore[list-item]
    given = PermissionRules() if rules is None else rules
    session = InteractiveSession(
        cwd=project,
        provider=provider,
        permission_mode=given.mode,
        permission_handler=person,
        environment={"HOME": str(project.parent)},
        settings={"permissions": {"allow": [*given.allow], "deny": [*given.deny], "ask": [*given.ask]}},
    )
    async with session:
        await session.submit("go")
        messages = session.session.messages
    return [message.content for message in messages if isinstance(message, ToolMessage)]


async def test_files_of_the_project_are_read_without_a_question(project: Path) -> None:
    person = Person(False)

    [content] = await results(project, call("Read", file_path="notes.txt"), person=person)

    assert "milk" in content
    assert person.asked == []


async def test_reading_elsewhere_asks_once_per_directory(project: Path, elsewhere: Path) -> None:
    person = Person(True)

    contents = await results(
        project,
        call("Read", "a", file_path=str(elsewhere / "secret.txt")),
        call("Read", "b", file_path=str(elsewhere / "other.txt")),
        person=person,
    )

    assert ["the secret" in contents[0], "another" in contents[1]] == [True, True]
    assert len(person.asked) == 1
    assert "outside the working directory" in person.asked[0].reason


@pytest.mark.parametrize("tool", ["Glob", "Grep"])
async def test_a_pattern_that_leads_elsewhere_is_asked_about(
    tool: str, project: Path, elsewhere: Path
) -> None:
    person = Person(False)
    arguments = (
        {"pattern": f"{elsewhere}/*.txt"} if tool == "Glob" else {"pattern": "s", "glob": "../elsewhere"}
    )

    await results(project, call(tool, **arguments), person=person)

    [asked] = person.asked
    directory, _, reason = asked.reason.partition(" ")
    assert (Path(directory).resolve(), reason) == (elsewhere, "is outside the working directory.")


async def test_reading_elsewhere_is_refused_when_nobody_can_be_asked(project: Path, elsewhere: Path) -> None:
    link = project / "innocent.txt"
    link.symlink_to(elsewhere / "secret.txt")

    direct, linked = await results(
        project,
        call("Read", "a", file_path=str(elsewhere / "secret.txt")),
        call("Read", "b", file_path="innocent.txt"),
    )

    assert "Permission denied" in direct
    assert "Permission denied" in linked
    assert "the secret" not in direct + linked


async def test_writing_elsewhere_asks_every_time_also_when_edits_are_accepted(
    project: Path, elsewhere: Path
) -> None:
    person = Person(True)

    await results(
        project,
        call("Write", "a", file_path=str(elsewhere / "one"), content="1"),
        call("Write", "b", file_path=str(elsewhere / "two"), content="2"),
        call("Write", "c", file_path="three", content="3"),
        rules=PermissionRules(mode="acceptEdits"),
        person=person,
    )

    assert len(person.asked) == 2
    assert (project / "three").read_text() == "3"


async def test_a_file_that_may_not_be_read_is_not_found_by_a_search(project: Path) -> None:
    project.joinpath(".env").write_text("TOKEN=milk\n")

    found, listed = await results(
        project,
        call("Grep", "a", pattern="milk"),
        call("Glob", "b", pattern="**/*"),
        rules=PermissionRules(deny=("Read(.env)",)),
    )

    assert "notes.txt" in found
    assert "notes.txt" in listed
    assert ".env" not in found + listed


async def test_the_user_may_refuse_a_command(project: Path) -> None:
    person = Person(False)

    [content] = await results(project, call("Bash", command="touch made"), person=person)

    assert "Permission denied" in content
    assert not (project / "made").exists()
    assert person.asked[0].tool_input == {"command": "touch made"}


async def test_a_rule_of_the_users_own_goes_before_the_question_about_elsewhere(
    project: Path, elsewhere: Path
) -> None:
    rules = PermissionRules(allow=(f"Read({elsewhere}/**)",))

    [content] = await results(project, call("Read", file_path=str(elsewhere / "secret.txt")), rules=rules)

    assert "the secret" in content


async def test_commands_and_hooks_have_the_credentials_that_were_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "MYSQL_PWD"):
        monkeypatch.setenv(name, f"value of {name}")
    show = 'printf "%s|" "$PGPASSWORD" "$MYSQL_PWD"'
    script = ScriptedProvider([call("Bash", command=show)], "done")
    session = InteractiveSession(
        cwd=tmp_path,
        provider=script,
        permission_mode="bypassPermissions",
        settings={
            "passEnv": ["PGPASSWORD"],
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"{show} > heard"}]}]},
        },
    )
    async with session:
        await session.submit("go")
        messages = session.session.messages
    [answer] = [message.content for message in messages if isinstance(message, ToolMessage)]
    assert answer == (tmp_path / "heard").read_text() == "value of PGPASSWORD||"
