"""Settings: six layers, checked against one table of keys, merged, each value with its origin."""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.sdk.settings.layers": "Layer read_layers",
    "robota.sdk.settings.fitting": "fit_to_tools",
    "robota.sdk.settings.settings": "Settings load_settings",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
