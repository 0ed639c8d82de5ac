"""A real model makes a tool call by both ways: in this process, and behind llama.cpp's own server.

    python fuzz/real_model.py [MODEL …]      names of `robota model list`, or paths of GGUF files

Models that are missing are pulled first. The command itself is run, as a user would; what counts is that a
tool was called and the run came to an end, not that a model of this size is right.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.llama_server import llama_server

from robota.providers.local.store import ModelStore

PROMPTS = ("Which python files are there?", "What is in notes.txt?", "Where is the word turtle used?")
TOOL_MARK = "● "


def find(name: str) -> Path:
    if name.endswith(".gguf"):
        return Path(name)
    store = ModelStore()
    state = next((model.state for model in store.list() if model.name == name), "absent")
    return (
        store.pull(name, lambda done, total: None)
        if state in ("absent", "partial")
        else Path(store.require(name))
    )


def ask(prompt: str, directory: Path, *arguments: str) -> tuple[bool, bool, float]:
    """Whether a tool was called, whether the run came to its end, and the seconds it took."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "robota", "-p", prompt, "--no-save", "--max-turns", "6", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return TOOL_MARK in done.stderr, done.returncode == 0, time.monotonic() - started


def main(names: list[str]) -> int:
    failures = 0
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        (directory / "main.py").write_text("print('turtle')\n")
        (directory / "notes.txt").write_text("Buy lettuce for the turtle.\n")
        for name in names:
            model = find(name)
            with llama_server(model) as address:
                ways = {
                    "in this process": ("--model", f"local:{model}"),
                    "behind a server": ("--base-url", f"{address}/v1"),
                }
                for way, arguments in ways.items():
                    results = [ask(prompt, directory, *arguments) for prompt in PROMPTS]
                    called, ended = (sum(result[at] for result in results) for at in (0, 1))
                    seconds = sum(result[2] for result in results)
                    told = f"{called} of {len(PROMPTS)} called a tool, {ended} ended, {seconds:.0f} s"
                    print(f"{name}, {way}: {told}")
                    failures += not called
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["smollm2-135m"]))
