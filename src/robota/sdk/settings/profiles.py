"""The provider profiles of all layers; each field knows its layer, so that no key goes to a strange host."""

from __future__ import annotations

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject
from robota.sdk.provider_profiles import (
    ProfileField,
    ProviderProfile,
    ProviderProfiles,
    SettingLayer,
    parse_profiles,
    profile_field,
)
from robota.sdk.settings.layers import Layer
from robota.sdk.settings.merge import Merged


def build_profiles(merged: Merged, providers: Json) -> ProviderProfiles:
    """Every usable profile of `providers`, the merged and resolved value.

    One that is broken is named and left out: whoever selects it is told, nobody gets another in its place.
    """
    written = merged.written.get("providers", ())
    profiles: dict[str, ProviderProfile] = {}
    for name, value in (providers or {}).items():
        mentions = [entry for entry in written if name in entry.value]
        layers: dict[ProfileField, SettingLayer] = {
            attribute: _layer_of(entry.layer)
            for entry in mentions
            for spelling in (entry.value[name] if isinstance(entry.value[name], dict) else ())
            if (attribute := profile_field(spelling)) is not None
        }
        found: list[str] = []
        settings: JsonObject = {"providers": {name: value}}
        try:
            parsed = parse_profiles(
                settings, source=mentions[-1].layer.path, layers={name: layers}, on_problem=found.append
            )
            profiles |= parsed.profiles
        except ConfigurationError as error:
            found.append(str(error))
        for problem in found:
            merged.report(mentions[-1].layer, ("providers", name), problem)
    return _select(merged, profiles)


def _layer_of(layer: Layer) -> SettingLayer:
    return "project" if layer.of_project else layer.name  # type: ignore[return-value]


def _select(merged: Merged, profiles: dict[str, ProviderProfile]) -> ProviderProfiles:
    current = merged.values.get("currentProvider")
    if current is not None and current not in profiles:
        layer = merged.written["currentProvider"][-1].layer
        if layer.name in ("flags", "environment"):  # a type serves as well as a name
            profiles[current] = ProviderProfile(type=current, layers={"type": layer.name})
        else:
            choice = f"choose one of {', '.join(profiles)}" if profiles else "it is empty"
            merged.report(layer, ("currentProvider",), f'"{current}" was not found in providers: {choice}.')
    chosen = ProviderProfiles(current=current, profiles=profiles)
    address = merged.values.get("baseURL")
    if address is not None and current in profiles:
        layer = merged.written["baseURL"][-1].layer
        chosen = chosen.update(current, _layer_of(layer), base_url=address)
    return chosen
