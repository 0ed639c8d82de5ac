"""How redaction compares with copying the same value through `json`: ordinary and hostile input.

    python bench/redaction.py [megabytes]

The last column is the ratio; L-07 allows 10 for ordinary records. Hostile input must stay linear: run it with
1 and with 10 and compare the ratios.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import timeit
from functools import partial
from typing import Any

import msgspec

from robota.sessions.redaction import Redactor, StreamRedactor, redact

PROSE = (
    "I looked at `parse_tokens` in src/robota/core/context.py: the token estimator uses the key of a cache. "
    "The fix is to pass maxTokens along. Then I ran `pytest -q`, 12 passed.\n\n```python\n"
    "def add(a: int, b: int) -> int:\n    return a + b\n```\n"
)


def message(number: int) -> dict[str, Any]:
    return {
        "event": "message",
        "id": f"msg_{number:024d}",
        "content": PROSE,
        "usage": {"inputTokens": 1200, "outputTokens": 33},
        "toolCalls": [{"id": "toolu_01", "name": "Bash", "arguments": {"command": "ls src", "timeout": 120}}],
    }


def ordinary(size: int) -> dict[str, Any]:
    nested = "x"
    for _ in range(12):
        nested = json.dumps({"a": nested, "b": nested[:50]})
    return {
        "messages": [message(number) for number in range(size // 700)],
        "small records": [{"a": f"text {number}", "b": number, "c": ["x"]} for number in range(size // 50)],
        "secret fields": [{"user": "jane", "password": f"pw-{number}"} for number in range(size // 40)],
        "JSON in JSON": [nested] * max(1, size // len(nested)),
        "one long text": PROSE * (size // len(PROSE)),
    }


def hostile(size: int) -> dict[str, str]:
    chance = random.Random(0)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cases = {text: text * (size // len(text)) for text in HALVES}
    cases["random base64"] = "".join(chance.choices(alphabet, k=size))
    cases["secrets only"] = "".join(f"password=x{chance.randrange(10**9)} " for _ in range(size // 20))
    return cases


HALVES = (
    *(
        "a",
        "=",
        '"',
        "\\",
        " ",
        "\n",
        "-",
        "password=",
        '"password":',
        '"password":"',
        "key: ",
        "sk-ant-",
        "ghp_",
    ),
    *(
        "Bearer ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJ",
        "://",
        "http://a:b@c ",
        "Cookie: a=b; ",
        "--password ",
    ),
    *(
        '"password":{',
        "[",
        'value="',
        "curl -u ",
        "token token_key secret ",
        "550e8400-e29b-41d4-a716-446655440000 ",
    ),
)


def compare(name: str, value: Any) -> None:
    start = time.perf_counter()
    json.loads(json.dumps(value))
    copied = time.perf_counter()
    redact(value)
    redacted = time.perf_counter()
    base, cost = copied - start, redacted - copied
    print(
        f"{name[:34]!r:38} copy {base * 1e3:8.1f} ms   redact {cost * 1e3:9.1f} ms   ratio {cost / base:7.1f}"
    )


def measure_records() -> None:
    redactor = Redactor()
    small = msgspec.json.encode(
        {"event": "run_end", "usage": {"inputTokens": 12, "key": "x"}, "text": "done" * 20}
    )
    large = msgspec.json.encode(message(1) | {"content": PROSE * 5})
    for record in (small, large):
        cost = min(timeit.repeat(lambda record=record: redactor.json(record), number=500, repeat=5)) / 500
        print(f"json() of a plain record of {len(record)} bytes: {cost * 1e6:.1f} µs")
    pieces = [PROSE[index : index + 4] for index in range(0, len(PROSE), 4)] * 50
    start = time.perf_counter()
    stream = StreamRedactor(redactor)
    for piece in pieces:
        stream.push(piece)
        stream.take()
    print(f"a stream piece of 4 characters: {(time.perf_counter() - start) / len(pieces) * 1e6:.2f} µs")


def measure_start() -> None:
    """What redaction costs a process that has not used it before."""
    code = f"""
import time, msgspec.json, robota.core.messages
start = time.perf_counter()
from robota.sessions.redaction import redact
loaded = time.perf_counter()
redact({PROSE!r})
print(loaded - start, time.perf_counter() - loaded)
"""
    with tempfile.TemporaryDirectory() as folder:  # modules are compiled by the first run
        settings = os.environ | {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        run = partial(
            subprocess.run, [sys.executable, "-c", code], env=settings, capture_output=True, check=True
        )
        figures = [tuple(map(float, run().stdout.split())) for _ in range(9)]
    loads, uses = zip(*figures, strict=True)
    print(f"to load it: {min(loads) * 1e3:.1f} ms, its first text: {min(uses) * 1e3:.1f} ms")


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 10) * 1e6)
    for cases in (ordinary(size), hostile(size)):
        for name, value in cases.items():
            compare(name, value)
        print()
    measure_records()
    measure_start()


if __name__ == "__main__":
    main()
