"""Changes to a project's plugins on the user's word, which leave the trust in the project as it was."""

from __future__ import annotations

import os
from collections.abc import Callable

from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.settings.layers import read_layers
from robota.sdk.settings.settings import Settings, build_settings
from robota.sdk.trust import Trust, TrustStore


def keep_trust(places: Places, work: Callable[[], object]) -> None:
    """Do something that the user has agreed to, and know its wishes for theirs."""
    before = _look(places)
    work()
    after = _look(places)
    TrustStore(places.robota_home, home=places.home).follow(before, after.wishes, "plugins")


def load_trusted_settings(places: Places) -> Settings:
    """The settings of somebody who works there, those of the project only if it is trusted."""
    return build_settings(read_layers(places), places, environment=os.environ, trusted=_look(places).trusted)


def _look(places: Places) -> Trust:
    from robota.sdk.project import look_at_trust  # noqa: PLC0415 - projects know of plugins

    problems: list[Problem] = []
    return look_at_trust(places, read_layers(places), problems, sources=None)
