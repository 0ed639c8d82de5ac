"""`robota mcp …`: servers of tools, and robota as one of them. Each subcommand is loaded when it is named."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "add": ("robota.cli.mcp_servers", "add"),
    "get": ("robota.cli.mcp_servers", "get"),
    "list": ("robota.cli.mcp_servers", "list_servers"),
    "login": ("robota.cli.mcp_servers", "login"),
    "remove": ("robota.cli.mcp_servers", "remove"),
    "serve": ("robota.cli.mcp_serve", "command"),
}
"""The module of each subcommand, and what it is called there."""


class LazyGroup(click.Group):
    """Knows its subcommands by name, and imports one to run or describe it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        found: click.Command = getattr(import_module(module), name)
        return found


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
def command() -> None:
    """Servers of the Model Context Protocol, and robota as one of them."""
