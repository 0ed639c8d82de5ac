"""What was approved is what is opened: links that somebody exchanges while a question is open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sessions.enforced_agent import EnforcedAgent

from robota.core.messages import ToolCall
from robota.core.questions import PermissionQuestion
from robota.core.tool import ToolContext
from robota.sessions.permissions.permission_enforcer import PermissionRules
from robota.testing import call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """`link` and `way` lead to what may be changed; `secret` and `vault` are what they could be turned to."""
    path = tmp_path.resolve() / "project"
    (path / "inside").mkdir(parents=True)
    (path / "inside" / "notes.txt").write_text("milk\n")
    (path / "link").symlink_to(path / "inside" / "notes.txt")
    (path / "way").symlink_to(path / "inside")
    vault = tmp_path.resolve() / "vault"
    vault.mkdir()
    (vault / "notes.txt").write_text("secret\n")
    return path


class Trickster:
    """Allows everything, after doing something behind the back of whoever reads the question."""

    def __init__(self, trick: Callable[[], object]) -> None:
        self.trick = trick

    async def __call__(self, question: PermissionQuestion) -> bool:
        self.trick()
        return True


def turn(link: Path, target: Path) -> Callable[[], None]:
    def act() -> None:
        if link.is_dir() and not link.is_symlink():
            link.rename(link.with_name("away"))
        else:
            link.unlink()
        link.symlink_to(target)

    return act


@pytest.mark.parametrize(
    ("request_", "name", "target"),
    [
        (call("Write", file_path="way/new.txt", content="x"), "way", ""),
        (call("Write", filePath="inside/deep/er/new.txt", content="x"), "inside", ""),
        (call("Edit", file_path="link", old_string="secret", new_string="x"), "link", "notes.txt"),
        (call("Edit", file_path="inside/notes.txt", old_string="milk", new_string="x"),
         "inside/notes.txt", "notes.txt"),
        (call("Read", file_path="link"), "link", "notes.txt"),
        (call("Read", file_path="./way/notes.txt"), "way", ""),
    ],
)  # fmt: skip
async def test_a_link_that_is_exchanged_while_somebody_is_asked_is_refused(
    project: Path, request_: ToolCall, name: str, target: str
) -> None:
    vault = project.parent / "vault"
    person = Trickster(turn(project / name, vault / target))
    agent = EnforcedAgent(project, rules=PermissionRules(ask=("Read", "Write", "Edit")), handler=person)
    [content] = await agent.run(request_)
    use = "read" if request_.name == "Read" else "written"
    assert content.startswith(f"Error: File was not {use}: {project}")
    assert f" leads to {vault}" in content
    assert f"led to {project / 'inside'}" in content
    assert content.endswith("when the call was approved. Find out why before you repeat it.")
    assert [(path.name, path.read_text()) for path in vault.iterdir()] == [("notes.txt", "secret\n")]


async def test_a_link_that_stays_is_followed(project: Path) -> None:
    agent = EnforcedAgent(
        project, rules=PermissionRules(ask=("Write", "Edit")), handler=Trickster(lambda: None)
    )
    await agent.run(
        call("Read", file_path="link"),
        call("Edit", file_path="link", old_string="milk", new_string="tea"),
        call("Write", file_path="way/new.txt", content="x"),
    )
    assert [event.outcome for event in agent.ended] == ["success"] * 3
    assert (project / "inside" / "notes.txt").read_text() == "tea\n"
    assert (project / "link").is_symlink()
    assert (project / "inside" / "new.txt").read_text() == "x"


async def test_a_tool_of_ones_own_is_told_where_its_paths_led(project: Path) -> None:
    seen: list[dict[str, str]] = []

    @tool(tool_class="modify")
    async def publish(ctx: ToolContext, path: str) -> None:
        """Publish a file."""
        seen.append(dict(ctx.resolved))

    agent = EnforcedAgent(project, tools=[publish], handler=Trickster(lambda: None))
    await agent.run(call("publish", path="link"))
    assert seen == [{"link": str(project / "inside" / "notes.txt")}]
