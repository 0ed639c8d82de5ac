"""Bundle plugins and marketplaces, from within a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


async def reload_plugins(host: InteractiveSession, args: str) -> CommandResult:
    """Read the files again, whether or not somebody saw them change."""
    await host.reload()
    project = host.project
    plugins = project.bundles.plugins
    counts = {
        "plugin": len(plugins),
        "skill": len(project.bundles.skills),
        "agent": len(project.bundles.agents),
        "hook": sum(len(group.hooks) for groups in project.bundles.hooks.values() for group in groups),
        "server": len(project.bundles.servers),
        "tool": len(project.bundles.tools),
    }
    told = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    ids = {plugin.id for plugin in plugins}
    wrong = [str(each) for each in project.bundles.problems]
    lines = [f"Reloaded: {told}.", *(f"  {id}" for id in sorted(ids)), *(f"  {each}" for each in wrong)]
    return CommandResult("\n".join(lines))
