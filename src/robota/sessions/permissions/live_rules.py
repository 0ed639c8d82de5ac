"""The rules in force: those of the settings, the mode, and what users allowed for the session.

One `LiveRules` is made first and given to everybody who has to obey: the enforcer, and tools that list files
or follow links. What is changed counts from the next call on, for all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.given import Options, require_kind, require_texts, suggest
from robota.core.permissions.modes import CLASS_POLICY, PermissionMode
from robota.core.provider import NativeWebTools, Provider, get_provider_capabilities
from robota.sessions.permissions.judgement import Terms

if TYPE_CHECKING:
    from robota.core.permissions.rules import RuleKind


class PermissionRules(Options, frozen=True, kw_only=True):
    """What runs without a question, what may not run at all, and what is asked about."""

    mode: PermissionMode = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in CLASS_POLICY:
            raise ConfigurationError(
                f"There is no permission mode {self.mode!r}; {suggest(str(self.mode), CLASS_POLICY)}"
            )
        for kind in _KINDS:
            if texts := require_texts(f"PermissionRules.{kind}", getattr(self, kind)):
                from robota.core.permissions.rules import check_rules  # noqa: PLC0415 - many have no rules

                for problem in check_rules(texts, kind=kind):
                    raise ConfigurationError(
                        f"The {kind} rule {problem.text!r} cannot work: {problem.reason}."
                    )

    def refuse_unknown(self, tools: frozenset[str]) -> None:
        """Raise for a rule that is about no tool of a session that has these: it would guard nothing."""
        if tools.issuperset(self.allow) and tools.issuperset(self.deny) and tools.issuperset(self.ask):
            return
        from robota.core.permissions.rules import find_unknown_tool  # noqa: PLC0415 - as above

        for kind in _KINDS:
            for rule in getattr(self, kind):
                if rule in tools:
                    continue
                name = rule.partition("(")[0].strip()
                problem = None if name in tools else find_unknown_tool(name, tools)
                if problem is not None:
                    raise ConfigurationError(f"The {kind} rule {rule!r} cannot work: {problem}")


_KINDS: tuple[RuleKind, ...] = ("allow", "deny", "ask")


class Loan(NamedTuple):
    """Rules that count for a while."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


NO_LOAN = Loan()


class LiveRules:
    """Rules that may be replaced at any time."""

    __slots__ = ("_home", "_rules", "_tools", "above", "additional_dirs", "base", "granted", "lent")

    def __init__(
        self,
        rules: PermissionRules | None = None,
        *,
        home: str | None = None,
        additional_dirs: Iterable[str] = (),
        above: LiveRules | None = None,
    ) -> None:
        """`above` are the rules of whoever started this session: the stricter of both counts."""
        self._tools: frozenset[str] | None = None
        """The tools that rules may name; unknown until a session has its tools."""
        self.rules = PermissionRules() if rules is None else rules
        self._home = home
        self.above = above
        self.additional_dirs = (
            () if additional_dirs == () else require_texts("additional_dirs", additional_dirs)
        )
        """Directories that belong to the workspace besides the working directory."""
        self.granted: tuple[str, ...] = ()
        """Rules that users allowed for the session."""
        self.base = ""
        """Where those above work, if that is elsewhere: what they deny there stays denied."""
        self.lent = NO_LOAN
        """What a skill allows and denies in the turn that uses it. Plan mode it cannot leave."""

    @property
    def rules(self) -> PermissionRules:
        return self._rules

    @rules.setter
    def rules(self, rules: PermissionRules) -> None:
        self.check(rules)
        self._rules = rules

    def check(self, rules: PermissionRules) -> None:
        """Raise for rules that could not take the place of these."""
        require_kind("rules", rules, PermissionRules)
        if self._tools is not None:
            rules.refuse_unknown(self._tools)

    def meet(self, tools: Iterable[str]) -> None:
        """A session with these tools obeys from now on; a rule that names no tool raises."""
        known = frozenset(tools) if self._tools is None else self._tools.union(tools)
        if self.above is not None and self.above._tools is not None:
            known |= self.above._tools
        self._tools = known
        self._rules.refuse_unknown(known)

    def replace(
        self, rules: PermissionRules | None = None, *, additional_dirs: Iterable[str] | None = None
    ) -> None:
        """Take what is given; what users allowed for the session stays."""
        dirs = None if additional_dirs is None else require_texts("additional_dirs", additional_dirs)
        if rules is not None:
            self.rules = rules
        if dirs is not None:
            self.additional_dirs = dirs

    def grant(self, rules: Iterable[str]) -> None:
        """A user allowed this for the session, and so for the one that started it: nobody is asked twice."""
        added = tuple(rules)
        self.granted = tuple(dict.fromkeys((*self.granted, *added)))
        if self.above is not None:
            self.above.grant(added)

    def lend(self, allow: Iterable[str] = (), deny: Iterable[str] = (), ask: Iterable[str] = ()) -> None:
        """Let these count too until the loan is ended by `self.lent = NO_LOAN`. Somebody who was started with
        certain rules is lent no more: a skill cannot widen what an agent's definition says."""
        lent = self.lent
        allowed = (*lent.allow, *allow) if self.above is None else lent.allow
        self.lent = Loan(allowed, (*lent.deny, *deny), (*lent.ask, *ask))

    def lending(self, loan: Loan) -> LiveRules:
        """These rules as they are now with a loan, for something that no turn is about."""
        rules = copy(self)
        rules.above = None if self.above is None else self.above.lending(loan)
        rules.lend(*loan)
        return rules

    def narrowed(self, own: PermissionRules | None = None, base: str = "") -> LiveRules:
        """Rules for somebody who may do at most what these allow now or later, and what `own` allow. `base`
        is the directory of these, if the other one works elsewhere."""
        own = PermissionRules(mode="bypassPermissions") if own is None else own
        rules = LiveRules(own, home=self._home, additional_dirs=self.additional_dirs, above=self)
        rules.base = base
        return rules

    def terms(self, cwd: str) -> Terms:
        """What a call is judged by at this moment."""
        rules = self._rules
        if self._home is None:  # once: asking the environment costs more than the rest
            self._home = os.path.expanduser("~")
        return Terms(
            mode=rules.mode,
            allow=(*rules.allow, *self.granted, *(() if rules.mode == "plan" else self.lent.allow)),
            deny=(*rules.deny, *self.lent.deny),
            ask=(*rules.ask, *self.lent.ask),
            cwd=cwd,
            home=self._home,
            additional_dirs=self.additional_dirs,
            above=None if self.above is None else self._terms_above(self.above, cwd),
        )

    def _terms_above(self, above: LiveRules, cwd: str) -> Terms:
        """What they allow and deny here, and what they deny or ask about where they work themselves."""
        here = above.terms(cwd)
        if not self.base:
            return here
        return _only_taking(above.terms(self.base), here)

    def path_filter(self, cwd: str) -> Callable[[str], bool] | None:
        """Whether a rule denies reading an absolute path, so that a search does not show it either; `None`
        when there is no such rule. Fetched once per call."""
        deny = self._denied()
        if not deny:
            return None
        from robota.core.permissions.read_filter import deny_reading  # noqa: PLC0415 - few have such rules

        here = deny_reading(deny, cwd=cwd, home=self._home)
        there = deny_reading(deny, cwd=self.base, home=self._home) if self.base else None
        if here is None or there is None:
            return here or there
        return lambda path: here(path) or there(path)

    def _denied(self) -> tuple[str, ...]:
        above = () if self.above is None else self.above._denied()
        return (*above, *self._rules.deny, *self.lent.deny)

    def allows_url(self, url: str, cwd: str) -> bool:
        """Whether a link may be followed without a question."""
        from robota.core.permissions import evaluate_permission  # noqa: PLC0415 - with the first redirect

        terms: Terms | None = self.terms(cwd)
        while terms is not None:
            if evaluate_permission("WebFetch", {"url": url}, **terms.as_arguments()) != "auto":
                return False
            terms = terms.above
        return True


def _only_taking(terms: Terms, above: Terms) -> Terms:
    """What these deny or ask about, besides what those `above` do."""
    higher = above if terms.above is None else _only_taking(terms.above, above)
    return replace(terms, mode="bypassPermissions", allow=(), above=higher)


def permit_web_tools(
    wanted: NativeWebTools, rules: PermissionRules, provider: Provider | None = None
) -> NativeWebTools | None:
    """Which web tools of the model's own service may be asked for under these rules and, if given, with this
    provider; `None` for nothing. The service carries them out by itself, so no single call can be judged or
    asked about here: one that any deny or ask rule speaks of, even in part, is not asked for at all."""
    from robota.core.permissions.rules import load_rules  # noqa: PLC0415 - few want them

    restricting = (*load_rules(rules.deny, "deny").rules, *load_rules(rules.ask, "ask").rules)
    can = None if provider is None else get_provider_capabilities(provider)
    left = {}
    for name, tool in (("web_search", "WebSearch"), ("web_fetch", "WebFetch")):
        offer = None if can is None else getattr(can, name)
        restricted = any(rule.names(tool) for rule in restricting)
        offered = offer is None or (offer.supported and offer.enabled)
        left[name] = getattr(wanted, name) and offered and not restricted
    return NativeWebTools(**left) if any(left.values()) else None
