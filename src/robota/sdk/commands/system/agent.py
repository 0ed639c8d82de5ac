"""`/agent`: hands work to agents in the background, one or several at once, and looks after them.

Options come before the prompt, which is taken as it is written: `--agent NAME` (also `--type`, `-a`),
`--model ID`, `--isolation none|worktree`. Several jobs are words of the form `label=agent:prompt` or
`agent:prompt`; quotes keep a job together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from robota.core.background import Isolation, TaskSnapshot
from robota.sdk.agents.runner import AgentTask, UnknownAgentError
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.states import TaskError
from robota.sdk.commands.arguments import Action, dispatch, split_first, split_quoted, usage
from robota.sdk.commands.effects import AgentSwitcher, CommandResult, TasksShown, failure
from robota.sdk.commands.system.background import cancel, close, find_task, read, show_tasks

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

_OPTIONS = {
    "--agent": "agent_type",
    "--type": "agent_type",
    "-a": "agent_type",
    "--model": "model",
    "--isolation": "isolation",
}


_QUOTED = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_OPTION = re.compile(rf"\s*(--?[a-zA-Z][\w-]*)(?:=|\s+|$)({_QUOTED}|\S+)?", re.DOTALL)
"""An option and its value, in quotes or without."""


async def agent(host: InteractiveSession, args: str) -> CommandResult:
    try:
        if not args.strip():
            return CommandResult(
                show_tasks(_agents(host), "No agent works in the background.").message,
                effect=AgentSwitcher(tuple(_agents(host))),
            )
        if args.lstrip().startswith("-"):
            return await run(host, args)
        return await dispatch(host, "agent", args, _ACTIONS)
    except (TaskError, UnknownAgentError) as error:
        return failure(str(error))
    except ValueError as error:
        return failure(f"The words cannot be taken apart: {error}. Close every quote.")


def _agents(host: InteractiveSession) -> list[TaskSnapshot]:
    return [task for task in host.kit.background.list() if task.kind != "process"]


async def list_agents(host: InteractiveSession, args: str) -> CommandResult:
    return show_tasks(_agents(host), "No agent works in the background.")


async def run(host: InteractiveSession, args: str) -> CommandResult:
    options, prompt = _read_options(args)
    request = replace(options, prompt=_unquote(prompt))
    cost = _price(host, request)
    task = await host.kit.background.spawn(request)
    return CommandResult(f"Started {task.task_id}. {cost}", effect=TasksShown((task,)))


async def parallel(host: InteractiveSession, args: str) -> CommandResult:
    options, jobs = _read_options(args)
    requests = [_read_job(host, word, options) for word in split_quoted(jobs)]
    if not requests:
        return usage("agent", "parallel label=agent:prompt agent:prompt …")
    cost = _price(host, requests[0])
    group = await host.kit.background.groups.spawn(requests)
    tasks = tuple(map(host.kit.background.get, group.task_ids))
    names = ", ".join(f"{task.label} ({task.task_id})" for task in tasks)
    return CommandResult(f"Started {group.group_id}: {names}. {cost}", effect=TasksShown(tasks))


def _read_options(args: str) -> tuple[TaskRequest, str]:
    """The options at the beginning, and the text behind them as it was written."""
    given: dict[str, str] = {}
    while (found := _OPTION.match(args)) is not None:
        name, value = found.groups()
        if name not in _OPTIONS:
            raise TaskError("validation", f"There is no option {name}; there are {', '.join(_OPTIONS)}.")
        if value is None:
            raise TaskError("validation", f"The option {name} needs a value.")
        given[_OPTIONS[name]] = split_quoted(value)[0]
        args = args[found.end() :]
    isolation = given.get("isolation")
    if isolation is not None and isolation not in get_args(Isolation):
        raise TaskError("validation", f"--isolation is none or worktree, not {isolation}.")
    return TaskRequest(**given), args.strip()  # type: ignore[arg-type]  # checked above


def _unquote(prompt: str) -> str:
    """The words inside, if all of it is in quotes; else it is as it was written: it may have apostrophes."""
    whole = re.fullmatch(_QUOTED, prompt, re.DOTALL)
    return prompt if whole is None else split_quoted(prompt)[0]


def _read_job(host: InteractiveSession, word: str, options: TaskRequest) -> TaskRequest:
    """`label=agent:prompt`. The name of an agent may have a colon itself, so the longest known one counts."""
    names = sorted(host.kit.subagents.agents, key=len, reverse=True)
    label, equals, rest = word.partition("=")
    for words, called in ((word, ""), (rest, label)) if equals else ((word, ""),):
        for name in names:
            if words.startswith(f"{name}:"):
                prompt = words[len(name) + 1 :].strip()
                return replace(options, agent_type=name, prompt=prompt, label=called or name)
    raise TaskError(
        "validation", f"{word[:60]!r} is not a job: write label=agent:prompt, with an agent of /agents."
    )


def _price(host: InteractiveSession, request: TaskRequest) -> str:
    """What the user should know before it costs something; an agent that does not exist is refused here."""
    subagents = host.kit.subagents
    wanted = AgentTask(prompt=request.prompt, model=request.model)
    return subagents.describe_cost(
        replace(wanted, agent=request.agent_type) if request.agent_type else wanted
    )


async def wait(host: InteractiveSession, args: str) -> CommandResult:
    tasks, word = host.kit.background, args.strip()
    if any(group.group_id == word for group in tasks.groups.list()):
        group = await tasks.groups.wait(word)
        return CommandResult(group.summary, effect=TasksShown(_known(host, group.task_ids)))
    ended = await tasks.wait(find_task(host, word).task_id)
    said = ended.result if ended.error is None else ended.error.message
    return CommandResult(f"{ended.task_id} is {ended.state}. {said}".rstrip(), effect=TasksShown((ended,)))


def _known(host: InteractiveSession, ids: Iterable[str]) -> tuple[TaskSnapshot, ...]:
    wanted = set(ids)
    return tuple(task for task in host.kit.background.list() if task.task_id in wanted)


async def send(host: InteractiveSession, args: str) -> CommandResult:
    word, text = split_first(args)
    if not text:
        return usage("agent", "send ID TEXT")
    task = find_task(host, word)
    host.kit.background.send(task.task_id, text)
    return CommandResult(f"{task.task_id} hears it before its next round.", effect=TasksShown((task,)))


_ACTIONS: dict[str, Action[InteractiveSession]] = {
    "list": list_agents,
    "run": run,
    "parallel": parallel,
    "wait": wait,
    "read": read,
    "open": read,
    "send": send,
    "stop": cancel,
    "cancel": cancel,
    "close": close,
}
