"""Stored sessions damaged at random and resumed: a record that cannot be read costs itself, and is named.

    python fuzz/flips.py --cases 2000 --seed 1

Each case takes a session with streamed answers, parallel calls and large values, changes bytes of its
journal, takes lines out, removes or changes payload files, with a snapshot beside it or without, and resumes
it. What can still be read must be there, no call may have another call's result, and the session must go on.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

from killed_session import count, find_unanswered, number_of

from robota import Session, SessionOptions
from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from robota.core.provider import ChatRequest, Chunk, TextChunk, ToolInputChunk
from robota.sessions import JournalOptions, PermissionRules, SessionStore
from robota.sessions.files import REAL_FILES
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.start import restore

OPTIONS = SessionOptions(
    permissions=PermissionRules(allow=("count",)),
    context_window=10**9,
    journal=JournalOptions(durable=False),
)
ID = "flipped"
LARGE = 40_000


class Writer:
    """A model whose answers, calls and arguments are of all sizes; some are streamed piece by piece."""

    name = "writer"

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.next = 0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        rng = self.rng
        for _ in range(rng.choice((0, 1, 5))):
            yield TextChunk("some words " * rng.choice((1, 1, 1, LARGE // 20)))
        if not isinstance(request.messages[-1], UserMessage) and rng.random() < 0.5:
            yield TextChunk("That is all.")
            return
        reused = rng.random() < 0.5  # some services number the calls of each answer from nought
        for at in range(rng.choice((1, 1, 2, 3))):
            size = rng.choice((0, 100, LARGE))
            arguments = f'{{"number":{self.next},"size":{size}{" " * rng.choice((0, 0, LARGE))}}}'
            call = ToolCall(f"call_{at if reused else self.next}", "count", arguments)
            if rng.random() < 0.5:
                yield ToolInputChunk(at, call.id, call.name, arguments[:5])
                yield ToolInputChunk(at, call.id, call.name, arguments[5:])
            yield call
            self.next += 1


class Original(NamedTuple):
    """A session as it was written."""

    directory: Path
    messages: list[Message]
    lines: list[bytes]


class Counts(NamedTuple):
    cases: int
    damages: int
    lost: int
    """Messages that are no more what they were."""
    mended: int
    """Cases in which a snapshot could help."""
    failures: list[str]


async def write_session(directory: Path, rng: random.Random) -> Original:
    store = SessionStore(str(directory))
    provider = Writer(rng)
    session = Session(
        provider=provider,
        model="any",
        system_message="Be brief.",
        tools=[count],
        store=store,
        session_id=ID,
        options=OPTIONS,
    )
    for _ in range(rng.choice((1, 3))):
        await session.run("Go on. " * rng.choice((1, 1, LARGE // 5)))
    await session.shutdown()
    if rng.random() < 0.5:  # a second process
        session = Session(
            provider=provider, tools=[count], store=store, start=restore(store, ID), options=OPTIONS
        )
        await session.run("And on.")
        await session.shutdown()
    lines = (directory / f"{ID}.jsonl").read_bytes().splitlines(keepends=True)
    return Original(directory, restore(store, ID).messages, lines)


def damage(directory: Path, rng: random.Random) -> int:
    """Change some of the files; how much was done."""
    journal = directory / f"{ID}.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    payloads = sorted((directory / f"{ID}.payloads").glob("*.json"))
    damages = rng.choice((1, 1, 2, 5))
    for _ in range(damages):
        match rng.choice(("flip", "flip", "remove", "block", "payload", "payload", "end")):
            case "payload" if payloads:
                path = rng.choice(payloads)
                if rng.random() < 0.5:
                    path.unlink(missing_ok=True)
                elif path.exists():
                    path.write_bytes(flip(path.read_bytes(), rng))
            case "remove":
                lines[rng.randrange(len(lines))] = b""
            case "block":
                start = rng.randrange(len(lines))
                for at in range(start, min(len(lines), start + 4)):
                    lines[at] = bytes(len(lines[at]) - 1) + b"\n" if len(lines[at]) > 1 else b""
            case "end":
                del lines[rng.randrange(len(lines) // 2, len(lines)) + 1 :]
            case _:
                at = rng.randrange(len(lines))
                lines[at] = flip(lines[at], rng)
    journal.write_bytes(b"".join(lines))
    snapshot = directory / f"{ID}.json"
    match rng.choice(("keep", "remove", "flip")):
        case "remove":
            snapshot.unlink()
        case "flip":
            snapshot.write_bytes(flip(snapshot.read_bytes(), rng))
    return damages


def flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]


def readable(directory: Path, original: Original) -> tuple[set[str], set[int]]:
    """Ids of the messages, and numbers of the results, whose records are whole."""
    left = set((directory / f"{ID}.jsonl").read_bytes().splitlines(keepends=True))
    payloads = PayloadStore(str(directory), ID, files=REAL_FILES)
    ids: set[str] = set()
    numbers: set[int] = set()
    for line in original.lines:
        if line not in left:
            continue
        try:
            fields = payloads.resolve(decode(line))
        except Exception:  # noqa: BLE001, S112 - whatever is wrong with it, it cannot be read
            continue
        if fields["event"] == "message":
            ids.add(fields["message"]["id"])
        elif fields["event"] == "tool_result":
            numbers.add(number_of(fields["content"]))
    return ids, numbers


def examine(messages: list[Message], original: Original, ids: set[str], numbers: set[int]) -> list[str]:
    """What must not be: readable messages that are missing or others, results with the wrong call."""
    found = {message.id: message for message in messages}
    failures = [f"message {id} is missing" for id in ids if id not in found]
    written = {message.id: message.content for message in original.messages}
    failures += [
        f"message {id} has other words" for id in ids & found.keys() if found[id].content != written[id]
    ]
    calls: dict[str, ToolCall] = {}
    answered: set[int] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id)
            if call is None:
                failures.append(f"a result without a call: {message.tool_call_id}")
            elif message.content.startswith("<"):
                number = number_of(message.content)
                answered.add(number)
                wanted = decode(call.arguments).get("number", number)
                if wanted != number:
                    failures.append(f"call {wanted} is answered with the result of {number}")
    failures += [f"result {number} is missing" for number in sorted(numbers - answered)]
    return failures + find_unanswered(messages)


async def try_case(
    directory: Path, original: Original, rng: random.Random
) -> tuple[int, int, bool, list[str]]:
    damages = damage(directory, rng)
    ids, numbers = readable(directory, original)
    store = SessionStore(str(directory))
    start = restore(store, ID)
    messages = start.messages
    failures = examine(messages, original, ids, numbers)
    kept = {message.id for message in messages}
    lost = sum(message.id not in kept for message in original.messages)
    if messages != original.messages and not start.problems and not is_beginning(messages, original.messages):
        failures.append("something is missing, and nothing was said about it")
    session = Session(provider=Writer(rng), tools=[count], store=store, start=start, options=OPTIONS)
    await session.run("Go on.")
    after = session.messages
    await session.shutdown()
    if restore(store, ID).messages != after:
        failures.append("resumed once more it is another conversation")
    return damages, lost, start.mended, failures


def is_beginning(messages: list[Message], whole: list[Message]) -> bool:
    """Records cut off cleanly at the end of a journal cannot be missed by anybody without a snapshot."""
    pairs = zip(messages, whole, strict=False)
    return all(
        ours.id == its.id or ours.metadata.get("recovered") or "-result-" in ours.id for ours, its in pairs
    )


def run_flips(directory: Path, *, cases: int, seed: int) -> Counts:
    rng = random.Random(seed)
    damages = lost = mended = 0
    failures: list[str] = []
    original: Original | None = None
    for case in range(cases):
        if original is None or case % 50 == 0:
            home = directory / f"original-{case}"
            original = asyncio.run(write_session(home, rng))
        place = directory / "case"
        shutil.copytree(original.directory, place)
        done, missing, helped, wrong = asyncio.run(try_case(place, original, rng))
        shutil.rmtree(place)
        damages, lost, mended = damages + done, lost + missing, mended + helped
        failures += [f"case {case}: {each}" for each in wrong]
    return Counts(cases, damages, lost, mended, failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        counts = run_flips(Path(directory), cases=options.cases, seed=options.seed)
    for failure in counts.failures:
        print(failure)
    print(
        f"{counts.cases} sessions with {counts.damages} damages (seed {options.seed}): {counts.lost} "
        f"messages lost, {counts.mended} sessions mended by their snapshots, {len(counts.failures)} failures"
    )
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
