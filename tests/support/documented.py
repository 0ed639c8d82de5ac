"""The Python programs of the documentation.

    python -m tests.support.documented <directory>

writes each into a file of its own, for `make static` to check their types.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

VARIATION = """
from robota import Robota, tool
from robota.testing import ScriptedProvider
from robota.tools import bash_tool, read_tool


@tool
def add(a: int, b: int) -> int:
    return a + b


@tool(name="look_up")
async def search(text: str, limit: int = 10) -> list[str]:
    return [text][:limit]


class Shop:
    @tool
    def stock(self, item: str) -> int:
        return len(item)


agent = Robota(ScriptedProvider())
TOOLS = [add, search, Shop().stock, read_tool(), bash_tool()]
more = [*TOOLS, agent.as_tool("research", "Finds things.")]
Robota(ScriptedProvider(), tools=TOOLS)
Robota(ScriptedProvider(), tools=more)
total: int = add(1, 2)
items: int = Shop().stock("bolts")
"""
"""What people make of the programs: tools in lists that have names, methods, calls of a tool's function."""


class Program(NamedTuple):
    page: Path
    line: int
    text: str


def read_programs() -> list[Program]:
    return [
        Program(page, text[: found.start()].count("\n") + 1, found.group(1))
        for page in PAGES
        for text in [page.read_text()]
        for found in _BLOCK.finditer(text)
    ]


def write_programs(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.py"):
        old.unlink()
    (directory / "variation.py").write_text(VARIATION)
    for program in read_programs():
        name = f"{program.page.stem}_{program.line}".lower().replace("-", "_")
        (directory / f"{name}.py").write_text(program.text)


if __name__ == "__main__":
    write_programs(Path(sys.argv[1]))
