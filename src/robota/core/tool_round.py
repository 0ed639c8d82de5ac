"""The tools of one round: run at the same time, reported, answered in the order they were asked.

A call always gets a result: of the tool, of a rule that stopped it, or the note that the run was interrupted.
One tool's failure never touches its siblings.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from robota.core.agent_tool import run_worker
from robota.core.errors import describe_exception
from robota.core.events import (
    OwnerPathSegment,
    ToolBatchStarted,
    ToolEnded,
    ToolExecutionRequest,
    ToolExecutionResult,
    ToolMessageCommitted,
    ToolOutcome,
    ToolProgressed,
    ToolStarted,
)
from robota.core.messages import ToolCall, ToolMessage
from robota.core.plugin import Refusal
from robota.core.questions import Answer, Question
from robota.core.run import CallOutcome, CutRun, RunState
from robota.core.run_task import forget_requests
from robota.core.tool import INTERRUPTED, ToolContext, ToolResult, Toolset, tool_class
from robota.core.tool_call import (
    INTERRUPTED_CALL,
    NOT_STARTED,
    PreparedCall,
    checked_result,
    invoke_tool,
    prepare_call,
    result_metadata,
)

if TYPE_CHECKING:
    from robota.core.loop import Loop
    from robota.core.recorder import Recorder
    from robota.core.robota import Robota
    from robota.core.run_task import RunTask

PROGRESS_KEPT = 32 * 1024
"""Characters of a call's progress that are numbered and journaled; what follows is only shown."""
INTERRUPTED_RESULT = ToolResult.failure(INTERRUPTED, INTERRUPTED_CALL, errorCode=INTERRUPTED_CALL)
NOT_STARTED_RESULT = ToolResult.failure(INTERRUPTED, NOT_STARTED, errorCode=NOT_STARTED)
UNKNOWN_OUTCOME = ToolResult.failure(
    "interrupted; effects unknown. The session ended before the tool reported a result.",
    INTERRUPTED_CALL,
    errorCode=INTERRUPTED_CALL,
)
SKIPPED_RESULT = ToolResult.failure(
    "Context window near capacity. Tool execution result skipped.",
    "context_overflow",
    errorCode="context_overflow",
)


class ToolRound:
    """The calls of one answer. `run` may be cancelled anywhere, and still answers every call."""

    __slots__ = (
        "agent", "batch_id", "calls", "control", "finished", "over", "recorder", "results", "started",
        "state", "to_answer",
    )  # fmt: skip

    def __init__(
        self, run: Loop, requests: Sequence[ToolCall], toolset: Toolset, *, truncated: bool = False
    ) -> None:
        """`truncated`: the answer with these calls was cut at the token limit."""
        self.agent: Robota = run.agent
        self.recorder: Recorder = run.recorder
        self.control: RunTask = run.control
        self.state: RunState = run.state
        self.batch_id = f"{self.recorder.execution_id}-r{self.recorder.round}"
        self.calls = [
            prepare_call(at, f"{self.batch_id}-{at}", request, toolset.tools, truncated=truncated)
            for at, request in enumerate(requests)
        ]
        self.to_answer = self.calls
        """Those without a message that tells of their result."""
        self.results: list[ToolResult | None] = [None] * len(self.calls)
        self.finished = 0
        self.started: set[str] = set()
        self.over: set[str] = set()
        """Calls that have ended; what they still say is dropped."""

    def recall(self, cut: CutRun) -> None:
        """Of a round that a crash has cut: results that are known stay, calls that only look are made again,
        and of the others nobody knows what became of them."""
        unanswered = {call.id for call in self.recorder.conversation.open_calls}
        self.to_answer = [call for call in self.calls if call.request.id in unanswered]
        for call in self.calls:
            known = cut.results.get(call.index)
            if call.index in cut.begun or known is not None:
                self.started.add(call.call_id)
            if known is not None:
                self.results[call.index] = known
                self.over.add(call.call_id)
            elif call.tool is not None and tool_class(call.tool) != "inspect":
                self.results[call.index] = UNKNOWN_OUTCOME
                if call.call_id not in self.started:
                    self.report_start(call)
                self.report_end(call, UNKNOWN_OUTCOME, 0.0)

    async def run(self, budget: int) -> None:
        """Run the calls; their results are in the conversation, in order, however this ends.

        `budget`: the tokens a conversation may have before further results are only noted.
        """
        limit = self.agent.limits.max_parallel_tools
        self.recorder.log(
            ToolBatchStarted,
            batch_id=self.batch_id,
            mode="sequential" if limit is not None and limit <= 1 else "parallel",
            max_concurrency=limit,
            request_count=len(self.calls),
            tools=[call.request.name for call in self.calls],
        )
        try:
            calls = [call for call in self.calls if self.results[call.index] is None]
            if len(calls) == 1:
                # In the run's own task: the extra turns of the loop that another one takes make hundreds of
                # runs at once find every connection idle at the same moment, which doubled their cost.
                await self.run_one(calls[0])
            else:
                # Not an anyio group: a task there costs four times as much, and a hundred parallel tools are
                # measured.
                async with asyncio.TaskGroup() as group:
                    for work in self.share_out(calls, limit):
                        group.create_task(work)
        finally:
            self.commit(budget)
        self.control.check()
        await self.recorder.plugins.flush()

    def share_out(
        self, calls: Sequence[PreparedCall], limit: float | None
    ) -> list[Coroutine[Any, Any, None]]:
        """The calls as work for tasks: for one each, or for `limit` that take the next when one has ended."""
        if limit is None or not math.isfinite(limit):
            return [self.run_one(call) for call in calls]
        waiting = iter(calls)

        async def work() -> None:
            for call in waiting:
                await self.run_one(call)
                if self.control.is_stopping:
                    return  # a tool swallowed the cancellation; no other one is started for it

        return [work() for _ in range(max(1, min(int(limit), len(calls))))]

    async def run_one(self, call: PreparedCall) -> None:
        """Plugins, then whoever runs tools here, then plugins again."""
        if self.control.aborted:
            return  # stays without a result: `commit` says that it was interrupted
        monotonic, plugins = self.agent.config.ports.monotonic, self.recorder.plugins
        started, made = monotonic(), call
        if call.call_id not in self.started:
            self.report_start(call)
        result = INTERRUPTED_RESULT
        try:
            if call.answer is None and plugins.has("before_tool_execution"):
                verdict = await plugins.fold("before_tool_execution", call.arguments, call.request)
                if isinstance(verdict, Refusal):
                    result = self.results[call.index] = refused(verdict)
                    return
                call = replace(call, arguments=verdict)
            run_tool = self.agent.config.run_tool
            result = await run_tool(call, self.context(call))
            if run_tool is not invoke_tool:  # which has checked it
                result = checked_result(call.request.name, result)
            if plugins.plugins:
                result = await self.hear_plugins(call, result)
            self.results[call.index] = result
        except Exception as error:  # noqa: BLE001 - whoever runs tools here, one call's failure is its own
            result = ToolResult.failure(f"{call.request.name} failed: {describe_exception(error)}")
            self.results[call.index] = result
        finally:
            self.report_end(made, result, round(monotonic() - started, 6))
        forget_requests()  # of task groups inside the tool

    async def hear_plugins(self, call: PreparedCall, result: ToolResult) -> ToolResult:
        plugins = self.recorder.plugins
        if not result.ok:
            await plugins.tell("on_error", result.as_error(call.request.name))
        if not plugins.has("after_tool_execution"):
            return result
        replaced = await plugins.fold("after_tool_execution", result, call.request)
        return checked_result(call.request.name, replaced)

    def context(self, call: PreparedCall) -> ToolContext:
        agent, config, voice = self.agent, self.agent.config, _CallVoice(self, call)
        return ToolContext(
            call_id=call.call_id,
            tool_call_id=call.request.id,
            tool_name=call.request.name,
            execution_id=self.recorder.execution_id,
            session_id=config.session_id,
            cwd=config.cwd,
            files=agent.files,
            deps=config.deps,
            progress=voice.report,
            timeout=getattr(call.tool, "timeout", None) or agent.limits.tool_timeout,
            delegate=config.delegate or partial(run_worker, agent),
            ask=None if config.ask is None else voice.ask,
        )

    def report_start(self, call: PreparedCall) -> None:
        self.started.add(call.call_id)
        recorder, asked = self.recorder, call.request
        names = {"call_id": call.call_id, "tool_call_id": asked.id, "tool_name": asked.name}
        if recorder.events.wants(ToolExecutionRequest):
            recorder.log(
                ToolExecutionRequest,
                **names,
                batch_id=self.batch_id,
                index=call.index,
                parameters=call.arguments,
                owner_path=self.owner_path(call),
            )
        recorder.tell(ToolStarted, **names, arguments=call.arguments, round=recorder.round)

    def report_end(self, call: PreparedCall, result: ToolResult, duration: float) -> None:
        self.finished += 1
        self.over.add(call.call_id)
        asked, told = call.request, {"error": result.error, "metadata": result.metadata}
        names = {"call_id": call.call_id, "tool_call_id": asked.id, "tool_name": asked.name}
        self.recorder.log(
            ToolExecutionResult,
            **names,
            **told,
            batch_id=self.batch_id,
            index=call.index,
            success=result.ok,
            result=result.content,
            finished=self.finished,
        )
        self.recorder.tell(
            ToolEnded,
            **names,
            **told,
            outcome=outcome_of(result),
            arguments=call.arguments,
            content=result.content,
            error_code=result.error_code,
            duration=duration,
            round=self.recorder.round,
        )

    def commit(self, budget: int) -> None:
        """Answer every call in order, past the budget with a note only.

        Synchronous: a cancelled batch too leaves no call without an answer, and no answer without its events.
        """
        for call in self.calls:
            if call.call_id not in self.started:
                self.results[call.index] = NOT_STARTED_RESULT
                self.report_start(call)
                self.report_end(call, NOT_STARTED_RESULT, 0.0)
            elif call.call_id not in self.over:  # begun in an earlier process, and not begun again
                self.report_end(call, INTERRUPTED_RESULT, 0.0)
        recorder, overflowed = self.recorder, False
        results = [result or INTERRUPTED_RESULT for result in self.results]
        last, floor = self.to_answer[-1], self.state.last_usage.input_tokens
        for call in self.to_answer:
            message = self.message(call, SKIPPED_RESULT if overflowed else results[call.index])
            if call is last:
                self.state.note_results(self.outcomes(results))
            recorder.record(message)
            recorder.log(ToolMessageCommitted, batch_id=self.batch_id, index=call.index, message=message)
            overflowed = overflowed or recorder.conversation.tally.tokens(floor) > budget

    def outcomes(self, results: Sequence[ToolResult]) -> list[CallOutcome]:
        return [
            CallOutcome(call.request, outcome_of(result), result.error_code)
            for call, result in zip(self.calls, results, strict=True)
        ]

    def message(self, call: PreparedCall, result: ToolResult) -> ToolMessage:
        name, recorder = call.request.name, self.recorder
        metadata = result_metadata(result, name, recorder.round)
        identity = recorder.identity()
        return ToolMessage(result.text, call.request.id, name, result.parts, metadata=metadata, **identity)

    def owner_path(self, call: PreparedCall) -> Sequence[OwnerPathSegment]:
        return (
            OwnerPathSegment("agent", self.agent.agent_id),
            OwnerPathSegment("execution", self.recorder.execution_id),
            OwnerPathSegment("tool", call.call_id),
        )


class _CallVoice(Struct, eq=False):
    """How a tool speaks while it runs."""

    _round: ToolRound
    _call: PreparedCall
    _shown: int = 0

    def report(self, text: str) -> None:
        """Show progress to whoever watches."""
        self._round.control.call_in_loop(partial(self._show, str(text)))

    def _show(self, text: str) -> None:
        call, recorder = self._call, self._round.recorder
        if call.call_id in self._round.over:
            return
        self._shown += len(text)
        tell = recorder.tell if self._shown <= PROGRESS_KEPT else recorder.tell_transient
        name, number = call.request.name, recorder.round
        tell(ToolProgressed, call_id=call.call_id, tool_name=name, text=text, round=number)

    async def ask(self, question: Question) -> Answer | None:
        """Ask the user, in the name of the call."""
        ask = self._round.agent.config.ask
        return None if ask is None else await ask(replace(question, call_id=self._call.call_id))


def refused(refusal: Refusal) -> ToolResult:
    return ToolResult(ok=False, denied=True, error=refusal.reason, error_code="refused")


def outcome_of(result: ToolResult) -> ToolOutcome:
    return "success" if result.ok else "denied" if result.denied else "error"
