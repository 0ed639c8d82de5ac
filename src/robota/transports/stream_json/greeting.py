"""The answer to `initialize`, from tables alone: nothing is loaded and nobody is asked for it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from robota.core.messages import JsonObject
from robota.sdk.commands.table import ROWS


def greet(agents: Mapping[str, JsonObject]) -> JsonObject:
    """What the process can do; `agents` are those that the host brought."""
    own = [{"name": name, "description": str(agent.get("description", ""))} for name, agent in agents.items()]
    return {
        "commands": [
            {"name": row.name, "description": row.description, "argumentHint": row.hint} for row in ROWS
        ],
        "agents": own,
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [],
        "account": {},
        "pid": os.getpid(),
        "hook_on_failure_supported": True,
    }
