"""Who could answer on this machine: what setup offers, and what the doctor looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.providers.choice import KEYS
from robota.providers.local import is_engine_installed
from robota.sdk.auth import KeyStore
from robota.sdk.provider_profiles import ProviderProfiles

if TYPE_CHECKING:
    from robota.providers.local.store import StoredModel


class Findings(Struct, frozen=True, kw_only=True):
    profile: str | None
    """The current one of the settings."""
    variables: tuple[str, ...]
    """Those of the environment that have a key."""
    kept: tuple[str, ...]
    """Types and profiles whose keys the user keeps."""
    engine: bool
    """Whether llama.cpp is installed."""
    models: tuple[StoredModel, ...]
    """Model files that can be used."""

    @property
    def ready(self) -> bool:
        """Whether somebody answers without another word."""
        return bool(self.profile or self.variables or self.kept or (self.engine and self.models))


def look_around(keys: KeyStore, profiles: ProviderProfiles, environment: Mapping[str, str]) -> Findings:
    """What there is without asking anybody; nothing is sent."""
    from robota.providers.local.store import ModelStore  # noqa: PLC0415 - as those who call this

    known = (*profiles.profiles, *KEYS.values())
    return Findings(
        profile=profiles.current,
        variables=tuple(name for name in KEYS if environment.get(name, "").strip()),
        kept=tuple(name for name in keys.names if name in known),
        engine=is_engine_installed(),
        models=tuple(model for model in ModelStore().list() if model.path is not None),
    )
