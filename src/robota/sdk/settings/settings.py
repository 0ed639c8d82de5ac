"""All settings of one session, ready to be used: merged, checked, each with its origin."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from robota.core.credentials import is_credential
from robota.core.hooks.definition import HooksConfig
from robota.core.messages import Json
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.provider_profiles import ProviderProfiles
from robota.sdk.settings.hooks import build_hooks
from robota.sdk.settings.keys import KEYS
from robota.sdk.settings.layers import Layer, read_layers
from robota.sdk.settings.merge import merge_layers
from robota.sdk.settings.profiles import build_profiles
from robota.sdk.settings.references import References
from robota.sdk.settings.rules import build_rules, find_directories
from robota.sdk.settings.sandbox import SandboxSettings, build_sandbox
from robota.sessions.context_window_tracker import DEFAULT_AUTO_COMPACT_THRESHOLD, AutoCompactThreshold
from robota.sessions.permissions.live_rules import PermissionRules

if TYPE_CHECKING:
    from robota.sessions.usage.budget import Budget


_LIMITS = {
    "max_cost_usd": "budget.maxCostUsd",
    "max_tokens": "budget.maxTokens",
    "max_requests": "budget.maxRequests",
    "max_tool_calls": "budget.maxToolCalls",
    "max_seconds": "budget.maxSeconds",
}


class Settings(Struct, frozen=True, kw_only=True):
    """What counts; a change makes a new one."""

    values: Mapping[str, Json] = field(default_factory=dict)
    """Key with dots to what is written, `$ENV:` references as they are: for showing."""
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Key with dots to the files it came from; several where entries are pooled."""
    layers: tuple[Layer, ...] = ()
    """As they were written, the highest first."""
    rules: PermissionRules = PermissionRules()
    additional_dirs: tuple[str, ...] = ()
    hooks: HooksConfig = field(default_factory=dict)
    sandbox: SandboxSettings = SandboxSettings()
    profiles: ProviderProfiles = ProviderProfiles()
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for commands and hooks."""
    problems: tuple[Problem, ...] = ()
    resolved: Mapping[str, Json] = field(default_factory=dict)
    """The values with what `$ENV:` references stand for: for using, never for showing."""

    def get(self, name: str) -> Json:
        """What counts for a key of the table, its default if nobody set it."""
        value = self.resolved.get(name)
        return KEYS[name].default if value is None else value

    def find_layer(self, name: str) -> Layer | None:
        """The highest layer that a key came from."""
        sources = self.origins.get(name, ())
        return next((layer for layer in self.layers if layer.path in sources), None)

    @property
    def model(self) -> str | None:
        """The model that somebody named: here, or in the current profile, which a `.claude` file knows
        nothing of."""
        profile = self.profiles.profiles.get(self.profiles.current or "")
        if profile is None or profile.model is None:
            named: str | None = self.get("model")
            return named
        return self.own_model or profile.model

    @property
    def own_model(self) -> str | None:
        """The model that is named here, unless that was for another program."""
        layer = self.find_layer("model")
        model: str | None = self.get("model")
        return model if layer is not None and layer.dialect == "robota" else None

    @property
    def language(self) -> str | None:
        language: str | None = self.get("language")
        return language

    @property
    def effort(self) -> str | None:
        """How hard the model thinks, in its provider's words; those of `.claude` files are another's."""
        layer = self.find_layer("effortLevel")
        effort: str | None = self.get("effortLevel")
        return effort if layer is not None and layer.dialect == "robota" else None

    @property
    def bypass_is_disabled(self) -> bool:
        """Whether the mode `bypassPermissions` may not be chosen."""
        return self.get("permissions.disableBypassPermissionsMode") is not None

    @property
    def auto_compact_threshold(self) -> AutoCompactThreshold:
        if self.get("autoCompactEnabled") is False:
            return False
        threshold: AutoCompactThreshold | None = self.get("autoCompactThreshold")
        return DEFAULT_AUTO_COMPACT_THRESHOLD if threshold is None else threshold

    @property
    def budget(self) -> Budget | None:
        """`None` when nothing is limited."""
        limits = {field: self.get(name) for field, name in _LIMITS.items() if self.get(name) is not None}
        if not limits:
            return None
        from robota.sessions.usage.budget import Budget  # noqa: PLC0415 - few have one

        return Budget(**limits)

    @property
    def keep_variables(self) -> tuple[str, ...]:
        """Credentials of the environment that commands and hooks may have."""
        return tuple(self.get("passEnv") or ())

    def secrets(self) -> tuple[str, ...]:
        """Every value that must be written nowhere."""
        found = [*self.profiles.secrets()]
        found += [value for name, value in self.env.items() if is_credential(name, value)]
        found += [
            used
            for name, value in self.resolved.items()
            for used in _find_resolved(self.values.get(name), value)
        ]
        return tuple(dict.fromkeys(filter(None, found)))

    def __repr__(self) -> str:
        return f"Settings({', '.join(sorted(self.values))})"


def load_settings(
    places: Places,
    *,
    sources: Collection[str] | None = None,
    flags: Mapping[str, Json] | None = None,
    environment: Mapping[str, str] = os.environ,
    trusted: bool,
) -> Settings:
    """The settings of somebody who works there.

    `sources` picks among the files (`user`, `project`, `local`); `None` is all. Of a project that is not
    `trusted`, only deny and ask rules count. A file that cannot be read raises; everything else that is wrong
    is in `problems`.
    """
    layers = read_layers(places, sources=sources, flags=flags, environment=environment)
    return build_settings(layers, places, environment=environment, trusted=trusted)


def build_settings(
    layers: tuple[Layer, ...], places: Places, *, environment: Mapping[str, str], trusted: bool
) -> Settings:
    """The same of layers that were read before, so that somebody could ask for trust in between."""
    merged = merge_layers(layers, trusted=trusted)
    references = References(merged, layers, environment)
    resolved = references.resolve_all()
    env = {name: _as_text(value) for name, value in (resolved.get("env") or {}).items()}
    return Settings(
        rules=build_rules(merged, places),
        additional_dirs=find_directories(merged, places),
        hooks=build_hooks(merged, env, references.is_secret),
        sandbox=build_sandbox(merged, places),
        profiles=build_profiles(merged, resolved.get("providers")),
        env=env,
        values=merged.values,
        origins=merged.origins,
        layers=layers,
        resolved=resolved,
        problems=tuple(merged.problems),
    )


def _find_resolved(written: Json, used: Json) -> Iterator[str]:
    """The values that stand where references were written."""
    if isinstance(written, dict) and isinstance(used, dict):
        for name in written:
            yield from _find_resolved(written[name], used.get(name))
    elif isinstance(written, list) and isinstance(used, list):
        for each, other in zip(written, used, strict=False):
            yield from _find_resolved(each, other)
    elif written != used and isinstance(used, str):
        yield used


def _as_text(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
