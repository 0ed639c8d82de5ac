"""Which web tools of the model's own service a session may ask for.

The service carries them out by itself, so no single call can be judged or asked about here. A tool that any
deny or ask rule speaks of, even in part, is therefore not asked for at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.permissions.rules import load_rules
from robota.core.provider import NativeWebTool, NativeWebTools, Provider, get_provider_capabilities

if TYPE_CHECKING:
    from robota.sessions.permissions.live_rules import PermissionRules


def permit_web_tools(wanted: NativeWebTools, rules: PermissionRules) -> NativeWebTools | None:
    """What is left of the wish under these rules; `None` for nothing."""
    return _or_none(
        wanted.web_search and not _is_restricted("WebSearch", rules),
        wanted.web_fetch and not _is_restricted("WebFetch", rules),
    )


def find_offered(wanted: NativeWebTools, provider: Provider) -> NativeWebTools | None:
    """What is left of the wish with this provider; `None` for nothing."""
    can = get_provider_capabilities(provider)
    return _or_none(
        wanted.web_search and _is_offered(can.web_search), wanted.web_fetch and _is_offered(can.web_fetch)
    )


def _is_offered(tool: NativeWebTool) -> bool:
    return tool.supported and tool.enabled


def _or_none(search: bool, fetch: bool) -> NativeWebTools | None:
    return NativeWebTools(web_search=search, web_fetch=fetch) if search or fetch else None


def _is_restricted(tool: str, rules: PermissionRules) -> bool:
    known = (load_rules(rules.deny, "deny"), load_rules(rules.ask, "ask"))
    return any(
        any(rule.names(tool) for rule in each.rules)
        or any(problem.concerns(tool) for problem in each.problems)
        for each in known
    )
