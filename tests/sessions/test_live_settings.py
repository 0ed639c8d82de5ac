"""Rules, hooks and directories that change while a session works bind the next call, whoever makes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.enforced_agent import Person, hook
from tests.sessions.live_session import Studio, fired, heard
from tests.tools.web_site import Site, answer, redirect

from robota.core.errors import ConfigurationError
from robota.core.events import SettingsChanged, ToolEnded
from robota.core.messages import ToolMessage
from robota.sdk.workspace import Workspace
from robota.sessions.hooks import HookPort
from robota.sessions.options import HookOptions
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.testing import call
from robota.tools.builtins.files import read_tool, write_tool
from robota.tools.builtins.search import glob_tool, grep_tool
from robota.tools.builtins.web import web_fetch_tool
from robota.tools.function_tool import FunctionTool

pytestmark = pytest.mark.anyio

SECRETS = PermissionRules(deny=("Read(secret/**)",))


def change(does: Callable[[], None]) -> FunctionTool:
    """A tool that stands for whoever changes settings while a run is under way."""

    async def run() -> str:
        does()
        return "changed"

    return FunctionTool("Change", "", {"type": "object", "properties": {}}, run, tool_class="inspect")


def make(
    home: Path, *replies: Any, does: Callable[[Studio], None], **options: Any
) -> tuple[Studio, LiveRules]:
    rules = options.pop("rules", None) or LiveRules()
    tools = (
        read_tool(),
        write_tool(),
        grep_tool(ripgrep=False),
        glob_tool(ripgrep=False),
        web_fetch_tool(allowed_hosts=["127.0.0.1"]),
        change(lambda: does(studio)),
    )
    studio = Studio(home, *replies, tools=tools, rules=rules, **options)
    folder = studio.project / "secret"
    folder.mkdir()
    (folder / "key.txt").write_text("needle\n")
    (studio.project / "open.txt").write_text("needle\n")
    return studio, rules


def results(studio: Studio) -> list[str]:
    return [message.content for message in studio.session.messages if isinstance(message, ToolMessage)]


async def test_a_deny_rule_of_mid_run_binds_the_next_read_grep_and_glob(tmp_path: Path) -> None:
    looks = [
        call("Read", "1", file_path="secret/key.txt"),
        call("Grep", "2", pattern="needle"),
        call("Glob", "3", pattern="**/*.txt"),
    ]
    studio, _ = make(
        tmp_path, looks, [call("Change")], looks, "done", does=lambda it: it.session.reload(rules=SECRETS)
    )
    await studio.session.run("look")
    read, grepped, globbed, _, read_after, grepped_after, globbed_after = results(studio)
    assert "needle" in read
    assert "secret" in grepped
    assert "secret" in globbed
    assert read_after.startswith("Error: Permission denied. The rule Read(secret/**) denies")
    assert "secret" not in grepped_after
    assert "secret" not in globbed_after
    assert "open.txt" in grepped_after
    assert "open.txt" in globbed_after


async def test_a_deny_rule_of_mid_run_binds_the_next_redirect(tmp_path: Path) -> None:
    async with Site({"/a": redirect("/private"), "*": answer("inside")}) as site:
        url = f"{site.origin}/a"
        studio, _ = make(
            tmp_path,
            [call("WebFetch", "1", url=url)],
            [call("Change")],
            [call("WebFetch", "2", url=url)],
            "done",
            does=lambda it: it.session.reload(
                rules=PermissionRules(allow=(f"WebFetch({url})",), deny=("WebFetch(*private*)",))
            ),
            rules=LiveRules(PermissionRules(mode="bypassPermissions")),
        )
        await studio.session.run("fetch")
    before, _, after = results(studio)
    assert "inside" in before
    assert "a permission rule does not allow it" in after


async def test_an_added_hook_hears_the_next_call(tmp_path: Path) -> None:
    studio, _ = make(
        tmp_path,
        [call("Read", "1", file_path="open.txt")],
        [call("Change")],
        [call("Read", "2", file_path="open.txt")],
        "done",
        does=lambda it: it.session.reload(
            hooks={"PreToolUse": [heard(tmp_path)], "PostToolUse": [heard(tmp_path)]}
        ),
    )
    await studio.session.run("look")
    assert [(told["hook_event_name"], told["tool_use_id"]) for told in fired(tmp_path)] == [
        ("PostToolUse", "call_Change"),  # of the call that brought the hooks
        ("PreToolUse", "2"),
        ("PostToolUse", "2"),
    ]


async def test_a_removed_hook_is_not_heard_again(tmp_path: Path) -> None:
    blocking = {"PreToolUse": [hook("echo no >&2; exit 2", "Read")]}
    studio, _ = make(
        tmp_path,
        [call("Read", "1", file_path="open.txt")],
        [call("Change")],
        [call("Read", "2", file_path="open.txt")],
        "done",
        does=lambda it: it.session.reload(hooks={}),
        hooks=blocking,
    )
    await studio.session.run("look")
    first, _, second = results(studio)
    assert first == "Error: Blocked by hook: no"
    assert "needle" in second


async def test_an_added_directory_belongs_to_the_workspace(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rules, person = LiveRules(PermissionRules(mode="acceptEdits")), Person(False)
    write = call("Write", file_path=str(other / "made.txt"), content="x")
    studio, _ = make(
        tmp_path,
        [write],
        [call("Change")],
        [write],
        "done",
        does=lambda it: it.session.reload(additional_dirs=[str(other)]),
        rules=rules,
        guard=Workspace(str(tmp_path / "project"), rules),
        handler=person,
    )
    await studio.session.run("write")
    assert [asked.tool_name for asked in person.asked] == ["Write"]
    assert (other / "made.txt").read_text() == "x"


async def test_a_change_is_told_and_on_record(tmp_path: Path) -> None:
    studio, _ = make(tmp_path, [call("Change")], "done", does=lambda it: it.session.reload(rules=SECRETS))
    await studio.session.run("go")
    studio.session.reload(hooks={"Stop": [hook("true")]}, additional_dirs=["/srv"])
    await studio.session.shutdown()

    assert [event.keys for event in studio.told(SettingsChanged)] == [
        ("permissions",),
        ("hooks", "directories"),
    ]
    first, second = (each["values"] for each in studio.records if each["event"] == "settings_change")
    assert first["permissions"]["deny"] == ["Read(secret/**)"]
    assert second == {"directories": ["/srv"], "hooks": ["Stop"]}
    report = await replay_session(studio.path)
    assert report.divergence is None, str(report.divergence)


async def test_a_change_before_the_first_prompt_takes_no_number(
    tmp_path: Path,
) -> None:
    studio, _ = make(tmp_path, "done", does=lambda it: None)
    studio.session.reload(rules=SECRETS)
    studio.session.set_model("other")
    assert studio.events == []
    await studio.session.run("go")
    assert studio.records[0]["permissions"]["deny"] == ["Read(secret/**)"]
    live = {event.seq for event in studio.events}
    read: list[int] = []
    async for event in studio.session.follow():
        read.append(event.seq)
        if event.seq == studio.session.events.seq:
            break
    await studio.session.shutdown()
    assert read == sorted(live)


async def test_what_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    studio, rules = make(tmp_path, "done", does=lambda it: None)
    with pytest.raises(ConfigurationError, match="no permission mode 'yolo'"):
        studio.session.reload(rules=PermissionRules(mode="yolo"), hooks={"Stop": [hook("true")]})  # type: ignore[arg-type]
    assert not studio.session.hooks.has("Stop")
    with pytest.raises(ConfigurationError):
        studio.session.reload(hooks={"Stop": [{"hooks": [{"type": "command"}]}]})
    with pytest.raises(TypeError, match="rule"):
        studio.session.reload(rule=SECRETS)  # type: ignore[call-arg]
    assert (rules.rules, studio.told(SettingsChanged)) == (PermissionRules(), [])


async def test_hooks_that_somebody_else_runs_cannot_be_replaced(tmp_path: Path) -> None:
    class Nothing:
        def has(self, event: str) -> bool:
            return False

        async def fire(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

    port: HookPort = Nothing()
    studio = Studio(tmp_path, "hi", hook_port=port)
    assert studio.session.options.hook_options() == HookOptions(port=port)
    with pytest.raises(ConfigurationError, match="given somebody who runs its hooks"):
        studio.session.reload(hooks={})


# --- rules below rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "own", "expected"),
    [
        (PermissionRules(), None, "approve"),
        (PermissionRules(mode="acceptEdits"), None, "auto"),
        (PermissionRules(mode="acceptEdits"), PermissionRules(), "approve"),
        (PermissionRules(), PermissionRules(mode="bypassPermissions"), "approve"),
        (PermissionRules(mode="acceptEdits", deny=("Write",)), PermissionRules(allow=("Write",)), "deny"),
        (PermissionRules(mode="acceptEdits"), PermissionRules(mode="plan"), "deny"),
        (PermissionRules(ask=("Write",)), PermissionRules(mode="bypassPermissions"), "approve"),
        (PermissionRules(allow=("Write",)), PermissionRules(allow=("Write",)), "auto"),
    ],
)
async def test_the_stricter_of_two_levels_counts(
    tmp_path: Path, parent: PermissionRules, own: PermissionRules | None, expected: str
) -> None:
    person = Person(False)
    studio = Studio(
        tmp_path,
        [call("Write", file_path="made.txt", content="x")],
        "done",
        tools=(write_tool(),),
        rules=LiveRules(parent).narrowed(own),
        handler=person,
    )
    await studio.session.run("write")
    [ended] = studio.told(ToolEnded)
    asked = {"auto": 0, "approve": 1, "deny": 0}[expected]
    assert len(person.asked) == asked
    assert (studio.project / "made.txt").exists() == (expected == "auto")
    assert ended.outcome == ("success" if expected == "auto" else "denied")


async def test_what_is_granted_below_counts_above_and_above_decides_later_too(tmp_path: Path) -> None:
    above = LiveRules()
    person = Person("allow-session")
    write = call("Write", file_path="made.txt", content="x")
    studio = Studio(
        tmp_path, [write], [write], "done", tools=(write_tool(),), rules=above.narrowed(), handler=person
    )
    await studio.session.run("write")
    assert len(person.asked) == 1
    assert above.granted == ("Write(made.txt)",)

    above.replace(PermissionRules(deny=("Write(made.txt)",)))
    later = Studio(tmp_path, [write], "done", tools=(write_tool(),), rules=above.narrowed(), session_id="s-2")
    await later.session.run("write")
    assert results(later)[0].startswith("Error: Permission denied. The rule Write(made.txt) denies")
