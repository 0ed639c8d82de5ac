"""The sandbox of a session: its directories and its network follow the rules in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from robota.core.provider import NativeWebTools
from robota.sdk.settings.sandbox import SandboxSettings
from robota.sessions.permissions.live_rules import LiveRules, permit_web_tools

if TYPE_CHECKING:
    from robota.tools.sandbox.sandbox import Sandbox, SandboxMode

_WHOLE_WEB = {"WebFetch", "WebFetch(*)", "WebFetch(domain:*)"}


def make_sandbox(mode: SandboxMode, rules: LiveRules, *, unasked: bool = False) -> Sandbox | Literal["off"]:
    """The sandbox; with `unasked` it is all that stands between commands and what they may reach."""
    return make_configured_sandbox(SandboxSettings(mode=mode, auto_allow_bash=unasked), rules) or "off"


def make_configured_sandbox(wanted: SandboxSettings, rules: LiveRules) -> Sandbox | None:
    """The sandbox that settings ask for; `None` when they want none."""
    if wanted.mode == "off":
        return None
    from robota.tools.sandbox.sandbox import Sandbox  # noqa: PLC0415 - loaded where one is wanted

    def network() -> Literal["off", "on"]:
        return "on" if allows_network(rules, unasked=wanted.auto_allow_bash) else "off"

    return Sandbox(
        wanted.mode,
        additional_dirs=lambda: (*rules.additional_dirs, *wanted.allow_write),
        read_only=wanted.deny_write,
        deny_read=wanted.deny_read,
        network=network,
    )


def allows_network(rules: LiveRules, *, unasked: bool) -> bool:
    """Whether commands may use the network, which no sandbox tells apart by host.

    It is off when any deny or ask rule speaks of `WebFetch`. For commands that nobody allowed or was asked
    about it is on only if a rule allows all of the web.
    """
    if permit_web_tools(NativeWebTools(web_search=False, web_fetch=True), rules.rules) is None:
        return False
    allowed = {*rules.rules.allow, *rules.granted}
    return not unasked or bool(allowed & _WHOLE_WEB)
