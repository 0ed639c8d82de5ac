"""The ready-made approval prompt, on a real terminal."""

from __future__ import annotations

import os
import pty
import select
import sys
from pathlib import Path

import pytest

from robota.core.questions import PermissionQuestion
from robota.sdk import describe_approval

PROGRAM = """
import asyncio
from robota import InteractiveSession
from robota.sdk import prompt_for_approval
from robota.testing import ScriptedProvider, call

async def main():
    command = "touch made; echo \\x1b[31mred"
    provider = ScriptedProvider([call("Bash", command=command)], "done")
    async with InteractiveSession(provider=provider, permission_handler=prompt_for_approval) as session:
        await session.submit("go")
    print("THE END", flush=True)

asyncio.run(main())
"""


def run(cwd: Path, answer: str) -> str:
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(cwd)
        os.environ["HOME"] = str(cwd)
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM])
    seen = b""
    try:
        while b"THE END" not in seen:
            if not select.select([terminal], [], [], 60)[0]:
                break
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            seen += data
            if b"Which? " in seen and answer:
                os.write(terminal, f"{answer}\n".encode())
                answer = ""
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return seen.decode()


@pytest.mark.parametrize(("answer", "made"), [("1", True), ("2", False), ("y", False), ("nonsense", False)])
def test_a_call_runs_when_the_user_says_so(tmp_path: Path, answer: str, made: bool) -> None:
    shown = run(tmp_path, answer)

    assert "THE END" in shown
    assert "[Permission Required] Tool: Bash" in shown
    assert "\\x1b[31mred" in shown  # written out, not sent to the terminal
    assert f"in {tmp_path}" in shown
    assert "Deny" in shown
    assert (tmp_path / "made").exists() is made


def test_everything_that_matters_is_shown() -> None:
    question = PermissionQuestion(
        tool_name="Bash",
        tool_input={"command": "cd /tmp && rm -rf x"},
        cwd="/work",
        reason="No rule allows rm.",
        part="rm -rf x",
        agent_id="reviewer-1",
        diff="-a\n+b",
    )

    text = "\n".join(describe_approval(question))

    for words in (
        "Tool: Bash",
        "cd /tmp && rm -rf x",
        "in /work",
        "asked about: rm -rf x",
        "No rule allows rm.",
    ):
        assert words in text
    assert "reviewer-1" in text
    assert "    | +b" in text
    assert "(no arguments)" in "\n".join(
        describe_approval(PermissionQuestion(tool_name="T", tool_input={}, cwd="/"))
    )
