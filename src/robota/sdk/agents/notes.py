"""The notes that an agent keeps from one task to the next, if its definition says so (`memory:`).

They are files of a directory of its own, which it reads and writes with its tools, under the rules of the
session like everything else. The beginning of the index is part of its instructions.
"""

from __future__ import annotations

import os

from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.context.text_file import Unreadable, read_text
from robota.sdk.memory.files import INDEX, START_BYTES, START_LINES
from robota.sdk.places import Places

_ABOUT = """\
You keep notes from one task to the next, as files in {directory}. {index} there is the index: one line per
note, and longer ones in files of their own. Write down what will help you with later tasks, such as where
things are and what turned out to be wrong, and correct what no longer holds. Nothing secret belongs there."""


def find_directory(agent: AgentDefinition, places: Places) -> str:
    """Where the notes of an agent are; a file of the other program has them where that one looks."""
    name = agent.name.replace(os.sep, "-")
    folder = "agent-memory-local" if agent.memory == "local" else "agent-memory"
    if agent.memory == "user":
        return places.claude(folder, name) if agent.is_claude else places.user(folder, name)
    return places.project(".claude" if agent.is_claude else ".robota", folder, name)


def read_notes(agent: AgentDefinition, places: Places) -> str:
    """What an agent is told of its notes; nothing if it keeps none."""
    if not agent.memory:
        return ""
    directory = find_directory(agent, places)
    about = _ABOUT.format(directory=directory, index=INDEX)
    try:
        lines = read_text(os.path.join(directory, INDEX), START_BYTES).text.splitlines()[:START_LINES]
    except FileNotFoundError:
        return f"{about} There are none yet."
    except Unreadable as error:
        return f"{about} {INDEX} {error}."
    return "\n".join([about, "The index so far:", "", *lines])
