"""Going on with a run that a crash has cut: what is left of its round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.context import TOOL_RESULT_BUDGET_THRESHOLD
from robota.core.messages import AssistantMessage, user_message
from robota.core.run import CutRun
from robota.core.tool import ToolResult, tool_class
from robota.core.tool_call import INTERRUPTED_CALL
from robota.core.tool_round import ToolRound

if TYPE_CHECKING:
    from robota.core.loop import Loop

GO_ON = "The session was interrupted in the middle of your answer. Go on where it stopped."
UNKNOWN_OUTCOME = ToolResult.failure(
    "interrupted; effects unknown. The session ended before the tool reported a result.",
    INTERRUPTED_CALL,
    errorCode=INTERRUPTED_CALL,
)


async def resume(run: Loop, cut: CutRun) -> bool:
    """Do what is left of the round that was cut; false if that was all."""
    agent, recorder = run.agent, run.recorder
    if cut.prompt is not None:
        return await run.record_prompt(cut.prompt)
    await recorder.plugins.initialize(agent)
    recorder.round = run.state.rounds
    timeline = recorder.conversation.timeline
    answer = next((each for each in reversed(timeline) if isinstance(each, AssistantMessage)), None)
    if answer is not None and recorder.conversation.open_calls:
        tools = ToolRound(run, answer.tool_calls, agent.toolset)
        recall(tools, cut)
        await tools.run(int(agent.using.window * TOOL_RESULT_BUDGET_THRESHOLD))
    elif answer is not None and answer is timeline[-1]:
        if answer.state == "complete":
            return await run.goes_on()
        run.add([user_message(GO_ON, **recorder.identity(), metadata={"origin": "engine"})])
    return True


def recall(tools: ToolRound, cut: CutRun) -> None:
    """Results that are known stay, calls that only look are made again, and of the others nobody knows what
    became of them."""
    unanswered = {call.id for call in tools.recorder.conversation.open_calls}
    tools.to_answer = [call for call in tools.calls if call.request.id in unanswered]
    for call in tools.calls:
        known = cut.results.get(call.index)
        if call.index in cut.begun or known is not None:
            tools.started.add(call.call_id)
        if known is not None:
            tools.results[call.index] = known
            tools.over.add(call.call_id)
        elif call.tool is not None and tool_class(call.tool) != "inspect":
            tools.results[call.index] = UNKNOWN_OUTCOME
            if call.call_id not in tools.started:
                tools.report_start(call)
            tools.report_end(call, UNKNOWN_OUTCOME, 0.0)
