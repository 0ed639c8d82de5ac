"""Thousands of turns in one process, well and badly ended, with a look at what they leave behind.

    python bench/soak.py [--turns 10000]

Tools, failures, cuts, aborts, early leavers and silent models take turns over the scriptable model server.
Now and then everything is closed; memory, objects, descriptors, tasks and threads must be what they were
after the first looks. Exits with 1 when something grew, with 2 when a turn did not end as it should.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

from robota import Robota, RunLimits, RunResult, tool
from robota.core import TextDelta, ToolCall, ToolStarted
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.testing import Cut, HttpError, Malformed, ModelServer, ReceivedRequest, Stall
from robota.testing.model_script import ModelReply

LOOKS = 8
WARM_LOOKS = 2
"""Looks before the one that counts: caches fill, allocators settle."""
LONGEST_SHIFT = 100
"""Turns after which everything is closed; the server remembers its requests until then."""
SPARE_OBJECTS = 300
SPARE_KIB = 3_000

# --- what the model does: the prompt names a kind of turn --------------------------------------------------

ANSWERS: Mapping[str, ModelReply] = {
    "answer": ["All ", "is ", "well."],
    "refused": HttpError(401),
    "busy": HttpError(503),
    "cut": ["Half an ", Cut()],
    "cut at once": Cut(),
    "nonsense": ["Some text. ", Malformed()],
    "abort": ["I begin ", Stall()],
    "cancel": ["I begin ", Stall()],
    "leave": ["I begin ", Stall()],
    "silence": ["I begin ", Stall()],
}
TOOLS: Mapping[str, list[ToolCall]] = {
    "tools": [ToolCall("call_1", "double", '{"number":1}'), ToolCall("call_2", "double", '{"number":2}')],
    "thread": [ToolCall("call_1", "double_slowly", '{"number":1}')],
    "failing tool": [ToolCall("call_1", "fail", "{}"), ToolCall("call_2", "double", '{"number":"two"}')],
    "unknown tool": [ToolCall("call_1", "missing", "{}")],
    "abort in tool": [ToolCall("call_1", "wait", "{}"), ToolCall("call_2", "double", '{"number":2}')],
}


def play(request: ReceivedRequest) -> ModelReply:
    """The reply to a request: calls until the tools have answered, then what its kind says."""
    messages = request.json["messages"]
    kind = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    if kind in TOOLS and messages[-1]["role"] != "tool":
        return TOOLS[kind]
    return ANSWERS.get(kind, ANSWERS["answer"])


@tool
async def double(number: int) -> int:
    """Double a number."""
    return number * 2


@tool
def double_slowly(number: int) -> int:
    """Double a number in a thread."""
    return number * 2


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("this tool always fails")


@tool
async def wait() -> str:
    """Wait until somebody cancels."""
    await asyncio.Event().wait()
    return "never"


# --- what the user does ------------------------------------------------------------------------------------


class TurnWentWrong(Exception):
    """A turn ended in another way than its kind should."""


async def succeed(agent: Robota, kind: str) -> None:
    check(await agent.run(kind), kind, "success")


async def see_failure(agent: Robota, kind: str) -> None:
    check(await agent.run(kind), kind, "error")


async def abort_at_text(agent: Robota, kind: str) -> None:
    unsubscribe = agent.events.on(TextDelta, lambda event: agent.abort())
    check(await agent.run(kind), kind, "interrupted")
    unsubscribe()


async def abort_at_tool(agent: Robota, kind: str) -> None:
    unsubscribe = agent.events.on(ToolStarted, lambda event: agent.abort())
    check(await agent.run(kind), kind, "interrupted")
    unsubscribe()


async def cancel_from_outside(agent: Robota, kind: str) -> None:
    started = asyncio.Event()
    unsubscribe = agent.events.on(TextDelta, lambda event: started.set())
    task = asyncio.create_task(agent.run(kind))
    await started.wait()
    task.cancel()
    await asyncio.wait((task,))
    unsubscribe()
    if not task.cancelled():
        raise TurnWentWrong(f"{kind}: the run outlived its cancellation")


async def leave_early(agent: Robota, kind: str) -> None:
    stream = agent.stream(kind)
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()
    if agent.is_running:
        raise TurnWentWrong(f"{kind}: the run goes on without its reader")


def check(result: RunResult, kind: str, wanted: str) -> None:
    ended = "interrupted" if result.interrupted else "error" if result.error else "success"
    if ended != wanted:
        raise TurnWentWrong(f"{kind}: ended with {ended} instead of {wanted} ({result.error})")


KINDS: Mapping[str, Callable[[Robota, str], Awaitable[None]]] = {
    **dict.fromkeys(("answer", "tools", "thread", "failing tool", "unknown tool"), succeed),
    **dict.fromkeys(("refused", "busy", "cut", "cut at once", "nonsense", "silence"), see_failure),
    "abort": abort_at_text,
    "abort in tool": abort_at_tool,
    "cancel": cancel_from_outside,
    "leave": leave_early,
}


class Crew:
    """One provider for the whole soak; a new agent for every other turn, one that stays for the rest."""

    def __init__(self, provider: OpenAICompatibleProvider) -> None:
        self.provider = provider
        self.resident = self.new_agent()
        self.turns = 0

    def new_agent(self, idle_timeout: float | None = None) -> Robota:
        return Robota(
            self.provider,
            model="any",
            tools=[double, double_slowly, fail, wait],
            system_message="Be brief.",
            context_window=1_000_000,
            limits=RunLimits(idle_timeout=idle_timeout),
        )

    async def work(self, turns: int) -> None:
        kinds = list(KINDS)
        for _ in range(turns):
            kind = kinds[self.turns % len(kinds)]
            self.turns += 1
            if kind == "silence":
                agent = self.new_agent(0.01)
            else:
                agent = self.resident if self.turns % 2 else self.new_agent()
            await KINDS[kind](agent, kind)
            if len(self.resident.messages) > 100:
                self.resident.clear()
        self.resident.clear()


# --- what they leave behind --------------------------------------------------------------------------------


class Footprint(NamedTuple):
    turns: int
    kib: int
    objects: int
    descriptors: int
    tasks: int
    threads: int

    @classmethod
    def take(cls, turns: int) -> Footprint:
        for _ in range(3):
            gc.collect()
        trim_heap()
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return cls(
            turns,
            pages * resource.getpagesize() // 1024,
            len(gc.get_objects()),
            len(os.listdir("/proc/self/fd")),
            len(asyncio.all_tasks()),
            threading.active_count(),
        )

    def grown_since(self, first: Footprint) -> list[str]:
        """What is more than it was, beyond the noise of allocators and caches."""
        spare = Footprint(0, SPARE_KIB, SPARE_OBJECTS, 0, 0, 0)
        return [
            f"{name}: {before} -> {now}"
            for name, before, now, extra in zip(self._fields, first, self, spare, strict=True)
            if name != "turns" and now > before + extra
        ]


def trim_heap() -> None:
    """Let the C library give back what it keeps, where it can; else its free lists look like a leak."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def soak(turns: int) -> AsyncIterator[Footprint]:
    """A footprint now and then, with everything closed that can be closed."""
    port, crew = 0, None
    for look in range(LOOKS):
        left = turns // LOOKS + (turns % LOOKS > look)
        while left:
            shift = min(left, LONGEST_SHIFT)
            left -= shift
            async with ModelServer(play, repeat=True, port=port) as server:
                port = server.port
                crew = crew or Crew(OpenAICompatibleProvider("none", f"{server.url}/v1", "any"))
                await crew.work(shift)
                await crew.provider.aclose()
            del server
        await asyncio.sleep(0)  # transports that were closed just now are let go in the next turn of the loop
        if crew is not None:
            yield Footprint.take(crew.turns)


async def main(turns: int) -> int:
    started = time.monotonic()
    prints: list[Footprint] = []
    print("".join(f"{name:>12}" for name in Footprint._fields))
    try:
        async for footprint in soak(turns):
            prints.append(footprint)
            print("".join(f"{value:>12}" for value in footprint), flush=True)
    except TurnWentWrong as problem:
        print(f"Did not work: {problem}", file=sys.stderr)
        return 2
    grown = prints[-1].grown_since(prints[WARM_LOOKS - 1])
    print(
        f"{time.monotonic() - started:.0f} s; " + ("grown: " + ", ".join(grown) if grown else "nothing grew")
    )
    return 1 if grown else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=10_000)
    sys.exit(asyncio.run(main(parser.parse_args().turns)))
