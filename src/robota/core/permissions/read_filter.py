"""Which of many files deny rules keep from being read: the rules are made ready once, for a whole search."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robota.core.permissions.evaluate import make_call
from robota.core.permissions.matchers import FileMatcher
from robota.core.permissions.paths import DeniedPaths, Resolver


def deny_reading(deny: Sequence[str], *, cwd: str, home: str | None = None) -> Callable[[str], bool] | None:
    """Whether a rule denies reading a path, as `evaluate_permission` would say; `None` if none could."""
    call = make_call("Read", {"file_path": "."}, {"deny": deny, "cwd": cwd, "home": home})
    if call is None:
        return None
    probe, place = FileMatcher(call), call.place
    concerned = [rule for rule in call.deny.rules if probe.concerns(rule)]
    if not concerned:
        return None
    resolver = Resolver(place.home)
    denied = [DeniedPaths(rule.pattern, place, resolver) for rule in concerned if rule.pattern is not None]
    everything = len(denied) < len(concerned)

    def is_denied(path: str) -> bool:
        if everything:
            return True
        try:
            forms = resolver.find_forms(path, place.cwd)
        except (OSError, ValueError):  # no path: nothing can be read there
            return False
        return any(rule.hits(forms) for rule in denied)

    return is_denied
