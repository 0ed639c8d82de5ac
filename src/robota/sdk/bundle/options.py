"""What the user may choose of a plugin: `userConfig` of its manifest, with the values of `pluginConfigs`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from robota.core.given import kind_of_value
from robota.core.messages import Json
from robota.sdk.bundle.bundle import BundleSite
from robota.sdk.bundle.manifest import Manifest

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "directory": (str,),
    "file": (str,),
}


class Options(Struct):
    """The values of a plugin's options."""

    shown: dict[str, str] = field(default_factory=dict)
    """`user_config.KEY` to the value, for whatever models may read."""
    secret: dict[str, str] = field(default_factory=dict)
    """The same of those that are `sensitive`: for its commands, hooks and servers only."""
    env: dict[str, str] = field(default_factory=dict)
    """All of them as variables."""


def read_options(manifest: Manifest, site: BundleSite, tell: Callable[[str, str, str], None]) -> Options:
    """What the user chose, else what the manifest says; what does not fit is left out and told."""
    wanted = manifest.fields.get("userConfig")
    options = Options()
    if wanted is not None and not isinstance(wanted, dict):
        tell(manifest.source, "userConfig", f"An object was expected, not {kind_of_value(wanted)}.")
        return options
    for key, about in (wanted or {}).items():
        said = about if isinstance(about, dict) else {}
        value = site.options.get(key, said.get("default"))
        if not _NAME.fullmatch(key):
            tell(manifest.source, f"userConfig.{key}", "Its name cannot be that of a variable; left out.")
        elif value is None:
            if said.get("required"):
                where = f"pluginConfigs[{site.id!r}].options.{key}"
                tell(manifest.source, f"userConfig.{key}", f"It needs a value: set {where} in your settings.")
        elif wrong := _find_problem(value, str(said.get("type") or "string"), bool(said.get("multiple"))):
            tell(manifest.source, f"userConfig.{key}", f"{wrong}; it was left out.")
        else:
            text = _as_text(value)
            options.env[f"CLAUDE_PLUGIN_OPTION_{key.upper()}"] = text
            (options.secret if said.get("sensitive") else options.shown)[f"user_config.{key}"] = text
    for key in site.options.keys() - (wanted or {}).keys():
        tell(manifest.source, f"pluginConfigs.{key}", "The plugin has no such option.")
    return options


def _find_problem(value: Json, kind: str, multiple: bool) -> str:
    types = _KINDS.get(kind)
    if types is None:
        return f"There is no type {kind!r}"
    for each in value if multiple and isinstance(value, list) else [value]:
        if not isinstance(each, types) or (isinstance(each, bool) and bool not in types):
            return f"A {kind} was expected, not {kind_of_value(each)}"
    return ""


def _as_text(value: Json) -> str:
    if isinstance(value, list):
        return ",".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
