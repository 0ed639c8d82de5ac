"""Provider profiles: named settings of a provider, which one is current, and how a provider is made of them.

Profiles are values: adding, changing, removing and selecting give a new one. A key stays what the settings
say (a text or a `$ENV:` reference) until a provider is made, and goes only to the host it was configured for:
each field remembers the layer of settings it came from, and a key never meets an address of another layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from robota.core.credentials import ENV_REFERENCE_PREFIX, is_env_reference, resolve_env_reference
from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject
from robota.core.provider import Provider
from robota.core.provider_definition import (
    ProviderConfig,
    ProviderDefinition,
    find_provider_definition,
    format_supported_provider_types,
    has_usable_credentials,
)

SettingLayer: TypeAlias = Literal["flags", "environment", "user", "project"]
"""Where a setting was written; `project` means any file of the project, the local one included."""
ProfileField: TypeAlias = Literal["type", "model", "api_key", "base_url", "timeout", "options"]
_SPELLINGS: dict[str, ProfileField] = {
    "type": "type",
    "model": "model",
    "apiKey": "api_key",
    "baseURL": "base_url",
    "timeout": "timeout",
    "options": "options",
}
_SECRET_HEADERS = ("authorization", "key", "token", "secret", "cookie")
_CREDENTIALS = {"api_key": "a key", "base_url": "a base URL"}
_PLACES: dict[SettingLayer, str] = {
    "flags": "the settings of this session",
    "environment": "the environment",
    "user": "your own settings",
    "project": "the settings of this project",
}


class ProviderProfile(Struct, frozen=True, kw_only=True):
    """One entry of `providers`."""

    type: str
    model: str | None = None
    api_key: str | None = None
    """The key or a `$ENV:` reference to it."""
    base_url: str | None = None
    timeout: float | None = None
    """Seconds; settings files have milliseconds."""
    options: Mapping[str, Json] = field(default_factory=dict)
    layers: Mapping[ProfileField, SettingLayer] = field(default_factory=dict)
    """Where each field was written; what is missing counts as the user's own settings."""

    def layer(self, name: ProfileField) -> SettingLayer:
        return self.layers.get(name, "user")

    def __repr__(self) -> str:
        key = self.api_key if self.api_key is None or is_env_reference(self.api_key) else "***"
        shown = {"type": self.type, "model": self.model, "api_key": key, "base_url": self.base_url}
        return f"ProviderProfile({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class ProviderProfiles(Struct, frozen=True, kw_only=True):
    """`currentProvider` and `providers` of the settings."""

    current: str | None = None
    profiles: Mapping[str, ProviderProfile] = field(default_factory=dict)

    def get(self, name: str | None = None) -> ProviderProfile:
        """The profile of that name, else the current one."""
        wanted = name or self.current
        if wanted is None:
            raise ConfigurationError(f"No provider is selected: {self._offer('set currentProvider')}.")
        found = self.profiles.get(wanted)
        if found is None:
            raise ConfigurationError(f'There is no provider profile "{wanted}": {self._offer("add one")}.')
        return found

    def add(
        self, profile: ProviderProfile, name: str | None = None, *, select: bool = False
    ) -> ProviderProfiles:
        """With one more profile; without a name it is called after its model."""
        key = name or make_profile_key(profile.model or profile.type, self.profiles)
        if key in self.profiles:
            raise ConfigurationError(
                f'There is a provider profile "{key}" already: update it or choose another name.'
            )
        return ProviderProfiles(
            current=key if select or self.current is None else self.current,
            profiles={**self.profiles, key: profile},
        )

    def update(self, name: str, layer: SettingLayer = "user", **changes: Json) -> ProviderProfiles:
        """With these fields of a profile changed; `layer` says where the new values were written."""
        before = self.get(name)
        fields = _SPELLINGS.values()
        unknown = next((change for change in changes if change not in fields), None)
        if unknown is not None:
            raise ConfigurationError(
                f'A provider profile has no field "{unknown}": there are {", ".join(fields)}.'
            )
        written: dict[ProfileField, SettingLayer] = {name: layer for name in fields if name in changes}
        layers = {**before.layers, **written}
        after = msgspec.structs.replace(before, **changes, layers=layers)
        return ProviderProfiles(current=self.current, profiles={**self.profiles, name: after})

    def remove(self, name: str) -> ProviderProfiles:
        """Without that profile; if it was the current one, none is."""
        self.get(name)
        rest = {key: profile for key, profile in self.profiles.items() if key != name}
        return ProviderProfiles(current=None if self.current == name else self.current, profiles=rest)

    def select(self, name: str) -> ProviderProfiles:
        self.get(name)
        return ProviderProfiles(current=name, profiles=self.profiles)

    def to_settings(self) -> JsonObject:
        """As settings files have it, keys as they were written."""
        providers: JsonObject = {}
        for name, profile in self.profiles.items():
            written = {spelling: getattr(profile, attribute) for spelling, attribute in _SPELLINGS.items()}
            if profile.timeout is not None:
                written["timeout"] = round(profile.timeout * 1000)
            providers[name] = {
                spelling: value for spelling, value in written.items() if value is not None and value != {}
            }
        settings: JsonObject = {"providers": providers}
        return settings if self.current is None else {"currentProvider": self.current, **settings}

    def secrets(self) -> tuple[str, ...]:
        """Every key that the profiles hold or stand for, for the redactor of a session."""
        found: list[str | None] = []
        for profile in self.profiles.values():
            found.append(resolve_env_reference(profile.api_key) if profile.api_key else None)
            headers = profile.options.get("headers")
            for name, value in headers.items() if isinstance(headers, dict) else ():
                if isinstance(value, str) and any(word in name.lower() for word in _SECRET_HEADERS):
                    found.append(value)
        return tuple(dict.fromkeys(filter(None, found)))

    def _offer(self, otherwise: str) -> str:
        return f"choose one of {', '.join(self.profiles)}" if self.profiles else otherwise


def parse_profiles(
    settings: Mapping[str, Json],
    *,
    source: str = "the settings",
    layers: Mapping[str, Mapping[ProfileField, SettingLayer]] | None = None,
    on_problem: Callable[[str], None] | None = None,
) -> ProviderProfiles:
    """The profiles in (merged) settings; `layers` tells for each profile where its fields were written.

    A setting that nobody knows is told to `on_problem` and left out; without it, it is an error too.
    """
    written = settings.get("providers", {})
    if not isinstance(written, dict):
        raise ConfigurationError(f"Invalid settings in {source}: providers must be an object of profiles.")
    current = settings.get("currentProvider")
    if current is not None and not isinstance(current, str):
        raise ConfigurationError(
            f"Invalid settings in {source}: currentProvider must be the name of a profile."
        )
    profiles = {
        name: _parse_profile(name, value, source, (layers or {}).get(name, {}), on_problem)
        for name, value in written.items()
    }
    if current is not None and current not in profiles:
        choice = f": choose one of {', '.join(profiles)}" if profiles else ", which is empty"
        raise ConfigurationError(f'currentProvider "{current}" was not found in providers{choice}.')
    return ProviderProfiles(current=current, profiles=profiles)


def profile_field(spelling: str) -> ProfileField | None:
    """The field of a profile that settings files spell so."""
    return _SPELLINGS.get(spelling)


def make_profile_key(model: str, taken: Iterable[str] = ()) -> str:
    """A name for a profile, made from its model: letters, digits and hyphens, with `-2` if it is taken."""
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in model.lower())
    slug = "-".join(filter(None, plain.split("-"))) or "provider"
    used = set(taken)
    number = 2
    key = slug
    while key in used:
        key = f"{slug}-{number}"
        number += 1
    return key


def create_provider(
    profiles: ProviderProfiles, definitions: Iterable[ProviderDefinition], name: str | None = None
) -> Provider:
    """The provider of a profile, the current one if none is named."""
    definition, config = prepare_profile(profiles, definitions, name)
    return definition.create(config)


def prepare_profile(
    profiles: ProviderProfiles, definitions: Iterable[ProviderDefinition], name: str | None = None
) -> tuple[ProviderDefinition, ProviderConfig]:
    """What makes, probes or refreshes a profile, and its settings with the key in them."""
    profile = profiles.get(name)
    called = name or profiles.current or profile.type
    known = tuple(definitions)
    definition = find_provider_definition(known, profile.type)
    if definition is None:
        raise ConfigurationError(
            f'Provider profile "{called}" has the unknown type "{profile.type}": '
            f"use one of {format_supported_provider_types(known)}."
        )
    _check_layers(called, profile)
    config = ProviderConfig(
        model=profile.model,
        api_key=_resolve_key(called, profile.api_key),
        base_url=profile.base_url,
        timeout=profile.timeout,
        options=profile.options,
    )
    if not has_usable_credentials(definition, config):
        raise ConfigurationError(f'Provider profile "{called}" needs {_wanted(definition)}.')
    return definition, config


def _check_layers(name: str, profile: ProviderProfile) -> None:
    """A key meets only the host that the same layer of settings named, by address or by type."""
    sensitive: tuple[ProfileField, ...] = ("base_url", "api_key")
    for what in sensitive:
        if getattr(profile, what) is not None and profile.layer(what) == "project":
            raise ConfigurationError(
                f'Provider profile "{name}" gets {_CREDENTIALS[what]} from the settings of this project, '
                "which may not choose where keys go: put it into your own settings."
            )
    if profile.api_key is None:
        return
    decides: ProfileField = "type" if profile.base_url is None else "base_url"
    key_layer, host_layer = profile.layer("api_key"), profile.layer(decides)
    if key_layer != host_layer:
        raise ConfigurationError(
            f'Provider profile "{name}" has its key from {_PLACES[key_layer]} but its host from '
            f"{_PLACES[host_layer]}: give both in the same place, so that the key goes where it belongs."
        )


def _resolve_key(name: str, written: str | None) -> str | None:
    if written is None:
        return None
    value = resolve_env_reference(written)
    if value is None:
        variable = written.removeprefix(ENV_REFERENCE_PREFIX).strip()
        raise ConfigurationError(
            f'Provider profile "{name}" reads its key from the variable {variable}, which is not set: '
            "set it or give the profile another key."
        )
    return value


def _wanted(definition: ProviderDefinition) -> str:
    requirement = definition.credential_requirement
    ways = [_CREDENTIALS[way] for way in requirement.any_of] if requirement else []
    usual = definition.defaults.api_key
    if usual is not None and is_env_reference(usual):
        ways.append(f"{usual.removeprefix(ENV_REFERENCE_PREFIX)} in the environment")
    return " or ".join(ways)


def _parse_profile(
    name: str,
    value: Json,
    source: str,
    layers: Mapping[ProfileField, SettingLayer],
    on_problem: Callable[[str], None] | None,
) -> ProviderProfile:
    if not isinstance(value, dict):
        raise ConfigurationError(
            f'Invalid settings in {source}: provider profile "{name}" must be an object.'
        )
    fields: JsonObject = {}
    for spelling, setting in value.items():
        attribute = _SPELLINGS.get(spelling)
        if attribute is None:
            _report_unknown(name, spelling, source, on_problem)
        elif setting is not None:
            fields[attribute] = _check_field(name, spelling, setting, source)
    if not fields.get("type"):
        raise ConfigurationError(f'Provider profile "{name}" is missing type in {source}.')
    return ProviderProfile(**fields, layers=layers)


def _check_field(name: str, spelling: str, value: Json, source: str) -> Json:
    where = f'Invalid settings in {source}: {spelling} of provider profile "{name}" must be'
    if spelling == "timeout":
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ConfigurationError(f"{where} a number of milliseconds above 0.")
        return value / 1000
    if spelling == "options":
        if not isinstance(value, dict):
            raise ConfigurationError(f"{where} an object.")
        return value
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where} a text that is not empty.")
    return value.strip()


def _report_unknown(name: str, spelling: str, source: str, on_problem: Callable[[str], None] | None) -> None:
    near = next((known for known in _SPELLINGS if known.lower() == spelling.replace("_", "").lower()), None)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(_SPELLINGS)}."
    problem = f'Unknown setting "{spelling}" of provider profile "{name}" in {source}; {hint}'
    if on_problem is None:
        raise ConfigurationError(problem)
    on_problem(problem)
