"""Which web tools of the model's own service a session may ask for.

The service carries them out by itself, so no single call can be judged or asked about here. A tool that any
deny or ask rule speaks of, even in part, is therefore not asked for at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.permissions.rules import load_rules
from robota.core.provider import NativeWebTools, Provider, get_provider_capabilities

if TYPE_CHECKING:
    from robota.sessions.permissions.live_rules import PermissionRules


def permit_web_tools(
    wanted: NativeWebTools, rules: PermissionRules, provider: Provider | None = None
) -> NativeWebTools | None:
    """What is left of the wish under these rules and, if given, with this provider; `None` for nothing."""
    restricting = (*load_rules(rules.deny, "deny").rules, *load_rules(rules.ask, "ask").rules)
    can = None if provider is None else get_provider_capabilities(provider)
    left = {}
    for name, tool in (("web_search", "WebSearch"), ("web_fetch", "WebFetch")):
        offer = None if can is None else getattr(can, name)
        restricted = any(rule.names(tool) for rule in restricting)
        offered = offer is None or (offer.supported and offer.enabled)
        left[name] = getattr(wanted, name) and offered and not restricted
    return NativeWebTools(**left) if any(left.values()) else None
