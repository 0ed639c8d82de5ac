"""What plugins cost where there are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.bench.test_counted_work import CallCount
from tests.plugins.office import ADDING, open_session

from robota.core import plugin
from robota.core.plugin import PluginChain

pytestmark = pytest.mark.anyio
PROGRAM = """
import asyncio, sys
from robota import InteractiveSession
from robota.testing import ScriptedProvider

async def main():
    async with InteractiveSession(provider=ScriptedProvider("Hi."), cwd=".") as session:
        await session.submit("go")

asyncio.run(main())
print([name for name in sys.modules if name.startswith(("robota.plugins", "opentelemetry", "psycopg"))])
"""


async def test_without_plugins_no_hook_is_called_and_nothing_listens_for_them(tmp_path: Path) -> None:
    count = CallCount()
    async with open_session(tmp_path, ADDING, "Three.", ADDING, "Three.") as session:
        await session.submit("Add.")
        with count.watching():
            await session.submit("Add.")
    assert count.by_code[plugin._guarded.__code__] == 0
    assert count.by_code[PluginChain.note.__code__] == 0
    ours = sum(
        number for code, number in count.by_code.items() if code.co_filename.endswith("core/plugin.py")
    )
    assert 0 < ours <= 25  # looks whether there is anybody to tell


def test_without_plugins_nothing_of_theirs_is_loaded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
