"""The work both sides do: one system message, one prompt, ten tools. Imports neither robota nor httpx2."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

SYSTEM = "You are a careful assistant. Say little."
PROMPT = "Work through the list and report."
MODEL = "bench-model"

stamps: list[float] = []
"""CPU seconds of this process at every call of `stamp`: how a growing history is timed from within."""


async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


async def nap(ms: int) -> str:
    """Wait for a while.

    Args:
        ms: Milliseconds.
    """
    await asyncio.sleep(ms / 1000)
    return "rested"


async def stamp(number: int) -> int:
    """Note the time.

    Args:
        number: Which round this is.
    """
    stamps.append(time.process_time())
    return number


def _reader(number: int) -> Callable[..., Awaitable[str]]:
    async def read(path: str, limit: int = 10) -> str:
        """Read the beginning of a file.

        Args:
            path: Where the file is.
            limit: How many lines.
        """
        return f"{path}: {limit} lines"

    read.__name__ = read.__qualname__ = f"read_{number}"
    return read


FUNCTIONS: dict[str, Callable[..., Awaitable[object]]] = {
    "add": add,
    "nap": nap,
    "stamp": stamp,
    **{f"read_{number}": _reader(number) for number in range(7)},
}


def _describe(name: str, says: str, fields: dict[str, object], required: list[str]) -> dict[str, object]:
    parameters = {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": parameters},
    }


def _whole(says: str) -> dict[str, object]:
    return {"type": "integer", "description": says}


TOOLS_ON_THE_WIRE = [
    _describe(
        "add",
        "Add two numbers.",
        {"a": _whole("The first number."), "b": _whole("The second number.")},
        ["a", "b"],
    ),
    _describe("nap", "Wait for a while.", {"ms": _whole("Milliseconds.")}, ["ms"]),
    _describe("stamp", "Note the time.", {"number": _whole("Which round this is.")}, ["number"]),
    *(
        _describe(
            f"read_{number}",
            "Read the beginning of a file.",
            {
                "path": {"type": "string", "description": "Where the file is."},
                "limit": {**_whole("How many lines."), "default": 10},
            },
            ["path"],
        )
        for number in range(7)
    ),
]
"""What robota derives from the functions above; `run.py` checks that both sides send the same."""
