"""The work of `robota -p` as counts: it may not creep back in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from robota.testing import ModelServer

PROGRAM = """
import gc, json, re._compiler, sys
compile, patterns, looks = re._compiler.compile, [], []
def count(source, flags=0):
    patterns.append(str(source))
    return compile(source, flags)
re._compiler.compile = count
gc.callbacks.append(lambda phase, facts: looks.append(gc.get_freeze_count()) if phase == "stop" else None)
from robota.__main__ import main
try:
    main()
finally:
    work = {"patterns": patterns, "looks": looks, "loaded": sorted(sys.modules)}
    sys.__stderr__.write("\\n" + json.dumps(work))
"""
HEAVY = {
    "acp", "click", "httpx2", "jsonschema_rs", "keyring", "markdown_it", "mcp", "opentelemetry",
    "prompt_toolkit", "psycopg", "pydantic", "rich", "sqlite3", "starlette", "uvicorn", "websockets", "yaml",
}  # fmt: skip


def test_one_answer_takes_little_work(tmp_path: Path) -> None:
    """It was 164 patterns and 101 looks for cycles."""
    with ModelServer("Hello.").in_thread() as server:
        arguments = ["-p", "Hello", "--base-url", server.url, "--model", "m"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ROBOTA_API_KEY": "k"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "Hello.\n"
    work = json.loads(done.stderr.rpartition("\n")[2])
    assert len(work["patterns"]) <= 75, work["patterns"]  # a path as long as this one costs a dozen
    assert len(work["looks"]) <= 10
    assert work["looks"][-1] > 10_000  # what was loaded by then was not looked at
    assert sum(name.startswith("robota") for name in work["loaded"]) <= 365
    assert not HEAVY & set(work["loaded"])
