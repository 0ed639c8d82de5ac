"""First words that are no prompt, the module whose `command` answers to each, and what it is for.

A module is imported when its word is said.
"""

from __future__ import annotations

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "acp": ("robota.cli.acp", "Be the agent of an editor that speaks the Agent Client Protocol."),
    "auth": ("robota.cli.auth", "The keys of services."),
    "completions": ("robota.cli.completions", "What bash, zsh and fish need to complete the command line."),
    "config": ("robota.cli.config", "Settings, where they come from, and changes to them."),
    "doctor": ("robota.cli.doctor", "What works here, what does not, and what mends it."),
    "mcp": ("robota.cli.mcp", "Servers of tools, and robota as one of them."),
    "model": ("robota.cli.model", "Models here and at services."),
    "permissions": ("robota.cli.permissions", "What the rules say about a call, and why."),
    "plugin": ("robota.cli.plugin", "Plugins and the marketplaces they come from."),
    "provider": ("robota.cli.provider", "Who can answer, and whether they do."),
    "replay": ("robota.cli.replay", "Run a session again, without a network."),
    "serve": ("robota.cli.serve", "Sessions over HTTP and WebSocket, and a page for the browser."),
    "sessions": ("robota.cli.sessions", "List, show, search, export, import and delete sessions."),
    "setup": ("robota.cli.setup", "Choose who answers."),
    "testing": ("robota.cli.testing", "A scripted model to test against."),
    "tour": ("robota.cli.tour", "Five minutes with a scripted model, real tools and no key."),
}
