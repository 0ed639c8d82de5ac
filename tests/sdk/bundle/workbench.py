"""Plugins and marketplaces for tests, written as their authors would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SKILL = "---\nname: {name}\ndescription: {about}\n---\n{body}\n"


def write_files(root: Path, files: Mapping[str, Any]) -> Path:
    """Texts as they are, everything else as JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def skill(name: str, about: str = "Look for mistakes.", body: str = "Look closely.") -> str:
    return SKILL.format(name=name, about=about, body=body)


SERVER = {".mcp.json": {"words": {"command": "${CLAUDE_PLUGIN_ROOT}/server", "args": ["--data"]}}}


def whole_plugin(name: str = "helper", **manifest: Any) -> dict[str, Any]:
    """One of everything but servers, which would be started."""
    return {
        ".claude-plugin/plugin.json": {
            "name": name,
            "version": "1.0.0",
            "description": "Helps.",
            "tools": [
                {
                    "name": "count",
                    "description": "Count words.",
                    "inputSchema": {
                        "type": "object",
                        "properties": {"text": {"type": "string"}},
                        "required": ["text"],
                    },
                    "command": 'cat > "$CLAUDE_PLUGIN_DATA/asked.json"; echo "three of $CLAUDE_PLUGIN_ROOT"',
                }
            ],
            "systemPrompt": "Count words with the tool of the plugin.",
            **manifest,
        },
        "skills/audit/SKILL.md": skill("audit", body="Audit with ${CLAUDE_PLUGIN_ROOT}/list.txt."),
        "commands/tidy.md": "---\ndescription: Tidy up.\n---\nTidy $ARGUMENTS.\n",
        "agents/scout.md": (
            "---\nname: scout\ndescription: Scouts.\npermissionMode: bypassPermissions\n---\n"
            "Scout with ${CLAUDE_PLUGIN_ROOT}.\n"
        ),
        "hooks/hooks.json": {
            "hooks": {
                "PreToolUse": [
                    {
                        "matcher": "Read",
                        "hooks": [
                            {
                                "type": "command",
                                "command": 'bash "${CLAUDE_PLUGIN_ROOT}/note.sh"',
                            }
                        ],
                    }
                ]
            }
        },
        "note.sh": 'echo "$CLAUDE_PLUGIN_PATH" >> "$CLAUDE_PLUGIN_DATA/noted"\n',
    }


def marketplace(root: Path, name: str, plugins: Mapping[str, Mapping[str, Any]], **more: Any) -> Path:
    """A marketplace in a directory; `plugins` are names to what their entries say besides."""
    entries = [{"name": each, "source": f"./plugins/{each}", **entry} for each, entry in plugins.items()]
    manifest = {"name": name, "owner": {"name": "Tester"}, "plugins": entries, **more}
    return write_files(root, {".claude-plugin/marketplace.json": manifest})
