"""A tool run in a process that has no more rights than anybody, also when the tests run as root."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

_SCRIPT = """
import os, sys
import anyio, msgspec
from robota.core.tool import FileVersions, ToolContext
from robota.tools.builtins import edit, read, write
from robota.tools.files.change import hash_content

async def main(name, arguments):
    tool = {"Read": read.read_tool, "Write": write.write_tool, "Edit": edit.edit_tool}[name]()
    path = arguments["file_path"]
    files = FileVersions()
    if os.access(path, os.R_OK) and os.path.isfile(path):
        files.remember(path, hash_content(open(path, "rb").read()))
    await tool.run({**arguments, "file_path": "/"}, ToolContext())  # imports while that is allowed
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    result = await tool.run(arguments, ToolContext(files=files))
    print(msgspec.json.encode(result.text).decode())

anyio.run(main, sys.argv[1], msgspec.json.decode(sys.argv[2]))
"""


def run_unprivileged(name: str, **arguments: Any) -> str:
    """What the model would be told. A file that exists counts as read."""
    command = [sys.executable, "-c", _SCRIPT, name, msgspec.json.encode(arguments).decode()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return msgspec.json.decode(done.stdout, type=str)


@contextmanager
def public_directory() -> Iterator[Path]:
    """A directory that everybody may reach and change; `tmp_path` is for its owner alone."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name).resolve()
        path.chmod(0o777)
        yield path
