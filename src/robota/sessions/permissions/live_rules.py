"""The rules in force: those of the settings, the mode, and what users allowed for the session."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.permissions.modes import CLASS_POLICY, PermissionMode
from robota.sessions.permissions.case import PermissionCase
from robota.sessions.permissions.consultation import consult
from robota.sessions.permissions.judgement import Judge, Judgement, Terms

BROKEN = Judgement(
    decision="deny",
    by="fault",
    reason="The permission rules could not be evaluated; the fault is in the log.",
)


class PermissionRules(Struct, frozen=True, kw_only=True):
    """What runs without a question, what may not run at all, and what is asked about."""

    mode: PermissionMode = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


class RuleBook:
    """Judges cases by the rules in force, and learns the rules that users add."""

    __slots__ = ("_additional_dirs", "_home", "_judge", "_rules", "granted")

    def __init__(
        self, rules: PermissionRules, judge: Judge, home: str | None, additional_dirs: Sequence[str]
    ) -> None:
        self.rules = rules
        self._judge = judge
        self._home = home
        self._additional_dirs = tuple(additional_dirs)
        self.granted: tuple[str, ...] = ()
        """Rules that users allowed for the session."""

    @property
    def rules(self) -> PermissionRules:
        return self._rules

    @rules.setter
    def rules(self, rules: PermissionRules) -> None:
        if rules.mode not in CLASS_POLICY:
            known = ", ".join(CLASS_POLICY)
            raise ConfigurationError(f"There is no permission mode {rules.mode!r}; use one of {known}.")
        self._rules = rules

    def terms(self, cwd: str) -> Terms:
        rules = self._rules
        if self._home is None:  # once: asking the environment costs more than the rest
            self._home = os.path.expanduser("~")
        return Terms(
            mode=rules.mode,
            allow=(*rules.allow, *self.granted),
            deny=tuple(rules.deny),
            ask=tuple(rules.ask),
            cwd=cwd,
            home=self._home,
            additional_dirs=self._additional_dirs,
        )

    async def judge(self, case: PermissionCase) -> Judgement:
        """Judge the call as it is now. A judge that breaks denies."""
        answer = await consult("The permission judge", self._judge.judge, case.call, self.terms(case.cwd))
        judgement = answer if isinstance(answer, Judgement) else BROKEN
        case.judged.append(judgement)
        return judgement

    async def offer(self, case: PermissionCase) -> tuple[str, ...]:
        """The rules an answer may add: never a whole tool, unless its calls have nothing to differ in."""
        offered = await consult("The rule offer", self._judge.offer, case.call, self.terms(case.cwd))
        if not isinstance(offered, Sequence):
            return ()
        tool = case.call.tool
        exact = not case.call.arguments and tool is not None and not tool.parameters.get("properties")
        narrow = all(isinstance(rule, str) and ("(" in rule or exact) for rule in offered)
        return tuple(offered) if narrow else ()

    async def remember_directory(self, case: PermissionCase) -> None:
        """A person let the call go where the last verdict said it goes."""
        outside = case.judged[-1].outside
        if outside is not None:
            await consult("The workspace guard", self._judge.remember, case.call, outside)

    def grant(self, rules: Sequence[str]) -> None:
        self.granted = tuple(dict.fromkeys((*self.granted, *rules)))
