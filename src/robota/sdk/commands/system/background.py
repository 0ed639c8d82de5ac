"""What works beside the conversation: `/background`, and the words that `/agent` shares with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from robota.core.background import TaskSnapshot
from robota.sdk.background.states import TaskError
from robota.sdk.commands.arguments import Action, dispatch, split_first, usage
from robota.sdk.commands.effects import CommandResult, LogShown, TasksShown, failure

if TYPE_CHECKING:
    from robota.sdk.background.task_log import LogPage
    from robota.sdk.interactive import InteractiveSession

HINT = "[list | read ID [offset] | cancel ID | close ID]"


async def background(host: InteractiveSession, args: str) -> CommandResult:
    try:
        return await dispatch(host, "background", args, _ACTIONS)
    except TaskError as error:
        return failure(str(error))


def find_task(host: InteractiveSession, word: str) -> TaskSnapshot:
    """The task of that id, of that process, or the only one whose id ends or begins like that."""
    tasks = host.kit.background.list()
    exact = [task for task in tasks if word in (task.task_id, task.process_id)]
    near = [task for task in tasks if task.task_id.removeprefix("task-").startswith(word)]
    found = exact[-1:] or near
    return found[0] if word and len(found) == 1 else host.kit.background.get(word)


def show_tasks(tasks: Iterable[TaskSnapshot], nothing: str) -> CommandResult:
    shown = tuple(tasks)
    lines = [_describe(task) for task in shown]
    return CommandResult("\n".join(lines) or nothing, effect=TasksShown(shown))


def _describe(task: TaskSnapshot) -> str:
    who = task.process_id or task.agent_type or task.kind
    why = f": {task.error.message}" if task.error is not None else ""
    group = f" [{task.group_id}]" if task.group_id else ""
    return f"{task.task_id}  {task.state}  {who}  {task.label}{group}{why}"


async def list_tasks(host: InteractiveSession, args: str) -> CommandResult:
    return show_tasks(host.kit.background.list(), "Nothing works in the background.")


async def read(host: InteractiveSession, args: str) -> CommandResult:
    word, rest = split_first(args)
    if not word or (rest and not rest.isdecimal()):
        return usage("background", HINT)
    task = find_task(host, word)
    page = host.kit.background.read_log(task.task_id, int(rest or 0))
    return CommandResult(_show_page(task, page), effect=LogShown(task.task_id, page))


def _show_page(task: TaskSnapshot, page: LogPage) -> str:
    text = "\n".join(page.lines) or "[nothing was printed]"
    if page.more:
        left, where = page.total - page.next_offset, f"{task.task_id} {page.next_offset}"
        text += f"\n[{left} more lines: /background read {where}]"
    return text


async def cancel(host: InteractiveSession, args: str) -> CommandResult:
    task = find_task(host, args.strip())
    if task.ended:
        return failure(f"{task.task_id} is {task.state} already.")
    ended = await host.kit.background.cancel(task.task_id)
    return CommandResult(f"{task.task_id} is {ended.state}.", effect=TasksShown((ended,)))


async def close(host: InteractiveSession, args: str) -> CommandResult:
    task = find_task(host, args.strip())
    host.kit.background.close(task.task_id)
    return CommandResult(f"{task.task_id} is closed.", effect=TasksShown((task,)))


_ACTIONS: dict[str, Action[InteractiveSession]] = {
    "list": list_tasks,
    "read": read,
    "cancel": cancel,
    "close": close,
}
