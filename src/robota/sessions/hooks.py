"""The hooks of one session: fired with what every hook may know, reported to the journal and to the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec.structs import replace

from robota.core.hooks.outcome import HookOutcome
from robota.core.messages import Json, JsonObject

if TYPE_CHECKING:
    from robota.core.errors import RobotaError
    from robota.core.hooks import HookDefinition, HookGroup, HooksConfig
    from robota.core.hooks.runner import Executors, MatchesRule

GivenHooks: TypeAlias = "HooksConfig | Mapping[str, Json] | None"
"""As `parse_hooks` gives them, or as settings have them."""


class HookPort(Protocol):
    """Whoever runs hooks for the parts of a session."""

    def has(self, event: str) -> bool:
        """Whether anything is configured for the event."""
        ...

    async def fire(
        self,
        event: str,
        hook_input: Mapping[str, Json],
        *,
        call_id: str = "",
        matches_rule: MatchesRule | None = None,
    ) -> HookOutcome: ...


class LiveHooks:
    """Runs the configured hooks, which may be replaced at any time.

    `common` gives the input that all hooks share, `report` hears every outcome, `notice` what of the
    configuration takes no effect here. `tools` gives the names that matchers may have.
    """

    __slots__ = (
        "_added", "_base", "_common", "_config", "_executors", "_keep", "_notice", "_report", "_spent",
        "_tools",
    )  # fmt: skip

    def __init__(
        self,
        config: GivenHooks = None,
        *,
        common: Callable[[str], JsonObject],
        report: Callable[[HookOutcome, str], None],
        notice: Callable[[str], object] = str,
        executors: Executors = (),
        keep_variables: Sequence[str] | Callable[[], Sequence[str]] = (),
        tools: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self._common = common
        self._executors = executors
        self._keep = keep_variables
        self._report = report
        self._notice = notice
        self._tools = tools
        self._base: LiveHooks | None = None
        """Whose hooks run as well."""
        self._added: HooksConfig = {}
        """What stays when others are replaced."""
        self._spent: list[HookDefinition] = []
        """Those added with `once` that have run."""
        self.replace(config)

    def plus(self, more: GivenHooks) -> LiveHooks:
        """These hooks, whatever takes their place later, and `more`."""
        joined = copy(self)
        joined._base, joined._added, joined._spent = self, {}, []
        joined.replace(more)
        return joined

    def replace(self, config: GivenHooks) -> None:
        """Other hooks, from the next event on. What cannot be used raises, and the old ones stay."""
        self._config: Any = self._check(config) if config else {}

    def add(self, config: GivenHooks) -> None:
        """More hooks, till the end of the session."""
        from robota.core.hooks import merge_hooks  # noqa: PLC0415 - see below

        self._added = merge_hooks(self._added, self._check(config))

    def _is_due(self, hook: HookDefinition) -> bool:
        """Whether a hook that fits runs. `once` counts for those that are added; in settings files it has no
        meaning, so that a guard is not lost by it."""
        if self._base is not None and not self._base._is_due(hook):
            return False
        added = (each for groups in self._added.values() for group in groups for each in group.hooks)
        if hook.extra.get("once") is not True or hook.source not in {each.source for each in added}:
            return True
        due = hook not in self._spent
        self._spent += [hook] if due else []
        return due

    def _check(self, config: GivenHooks) -> HooksConfig:
        from robota.core.hooks import check_hooks, describe_unsupported  # noqa: PLC0415 - see below
        from robota.core.hooks.runner import as_config, executor_table  # noqa: PLC0415 - see below

        checked = as_config(config or {})
        check_hooks(checked, None if self._tools is None else frozenset(self._tools()))
        self._executors = executors = executor_table(self._executors, self._keep)
        for sentence in describe_unsupported(checked, executors):
            self._notice(sentence)
        return checked

    def heard_by(self, report: Callable[[HookOutcome, str], None]) -> LiveHooks:
        """The same hooks as they are now, with somebody else to hear what they say."""
        hooks = copy(self)
        hooks._report = report
        return hooks

    def written_in(self, is_meant: Callable[[str], bool], event: str) -> LiveHooks:
        """Those of the hooks for an event, as they are now, that are written in such a place."""
        hooks = self.plus(None)
        hooks._base, hooks._spent = None, self._spent
        hooks._config[event] = tuple(
            replace(group, hooks=tuple(hook for hook in group.hooks if is_meant(hook.source)))
            for group in self._groups(event)
        )
        return hooks

    def has(self, event: str) -> bool:
        if not self._config and not self._added and self._base is None:
            return False
        own = self._config.get(event) or self._added.get(event)
        return bool(own) or (self._base is not None and self._base.has(event))

    def _groups(self, event: str) -> tuple[HookGroup, ...]:
        above = () if self._base is None else self._base._groups(event)
        return (*above, *self._config.get(event, ()), *self._added.get(event, ()))

    async def fire(
        self,
        event: str,
        hook_input: Mapping[str, Json],
        *,
        call_id: str = "",
        matches_rule: MatchesRule | None = None,
    ) -> HookOutcome:
        if not self.has(event):
            return HookOutcome(event=event)
        groups = self._groups(event)
        from robota.core.hooks import run_hooks  # noqa: PLC0415 - sessions without hooks are many

        outcome = await run_hooks(
            {event: groups},
            event,
            {**self._common(event), **hook_input},
            executors=self._executors,
            matches_rule=matches_rule,
            is_due=self._is_due,
        )
        self._report(outcome, call_id)
        return outcome


_KINDS = {
    "AUTHENTICATION_ERROR": "authentication_failed",
    "BUDGET_EXCEEDED": "billing_error",
    "MODEL_NOT_AVAILABLE": "model_not_found",
    "RATE_LIMIT_ERROR": "rate_limit",
}
_KINDS_BY_STATUS = {
    400: "invalid_request",
    402: "billing_error",
    404: "model_not_found",
    413: "invalid_request",
    422: "invalid_request",
    529: "overloaded",
}
_SERVER_ERROR = 500


def failure_kind(error: RobotaError) -> str:
    """The word by which `StopFailure` hooks tell failures apart."""
    status = getattr(error, "status", None) or 0
    by_status = _KINDS_BY_STATUS.get(status, "server_error" if status >= _SERVER_ERROR else "unknown")
    return _KINDS.get(error.code, by_status)
