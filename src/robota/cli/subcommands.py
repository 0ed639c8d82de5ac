"""First words that are no prompt, the module whose `command` answers to each, and what it is for.

A module is imported when its word is said.
"""

from __future__ import annotations

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "acp": ("robota.cli.acp", "Serve an editor that speaks the Agent Client Protocol."),
    "auth": ("robota.cli.auth", "Manage API keys."),
    "completions": ("robota.cli.completions", "Completion scripts for bash, zsh and fish."),
    "config": ("robota.cli.config", "Show settings and where they come from, and change them."),
    "doctor": ("robota.cli.doctor", "Check what works here, and how to fix what does not."),
    "mcp": ("robota.cli.mcp", "Manage MCP servers, or run robota as one."),
    "model": ("robota.cli.model", "Models on this machine and at services."),
    "permissions": ("robota.cli.permissions", "What the rules say about a call, and why."),
    "plugin": ("robota.cli.plugin", "Plugins and the marketplaces they come from."),
    "provider": ("robota.cli.provider", "List, check and choose providers."),
    "replay": ("robota.cli.replay", "Run a recorded session again, without a network."),
    "serve": ("robota.cli.serve", "Serve sessions over HTTP and WebSocket, with a page for the browser."),
    "sessions": ("robota.cli.sessions", "List, show, search, export, import and delete sessions."),
    "setup": ("robota.cli.setup", "Choose which service or model to use."),
    "testing": ("robota.cli.testing", "Serve a scripted model to test against."),
    "tour": ("robota.cli.tour", "Try robota in five minutes: real tools, a scripted model, no key."),
}
