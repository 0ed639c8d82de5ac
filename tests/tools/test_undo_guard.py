from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from robota.core.messages import ToolCall
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall, RunTool, invoke_tool, prepare_call
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import edit_tool, read_tool, write_tool
from robota.tools.function_tool import FunctionTool
from robota.tools.undo.guard import guarded
from robota.tools.undo.snapshot import Limits
from robota.tools.undo.store import UndoStore

pytestmark = pytest.mark.anyio

TOOLS = {each.name: each for each in (bash_tool(), edit_tool(), read_tool(), write_tool())}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    (path / "f").write_text("old\n")
    return path


@pytest.fixture
def store(tmp_path: Path) -> UndoStore:
    return UndoStore(tmp_path / "undo")


def prepare(name: str, **arguments: Any) -> PreparedCall:
    request = ToolCall(id="t1", name=name, arguments=msgspec.json.encode(arguments).decode())
    return prepare_call(0, "run-1", request, TOOLS)


async def use(run_tool: RunTool, work: Path, name: str, **arguments: Any) -> ToolResult:
    return await run_tool(prepare(name, **arguments), ToolContext(cwd=str(work), session_id="s"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Bash", {"command": "echo new > f; rm -rf sub"}),
        ("Write", {"file_path": "g", "content": "new"}),
        ("Write", {"filePath": "made/deep/g", "content": "new"}),
        ("Edit", {"file_path": "f", "old_string": "old", "new_string": "new"}),
        ("Bash", {"command": "rm ../f", "working_directory": "sub"}),
        ("Bash", {"command": "rm ../f", "workingDirectory": "sub"}),
    ],
)
async def test_a_call_that_changed_something_can_be_undone(name, arguments, store, work):
    (work / "sub").mkdir()
    before = sorted((path.relative_to(work), path.is_file() and path.read_text()) for path in work.rglob("*"))

    result = await use(guarded(invoke_tool, store), work, name, **arguments)

    assert result.ok, result.text
    undo = result.metadata["undo"]
    assert isinstance(undo, dict)
    [entry] = store.entries()
    assert undo == {"entry": entry.id, "files": entry.files}
    assert (entry.tool, entry.session_id, entry.call_id) == (name, "s", "run-1")
    store.undo(entry.id)
    after = sorted((path.relative_to(work), path.is_file() and path.read_text()) for path in work.rglob("*"))
    assert after == before


@pytest.mark.parametrize(
    ("name", "arguments"), [("Read", {"file_path": "f"}), ("Bash", {"command": "cat f"}), ("Nope", {})]
)
async def test_a_call_that_changes_nothing_leaves_no_trace(name, arguments, store, work, tmp_path):
    plain = await use(invoke_tool, work, name, **arguments)
    assert await use(guarded(invoke_tool, store), work, name, **arguments) == plain
    assert not (tmp_path / "undo").exists() or store.entries() == []


@pytest.mark.parametrize(
    ("tool_class", "arguments", "saved"),
    [
        ("modify", {"file_path": "f"}, True),
        ("modify", {"path": "f"}, True),
        ("modify", {"command": "rm f"}, True),
        ("modify", {"command": "cat f", "notebook_path": "f"}, True),
        ("execute", {"file_path": "f"}, True),
        ("execute", {"path": "f"}, False),
        ("inspect", {"file_path": "f"}, False),
        (None, {"file_path": "f"}, False),
    ],
)
async def test_a_tool_of_the_users_takes_part_by_the_names_of_its_arguments(
    tool_class, arguments, saved, store, work
):
    async def clear(given: dict[str, Any]) -> str:
        (work / "f").write_text("")
        return "cleared"

    tool = FunctionTool("clear", "", {"type": "object"}, clear, tool_class=tool_class)
    call = PreparedCall(
        index=0, call_id="run-1", request=ToolCall("t1", "clear", "{}"), tool=tool, arguments=arguments
    )

    await guarded(invoke_tool, store)(call, ToolContext(cwd=str(work)))

    entries = store.entries()
    assert bool(entries) is saved
    if saved:
        store.undo(entries[0].id)
        assert (work / "f").read_text() == "old\n"


async def test_the_label_is_redacted(store, work):
    run_tool = guarded(invoke_tool, store, redact=lambda text: text.replace("hunter2", "***"))
    await use(run_tool, work, "Bash", command="echo hunter2 > f")
    assert store.entries()[0].label == "echo *** > f"


async def test_a_call_that_cannot_be_undone_runs_with_a_note(tmp_path, work):
    store = UndoStore(tmp_path / "undo", limits=Limits(file_bytes=2))
    result = await use(guarded(invoke_tool, store), work, "Bash", command="rm f; echo done")
    reason = f"{work}/f is too large to be saved for undo (4 bytes)."
    assert result.text == f"done\n[Cannot be undone completely: {reason}]"
    assert result.metadata["undo"] == {"entry": store.entries()[0].id, "files": 0, "unprotected": [reason]}
    assert not (work / "f").exists()


async def test_where_undo_is_required_such_a_call_is_refused(tmp_path, work):
    store = UndoStore(tmp_path / "undo", limits=Limits(file_bytes=2))
    result = await use(guarded(invoke_tool, store, required=True), work, "Bash", command="rm f")
    assert (result.ok, result.denied, result.error_code) == (False, True, "unprotected")
    assert result.text.startswith("Error: The call was not run because it could not be undone: ")
    assert (work / "f").exists()
    assert store.entries()[0].ended


@pytest.mark.parametrize("answer", [True, False])
async def test_whoever_is_there_is_asked_before_the_call_runs(answer, tmp_path, work):
    store = UndoStore(tmp_path / "undo", limits=Limits(file_bytes=2))
    asked: list[tuple[str, str, bool]] = []

    async def ask(call: PreparedCall, problems: tuple[Any, ...]) -> bool:
        asked.append((call.request.name, problems[0].code, (work / "f").exists()))
        return answer

    result = await use(guarded(invoke_tool, store, ask=ask, required=True), work, "Bash", command="rm f")

    assert asked == [("Bash", "file_too_large", True)]
    assert (result.ok, (work / "f").exists()) == (answer, not answer)


async def test_a_store_that_fails_costs_neither_the_call_nor_its_result(tmp_path, work):
    (tmp_path / "undo").touch()
    run_tool = guarded(invoke_tool, UndoStore(tmp_path / "undo"))
    result = await use(run_tool, work, "Bash", command="rm f; echo done")
    assert result.content.startswith("done\n[Cannot be undone completely: The undo store failed: ")
    assert not (work / "f").exists()


async def test_an_after_state_that_could_not_be_recorded_is_said(store, work, tmp_path):
    async def sabotage(call: PreparedCall, context: ToolContext) -> ToolResult:
        (tmp_path / "undo" / "journal.jsonl").unlink()
        return ToolResult(content="done")

    result = await use(guarded(sabotage, store), work, "Bash", command="rm f")
    assert result.content.startswith(
        "done\n[Cannot be undone completely: How the call left the files was not"
    )


async def test_a_call_that_is_cancelled_can_be_undone(store, work):
    changed = anyio.Event()

    async def hang(call: PreparedCall, context: ToolContext) -> ToolResult:
        (work / "f").unlink()
        changed.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with anyio.create_task_group() as group:

        async def start() -> None:
            await use(guarded(hang, store), work, "Bash", command="rm f")

        group.start_soon(start)
        await changed.wait()
        group.cancel_scope.cancel()

    [entry] = store.entries()
    assert entry.ended
    store.undo(entry.id)
    assert (work / "f").read_text() == "old\n"


async def test_calls_that_run_at_the_same_time_have_an_entry_each(store, work):
    run_tool = guarded(invoke_tool, store)
    async with anyio.create_task_group() as group:
        for number in range(5):
            arguments = {"file_path": f"n{number}", "content": "x"}
            group.start_soon(lambda given: use(run_tool, work, "Write", **given), arguments)
    assert len(store.entries()) == 5
    for entry in store.entries():
        store.undo(entry.id)
    assert [path.name for path in work.iterdir()] == ["f"]


async def test_a_workspace_of_several_directories_is_saved_whole(store, work, tmp_path):
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "f").write_text("x")
    run_tool = guarded(invoke_tool, store, workspace=[str(work), str(tmp_path / "second")])
    command = f"python3 -c 'import os; os.remove(\"{tmp_path}/second/f\")'"
    await use(run_tool, work, "Bash", command=command)
    store.undo(store.entries()[0].id)
    assert (tmp_path / "second" / "f").read_text() == "x"


UNREADABLE = (
    "echo 'unclosed", "rm f; fi", "coproc rm f", "f() { rm f; }; f", "trap 'rm f' EXIT", "rm {f,g}",
    "x=(f); rm ${x[0]}", "eval 'rm f'", "$(echo rm) f", "echo f | xargs rm", "cat <(rm f)",
)  # fmt: skip


@pytest.mark.parametrize("command", UNREADABLE)
async def test_before_a_command_that_cannot_be_read_the_workspace_is_saved(command, store, work):
    (work / "unnamed").write_text("x")
    result = await use(guarded(invoke_tool, store), work, "Bash", command=command)
    assert "Cannot be undone" not in result.text
    [entry] = store.entries()
    assert store.undo(entry.id).kept == ()
    assert sorted(path.name for path in work.iterdir()) == ["f", "unnamed"]


@pytest.mark.parametrize("command", UNREADABLE)
async def test_or_it_says_that_it_was_not(command, tmp_path, work):
    for number in range(5):
        (work / str(number)).touch()
    store = UndoStore(tmp_path / "undo", limits=Limits(files=3))
    result = await use(guarded(invoke_tool, store), work, "Bash", command=command)
    assert "[Cannot be undone completely: The workspace has more than 3 files" in result.text


async def test_arguments_that_only_the_tool_understands_have_the_workspace_saved(store, work):
    async def start(ctx: ToolContext, command: list[str]) -> str:
        """Start a program."""
        (Path(ctx.cwd) / "f").unlink()
        return "started"

    tool = FunctionTool("start", "", {"type": "object"}, start, tool_class="execute")
    request = ToolCall(id="t1", name="start", arguments='{"command": ["rm", "f"]}')
    call = prepare_call(0, "run-1", request, {"start": tool})
    await guarded(invoke_tool, store)(call, ToolContext(cwd=str(work)))
    [entry] = store.entries()
    assert store.undo(entry.id).kept == ()
    assert (work / "f").read_text() == "old\n"


async def test_work_outside_the_workspace_is_said_and_not_saved(store, work):
    elsewhere = work.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "large").touch()
    command = "cd ../elsewhere && python3 -c 'pass' && rm -f named"
    result = await use(guarded(invoke_tool, store, workspace=[str(work)]), work, "Bash", command=command)
    assert (
        f"[Cannot be undone completely: The command works in {elsewhere}, outside the workspace:"
        in result.text
    )
    strict = guarded(invoke_tool, store, workspace=[str(work)], required=True)
    assert (await use(strict, work, "Bash", command=command)).denied
