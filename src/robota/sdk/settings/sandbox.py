"""The sandbox that all layers together ask for."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.messages import Json
from robota.sdk.places import Places
from robota.sdk.settings.layers import Layer
from robota.sdk.settings.merge import Merged

SandboxChoice: TypeAlias = Literal["off", "auto", "required"]


class SandboxSettings(Struct, frozen=True, kw_only=True):
    mode: SandboxChoice = "auto"
    auto_allow_bash: bool = False
    """Commands that the sandbox confines run without a question."""
    allow_write: tuple[str, ...] = ()
    """Absolute paths, like those below."""
    deny_write: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()


def build_sandbox(merged: Merged, places: Places) -> SandboxSettings:
    values = merged.values
    mode: SandboxChoice = values.get("sandbox", "auto")
    if values.get("sandbox.failIfUnavailable"):
        mode = "required"
    elif values.get("sandbox.enabled") is False:
        mode = "off"
    return SandboxSettings(
        mode=mode,
        auto_allow_bash=bool(values.get("sandbox.autoAllowBashIfSandboxed")),
        allow_write=_find_paths("allowWrite", merged, places),
        deny_write=_find_paths("denyWrite", merged, places),
        deny_read=_find_paths("denyRead", merged, places),
    )


def _find_paths(name: str, merged: Merged, places: Places) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for entry in merged.written.get(f"sandbox.filesystem.{name}", ()):
        for position, written in enumerate(entry.value):
            path = written.removesuffix("/**").removesuffix("/*")
            if "*" in path:
                place = ("sandbox", "filesystem", name, position)
                merged.report(entry.layer, place, "a sandbox knows paths and no patterns; it was left out.")
            elif path:
                found[find_path(path, entry.layer, places)] = None
    return tuple(found)


def find_path(written: Json, layer: Layer, places: Places) -> str:
    """A path of a settings file, absolute. In `.claude` files `//` is the root and `/` their directory."""
    path = str(written)
    if path == "~" or path.startswith("~/"):
        path = places.home + path[1:]
    elif layer.dialect != "robota" and path.startswith("/") and not path.startswith("//"):
        path = (places.claude_home if layer.name == "user" else places.cwd) + path
    return os.path.normpath(
        os.path.join(places.cwd, "/" + path.lstrip("/") if path.startswith("//") else path)
    )
