"""Work with no more rights than anybody has, also when the tests run as root."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

_CAPABILITY_VERSION = 0x20080522
_PASS_OVER_MODES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_SCRIPT = """
import os, sys
import anyio, msgspec
from robota.core.tool import FileVersions, ToolContext
from robota.tools.builtins import files as tools
from robota.tools.files.change import hash_content

async def main(name, arguments):
    tool = {"Read": tools.read_tool, "Write": tools.write_tool, "Edit": tools.edit_tool}[name]()
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
def bound_by_modes() -> Iterator[None]:
    """Let the modes of files count in this thread, which root otherwise passes over."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0, os.strerror(ctypes.get_errno())
    fewer = (ctypes.c_uint32 * 6)(*before)
    fewer[0] &= ~_PASS_OVER_MODES
    assert libc.capset(header, fewer) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0, os.strerror(ctypes.get_errno())


@contextmanager
def public_directory() -> Iterator[Path]:
    """A directory that everybody may reach and change; `tmp_path` is for its owner alone."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name).resolve()
        path.chmod(0o777)
        yield path
