"""The tools of one round: run, reported, answered in the conversation; and the guard that watches rounds."""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.engine import Engine, RunControl
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
from robota.core.messages import Json, ToolMessage
from robota.core.plugin import Refusal
from robota.core.recorder import Recorder
from robota.core.reply import Reply
from robota.core.tool import INTERRUPTED, ToolContext, ToolResult
from robota.core.tool_batch import (
    INVALID_ARGUMENTS,
    UNKNOWN_TOOL,
    PreparedCall,
    checked_result,
    invoke_tool,
    prepare_call,
    run_batch,
)

MAX_UNKNOWN_TOOL_ROUNDS = 2
UNKNOWN_TOOL_INSTRUCTION = (
    "The tools {names} are not registered, so the calls were not executed. Answer now without tools from "
    "what you have, and say what could not be done."
)
REPEATED_FAILURE_INSTRUCTION = (
    "The same call of {names} failed {times} times in a row, so no more tools are called. Answer now from "
    "what you have, and say what went wrong."
)
INTERRUPTED_RESULT = ToolResult.failure(INTERRUPTED, "interrupted", errorCode="interrupted")
SKIPPED_RESULT = ToolResult.failure(
    "Context window near capacity. Tool execution result skipped.",
    "context_overflow",
    errorCode="context_overflow",
)


class ToolRound:
    """The calls of one answer. `run` may be cancelled anywhere; `commit` then still answers every call."""

    def __init__(self, recorder: Recorder, control: RunControl, reply: Reply) -> None:
        self.recorder = recorder
        self.engine: Engine = recorder.engine
        self.control = control
        self.batch_id = f"{recorder.execution_id}-r{recorder.round}"
        truncated = reply.stop == "max_tokens"
        requests = reply.message.tool_calls if reply.message is not None else ()
        self.calls = [
            prepare_call(at, f"{self.batch_id}-{at}", request, self.engine.tools, truncated=truncated)
            for at, request in enumerate(requests)
        ]
        self.results: list[ToolResult | None] = [None] * len(self.calls)
        self.finished = 0
        self.over: set[str] = set()
        """Calls that have ended; what they still say is dropped."""

    async def run(self) -> None:
        limit = self.engine.max_parallel_tools
        self.recorder.log(
            ToolBatchStarted,
            batch_id=self.batch_id,
            mode="sequential" if limit is not None and limit <= 1 else "parallel",
            max_concurrency=limit,
            request_count=len(self.calls),
            tools=[call.request.name for call in self.calls],
        )
        if len(self.calls) == 1:
            await self.control.run_single(self.run_one(self.calls[0]))
        else:
            await run_batch(self.calls, self.run_one, limit)

    async def run_one(self, call: PreparedCall) -> None:
        if self.control.aborted:
            return  # stays without a result: `commit` says that it was interrupted
        started = self.engine.ports.monotonic()
        self.report_start(call)
        result = INTERRUPTED_RESULT
        try:
            result = self.results[call.index] = await self.carry_out(call)
        except Exception as error:  # noqa: BLE001 - whoever runs tools here, one call's failure is its own
            result = ToolResult.failure(f"{call.request.name} failed: {describe_exception(error)}")
            self.results[call.index] = result
        finally:
            self.report_end(call, result, round(self.engine.ports.monotonic() - started, 6))

    async def carry_out(self, call: PreparedCall) -> ToolResult:
        """Plugins, then whoever runs tools here, then plugins again."""
        plugins = self.engine.plugins
        if call.answer is None and plugins.has("before_tool_execution"):
            verdict = await plugins.fold("before_tool_execution", call.arguments, call.request)
            if isinstance(verdict, Refusal):
                return ToolResult(ok=False, denied=True, error=verdict.reason, error_code="refused")
            call = PreparedCall(
                index=call.index,
                call_id=call.call_id,
                request=call.request,
                tool=call.tool,
                arguments=verdict,
            )
        run_tool = self.engine.run_tool
        result = await run_tool(call, self.context(call))
        if run_tool is not invoke_tool:  # which has checked it
            result = checked_result(call.request.name, result)
        if not result.ok and plugins.has("on_error"):
            await plugins.tell("on_error", result.as_error(call.request.name))
        if plugins.has("after_tool_execution"):
            replaced = await plugins.fold("after_tool_execution", result, call.request)
            result = checked_result(call.request.name, replaced)
        return result

    def context(self, call: PreparedCall) -> ToolContext:
        engine, recorder = self.engine, self.recorder

        def show(text: str) -> None:
            if call.call_id not in self.over:
                name, number = call.request.name, recorder.round
                recorder.tell(ToolProgressed, call_id=call.call_id, tool_name=name, text=text, round=number)

        return ToolContext(
            call_id=call.call_id,
            tool_call_id=call.request.id,
            tool_name=call.request.name,
            execution_id=recorder.execution_id,
            session_id=engine.session_id,
            cwd=engine.cwd,
            files=engine.files,
            deps=engine.deps,
            progress=lambda text: self.control.call_in_loop(lambda: show(str(text))),
            ask=engine.ask,
        )

    def report_start(self, call: PreparedCall) -> None:
        if self.engine.events.wants(ToolExecutionRequest):
            self.recorder.log(
                ToolExecutionRequest,
                batch_id=self.batch_id,
                index=call.index,
                call_id=call.call_id,
                tool_name=call.request.name,
                tool_call_id=call.request.id,
                parameters=call.arguments,
                owner_path=self.owner_path(call),
            )
        self.recorder.tell(
            ToolStarted,
            call_id=call.call_id,
            tool_call_id=call.request.id,
            tool_name=call.request.name,
            arguments=call.arguments,
            round=self.recorder.round,
        )

    def report_end(self, call: PreparedCall, result: ToolResult, duration: float) -> None:
        self.finished += 1
        self.over.add(call.call_id)
        outcome: ToolOutcome = "success" if result.ok else "denied" if result.denied else "error"
        self.recorder.log(
            ToolExecutionResult,
            batch_id=self.batch_id,
            index=call.index,
            call_id=call.call_id,
            tool_name=call.request.name,
            tool_call_id=call.request.id,
            success=result.ok,
            result=result.content,
            error=result.error,
            metadata=result.metadata,
            finished=self.finished,
        )
        self.recorder.tell(
            ToolEnded,
            call_id=call.call_id,
            tool_call_id=call.request.id,
            tool_name=call.request.name,
            outcome=outcome,
            content=result.content,
            error=result.error,
            error_code=result.error_code,
            metadata=result.metadata,
            duration=duration,
            round=self.recorder.round,
        )

    def commit(self, budget: int, usage_floor: int) -> list[str]:
        """Answer every call in order, past the budget with a note only; returns the tools that really ran.

        Synchronous: also a cancelled batch leaves no call without an answer.
        """
        overflowed, executed = False, []
        for call in self.calls:
            result = self.results[call.index]
            if result is not None and self.really_ran(call, result):
                executed.append(call.request.name)
            message = self.message(call, SKIPPED_RESULT if overflowed else result or INTERRUPTED_RESULT)
            self.recorder.record(message)
            self.recorder.log(ToolMessageCommitted, batch_id=self.batch_id, index=call.index, message=message)
            estimate = self.engine.conversation.tally.estimate(usage_floor)
            overflowed = overflowed or estimate.tokens > budget
        return executed

    @staticmethod
    def really_ran(call: PreparedCall, result: ToolResult) -> bool:
        return call.answer is None and not result.denied and result.error_code != INVALID_ARGUMENTS

    def message(self, call: PreparedCall, result: ToolResult) -> ToolMessage:
        metadata: dict[str, Json] = {
            **result.metadata,
            "success": result.ok,
            "toolName": call.request.name,
            "round": self.recorder.round,
        }
        if not result.ok:
            metadata["error"] = result.error_code or result.error
        name = call.request.name
        identity = self.recorder.identity()
        return ToolMessage(result.text, call.request.id, name, result.parts, metadata=metadata, **identity)

    def owner_path(self, call: PreparedCall) -> Sequence[OwnerPathSegment]:
        return (
            OwnerPathSegment("agent", self.engine.agent_id),
            OwnerPathSegment("execution", self.recorder.execution_id),
            OwnerPathSegment("tool", call.call_id),
        )


class RoundGuard:
    """Notices rounds that lead nowhere: tools that do not exist, the same failure again and again."""

    def __init__(self, identical_failures: int) -> None:
        self._failure_limit = identical_failures
        self._unknown_rounds = 0
        self._unknown_names: set[str] = set()
        self._failures: dict[tuple[str, str], int] = {}

    def watch(self, batch: ToolRound) -> str | None:
        """The instruction to end the run with, once a limit is reached."""
        return self._watch_unknown(batch) or self._watch_failures(batch)

    def _watch_unknown(self, batch: ToolRound) -> str | None:
        names = {
            call.request.name
            for call in batch.calls
            if call.answer is not None and call.answer.error_code == UNKNOWN_TOOL
        }
        self._unknown_names = self._unknown_names | names if names else set()
        self._unknown_rounds = self._unknown_rounds + 1 if names else 0
        if self._unknown_rounds < MAX_UNKNOWN_TOOL_ROUNDS:
            return None
        return UNKNOWN_TOOL_INSTRUCTION.format(names=", ".join(sorted(self._unknown_names)))

    def _watch_failures(self, batch: ToolRound) -> str | None:
        failing = {
            (call.request.name, call.request.arguments)
            for call, result in zip(batch.calls, batch.results, strict=True)
            if result is not None and not result.ok
        }
        self._failures = {key: self._failures.get(key, 0) + 1 for key in failing}
        limit = self._failure_limit
        worst = sorted({name for (name, _), times in self._failures.items() if limit and times >= limit})
        return REPEATED_FAILURE_INSTRUCTION.format(names=", ".join(worst), times=limit) if worst else None
