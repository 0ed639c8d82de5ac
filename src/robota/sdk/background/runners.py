"""Who works on tasks: agents, processes of the session's table, and the clock."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from robota.core.plain_text import strip_controls
from robota.sdk.agents.definition import DEFAULT_AGENT
from robota.sdk.agents.runner import AgentTask, Subagents
from robota.sdk.background.live_task import Runner, StoppedElsewhere, Work
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.states import TaskError
from robota.tools.builtins.bash import exit_code

if TYPE_CHECKING:
    from robota.sdk.background.tasks import BackgroundTasks
    from robota.tools.processes import BackgroundProcess


_TREE = ("worktreePath", "branchName", "worktreeStatus", "worktreeNextAction", "baseRevision", "parentStatus")


def agent_runner(subagents: Subagents) -> Runner:
    """Has an agent work on the prompt, under the id of its task."""

    async def run(work: Work) -> str:
        wanted = work.request
        work.get_in_line()
        outcome = await subagents.run(
            AgentTask(
                prompt=wanted.prompt,
                agent=wanted.agent_type or DEFAULT_AGENT,
                description=wanted.label,
                model=wanted.model,
                isolation=wanted.isolation,
            ),
            agent_id=work.task_id,
        )
        work.note(worktree={name: str(outcome.metadata[name]) for name in _TREE if name in outcome.metadata})
        if not outcome.success:
            raise TaskError("runner", outcome.error)
        return outcome.output

    return run


async def start_agent(tasks: BackgroundTasks, task: AgentTask) -> str:
    """Begin in the background what the model hands to an agent; the id of the task."""
    begun = await tasks.spawn(
        TaskRequest(
            prompt=task.prompt,
            label=task.description,
            agent_type=task.agent,
            model=task.model,
            isolation=task.isolation,
        )
    )
    return begun.task_id


def scheduled_runner(run_agent: Runner) -> Runner:
    """Sleeps until the time has come; then an agent works, or the model is reminded."""

    async def run(work: Work) -> str:
        await work.sleep(work.request.delay)
        return await run_agent(work) if work.request.agent_type else work.request.prompt

    return run


def take_in(tasks: BackgroundTasks, process: BackgroundProcess) -> None:
    """Have a process that Bash starts in the background among the tasks."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def run(work: Work) -> str:
        process.on_output = lambda data: work.say(strip_controls(decoder.decode(data)))
        try:
            await process.wait()
        finally:
            if process.is_running:  # the task was cancelled
                await process.stop()
        return _read_end(work, process)

    tasks.adopt(TaskRequest(kind="process", command=process.title), run, process_id=process.id)


def _read_end(work: Work, process: BackgroundProcess) -> str:
    result = process.result
    if result is None:
        raise StoppedElsewhere
    if result.error is not None:
        raise TaskError("process", f"It could not be run: {result.error}")
    if result.timed_out:
        raise TaskError("timeout", "It took too long and was ended.")
    code = exit_code(result)
    work.note(exit_code=code)
    if code:
        raise TaskError("process", f"It ended with exit code {code}.")
    return ""
