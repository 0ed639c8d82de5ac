"""Opening long journals: `python bench/open_journal.py [--records N]`; prints peak memory and time.

Two journals of 200,000 records each. *stream* is what long sessions are made of: about 5,000 rounds whose
records are mostly runs of deltas with the provider's own events, 1 GB in all. *messages* has a message in
every record. Each is opened in a process of its own, whose peak memory (`ru_maxrss`) is what counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from zlib import crc32

import msgspec

GOAL_MB = 300
RECORDS = 200_000
ID = "0b0e5d5e-5c0e-4a63-9a51-7ad1ad6e9f3c"
STAMP = "2026-03-01T12:00:00.000Z"
WORDS = "the quick brown fox jumps over a lazy dog while writing tests for parsers "

OPEN = """
import resource, sys, time
from robota.sessions.start import restore_journal
from robota.sessions.journal.entries import SessionLogReader
start = time.perf_counter()
if sys.argv[2] == "restore":
    found = len(restore_journal(sys.argv[1]).messages)
else:
    found = sum(1 for entry in SessionLogReader(sys.argv[1]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak = peak / 1024 if sys.platform == "linux" else peak / 1024 / 1024
print(found, round(peak), round(time.perf_counter() - start, 1))
"""


def stream_records(count: int) -> Iterator[dict[str, object]]:
    """Rounds of one prompt: a request, forty runs of deltas, the answer with a call, its result."""
    yield {"event": "session_init", "systemPrompt": "You are terse.", "toolSchemas": []}
    yield {"event": "run_start", "run": 1, "executionId": "e", "conversationId": "c"}
    made, round_number, index = 2, 0, 0
    facts = {"created": 1_772_366_400, "model": "m", "system_fingerprint": "fp_44709d6fcb"}
    native = {"id": "chatcmpl-1", "object": "chat.completion.chunk", **facts}
    while made < count:
        round_number += 1
        frame = {"run": 1, "round": round_number}
        yield {"event": "provider_request", **frame, "provider": "p", "model": "m", "history": [index, "0"]}
        for piece in range(34):
            texts = [WORDS[at : at + 20] for at in range(piece, piece + 14)]
            events = [{**native, "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
            yield {"event": "stream", **frame, "first": piece * 14 + 1, "texts": texts, "native": events * 2}
        answer = {"role": "assistant", "content": WORDS * 8, **identity(index)}
        answer["toolCalls"] = [{"id": "call", "name": "add", "arguments": '{"a":1}'}]
        yield {"event": "message", **frame, "index": index, "reply": True, "message": answer}
        yield {"event": "tool_batch_started", **frame}
        yield {"event": "tool_start", **frame, "index": 0}
        yield {"event": "tool_result", **frame, "index": 0, "toolName": "add", "content": WORDS * 4}
        yield {"event": "message", **frame, "index": index + 1, "result": 0, "message": identity(index + 1)}
        made += 39
        index += 2


def message_records(count: int) -> Iterator[dict[str, object]]:
    yield {"event": "session_init", "systemPrompt": "You are terse.", "toolSchemas": []}
    for index in range(count):
        role = ("user", "assistant")[index % 2]
        message = {"role": role, "content": f"{index} {WORDS}", **identity(index)}
        yield {"event": "message", "run": 0, "round": 0, "index": index, "message": message}


def identity(number: int) -> dict[str, object]:
    return {"id": f"{number:08x}-5c0e-4a63-9a51-7ad1ad6e9f3c", "timestamp": "2026-03-01T12:00:00.000001Z"}


def write_journal(path: str, records: Iterator[dict[str, object]]) -> int:
    with open(path, "wb") as file:
        for seq, record in enumerate(records, 1):
            frame = {"v": 1, "seq": seq, "timestamp": STAMP, "sessionId": ID}
            body = msgspec.json.encode({**frame, **record})[1:]
            file.write(b'{"crc":"%08x",%s\n' % (crc32(body), body))
    return os.path.getsize(path)


def measure(path: str, how: str) -> tuple[int, int, float]:
    done = subprocess.run([sys.executable, "-c", OPEN, path, how], capture_output=True, text=True, check=True)
    found, peak, seconds = done.stdout.split()
    return int(found), int(peak), float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    count = parser.parse_args().records
    worst = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, records in (("stream", stream_records(count)), ("messages", message_records(count))):
            path = os.path.join(directory, f"{ID}.jsonl")
            start = time.perf_counter()
            size = write_journal(path, records)
            print(f"{name}: {count:,} records, {size / 1e6:,.0f} MB, in {time.perf_counter() - start:.0f} s")
            for how in ("restore", "log"):
                found, peak, seconds = measure(path, how)
                worst = max(worst, peak)
                what = "messages" if how == "restore" else "entries"
                print(f"  {how:8} {found:>9,} {what:9} {peak:>5} MB {seconds:>7.1f} s")
    print(f"worst {worst} MB, goal {GOAL_MB} MB")
    sys.exit(worst > GOAL_MB)


if __name__ == "__main__":
    main()
