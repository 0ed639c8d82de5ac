"""How the session stands, and what is wrong with what it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from robota._version import __version__
from robota.core.plain_text import strip_controls
from robota.sdk.commands.effects import CommandResult

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.tools.sandbox.sandbox import Sandbox


async def status(host: InteractiveSession, args: str) -> CommandResult:
    found = len(host.problems)
    lines = [f"{title}: {text}" for title, text in await _facts(host)]
    lines.append(f"Problems: {found} (see /doctor)" if found else "Problems: none")
    return CommandResult("\n".join(lines))


async def doctor(host: InteractiveSession, args: str) -> CommandResult:
    lines = [f"{title}: {text}" for title, text in await _facts(host)]
    lines += _section("Settings", _origins(host))
    problems = [str(problem) for problem in host.problems]
    lines += _section("Problems", problems) or ["Problems: none"]
    return CommandResult("\n".join(map(strip_controls, lines)))


async def _facts(host: InteractiveSession) -> list[tuple[str, str]]:
    session, state = host.session, host.context_state
    named = f" ({host.name})" if host.name else ""
    used = f"{state.used_tokens:,} / {state.max_tokens:,} tokens ({state.used_percentage:.0f}%)"
    saved = session.trouble or (session.log.path or "nowhere: there is no store")
    return [
        ("robota", __version__),
        ("Session", f"{session.session_id}{named}"),
        ("Saved", saved),
        ("Directory", f"{session.cwd} ({'trusted' if host.project.trusted else 'not trusted'})"),
        ("Provider", f"{session.agent.provider.name}, model {session.model or 'of its choice'}"),
        ("Permission mode", session.permission_mode),
        ("Context", used),
        ("Sandbox", await _sandbox(host)),
        *_plugins(host),
    ]


def _plugins(host: InteractiveSession) -> Iterator[tuple[str, str]]:
    if host.session.agent.plugins:
        from robota.sdk.agent_plugins import describe_plugins  # noqa: PLC0415 - few have some

        yield "Plugins of the agent", describe_plugins(host.session.agent)


async def _sandbox(host: InteractiveSession) -> str:
    sandbox: Sandbox | None = getattr(host.session.agent.toolset.tools.get("Bash"), "sandbox", None)
    if sandbox is None:
        return "off"
    backend, reason = await sandbox.find_backend()
    if backend is None:
        return f"{sandbox.mode}, and none works here: {reason}"
    return f"{sandbox.mode}, {backend}, network {sandbox.network}"


def _origins(host: InteractiveSession) -> Iterator[str]:
    """Each key that somebody set, and where."""
    shown = host.project.places.shown
    for key, sources in sorted(host.project.settings.origins.items()):
        yield f"{key}: {', '.join(map(shown, sources))}"


def _section(title: str, lines: list[str] | Iterator[str]) -> list[str]:
    listed = [f"  {line}" for line in lines]
    return [f"{title}:", *listed] if listed else []
