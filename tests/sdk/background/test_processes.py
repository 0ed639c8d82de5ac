"""Commands that Bash runs in the background are tasks as well; BashOutput and KillBash work as ever."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.background.office import Office

from robota.core.background import TaskSnapshot
from robota.core.messages import ToolMessage
from robota.sdk.background.runners import take_in
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import call
from robota.tools.builtins.background import bash_output_tool, kill_bash_tool
from robota.tools.builtins.bash import bash_tool
from robota.tools.processes import ProcessTable

pytestmark = pytest.mark.anyio


async def make_shop(home: Path, *replies: Any) -> Office:
    table = ProcessTable()
    tools = (bash_tool(table=table), bash_output_tool(table), kill_bash_tool(table))
    shop = Office(home, *replies, tools=tools, rules=PermissionRules(mode="bypassPermissions"))
    await shop.session.own(table)
    await shop.session.own(shop.tasks)
    table.on_start = lambda process: take_in(shop.tasks, process)
    return shop


def start(command: str) -> Any:
    return call("Bash", command=command, run_in_background=True)


async def ended(shop: Office) -> TaskSnapshot:
    [task] = shop.tasks.list()
    async with asyncio.timeout(20):
        return await shop.tasks.wait(task.task_id)


async def test_a_command_is_a_task_from_its_start_to_its_end(tmp_path: Path) -> None:
    shop = await make_shop(tmp_path, [start("echo one; echo zwei; read x < go")], "begun", "ok")
    (tmp_path / "project").mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "project" / "go")
    await shop.session.run("start it")
    [task] = shop.tasks.list()
    assert (task.kind, task.state, task.process_id) == ("process", "running", "bash_1")
    assert task.label.startswith("echo one")
    await asyncio.to_thread((tmp_path / "project" / "go").write_text, "go on\n")
    done = await ended(shop)
    assert (done.state, done.exit_code) == ("completed", 0)
    assert shop.tasks.read_log(task.task_id).lines == ("one", "zwei")
    await shop.session.run("and now?")
    [heard] = shop.told_the_model
    assert heard.startswith("The background process bash_1 (echo one")
    assert 'BashOutput(bash_id="bash_1")' in heard
    await shop.session.shutdown()


async def test_a_command_that_fails_says_with_which_code(tmp_path: Path) -> None:
    shop = await make_shop(tmp_path, [start("exit 3")], "begun")
    await shop.session.run("start it")
    done = await ended(shop)
    assert done.error is not None
    assert (done.state, done.exit_code, done.error.category) == ("failed", 3, "process")
    assert done.error.message == "It ended with exit code 3."
    await shop.session.shutdown()


async def test_cancelling_the_task_ends_the_command(tmp_path: Path) -> None:
    shop = await make_shop(tmp_path, [start("sleep 1000")], "begun", "ok")
    await shop.session.run("start it")
    [task] = shop.tasks.list()
    assert (await shop.tasks.cancel(task.task_id)).state == "cancelled"
    await shop.session.run("and?")
    assert shop.told_the_model[0].startswith("The background process bash_1 (sleep 1000) was cancelled.")
    await shop.session.shutdown()


async def test_what_the_model_ends_itself_it_is_not_told(tmp_path: Path) -> None:
    kill = call("KillBash", shell_id="bash_1")
    shop = await make_shop(tmp_path, [start("sleep 1000")], [kill], "done", "ok")
    await shop.session.run("start it and end it")
    assert (await ended(shop)).state == "cancelled"
    results = [m.content for m in shop.session.messages if isinstance(m, ToolMessage)]
    assert results[1] == "Stopped bash_1: sleep 1000"
    await shop.session.run("and?")
    assert shop.told_the_model == []
    await shop.session.shutdown()


async def test_commands_end_with_the_session(tmp_path: Path) -> None:
    shop = await make_shop(tmp_path, [start("sleep 1000")], "begun")
    await shop.session.run("start it")
    await shop.session.shutdown()
    assert shop.tasks.list()[0].state == "cancelled"


async def test_more_commands_than_agents_may_work_at_a_time(tmp_path: Path) -> None:
    shop = await make_shop(tmp_path, [start("sleep 1000") for _ in range(6)], "begun")
    await shop.session.run("start them")
    assert [task.state for task in shop.tasks.list()] == ["running"] * 6
    await shop.session.shutdown()
