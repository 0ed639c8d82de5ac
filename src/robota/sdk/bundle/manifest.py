"""What a plugin says of itself: `.claude-plugin/plugin.json`, and what its marketplace says in addition."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct, field

from robota.core.given import kind_of_value
from robota.core.messages import Json, JsonObject
from robota.core.regular_file import open_regular
from robota.sdk.bundle.names import is_safe
from robota.sdk.problems import Problem
from robota.sdk.settings.jsonc import JsoncError, read_jsonc

FILE = os.path.join(".claude-plugin", "plugin.json")
MAX_BYTES = 1 << 20
COMPONENTS = (
    "skills", "commands", "agents", "hooks", "mcpServers", "tools", "permissions", "systemPrompt",
)  # fmt: skip
"""What a plugin may bring along and sessions take up."""
NOT_HERE: Mapping[str, str] = {
    "lspServers": "there are no language servers here",
    "outputStyles": "there are no output styles here",
    "themes": "the terminal has no themes of plugins",
    "monitors": "there are no monitors here",
    "workflows": "there are no workflows here",
    "channels": "there are no channels here",
    "experimental": "nothing of it is known here",
}
"""Keys of the format that take no effect, and why."""
FEATURES = {"mcp": "mcpServers"}
"""Names under `features` that differ from those of the keys."""


class Manifest(Struct, frozen=True, kw_only=True):
    """What is known of a plugin before anything of it is loaded."""

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    keywords: tuple[str, ...] = ()
    homepage: str = ""
    license: str = ""
    default_enabled: bool = True
    features: frozenset[str] | None = None
    """The only components it declares; `None` when it does not say."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Everything as it is written."""
    source: str = ""
    """The file; empty if there is none."""

    def declares(self, component: str) -> bool:
        """Whether it may bring these along; what stands in the manifest itself is declared by that."""
        listed = component in ("skills", "commands", "agents", "hooks", "mcpServers")
        return self.features is None or not listed or component in self.features


def read_json(path: str) -> Json:
    """The value of a JSON file; `ValueError` says what is wrong with it, an `OSError` is the caller's."""
    with open_regular(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MB")
    return read_jsonc(data.decode("utf-8-sig"))


def read_object(path: str, problems: list[Problem]) -> JsonObject | None:
    """The object in a JSON file; `None` with a problem if it holds none."""
    try:
        found = read_json(path)
    except OSError as error:
        problems.append(Problem(path, f"The file cannot be read ({error.strerror}); it was left out."))
        return None
    except ValueError as error:
        line = error.line if isinstance(error, JsoncError) else 0
        problems.append(Problem(path, f"It is not JSON ({error}): correct it.", line))
        return None
    if not isinstance(found, dict):
        what = f"An object was expected, not {kind_of_value(found)}: correct it."
        problems.append(Problem(path, what))
        return None
    return found


def read_manifest(root: str, name: str, problems: list[Problem]) -> Manifest | None:
    """The manifest of the plugin in `root`; without a file it has only its `name`. `None` with a problem when
    the file cannot be used, so that the plugin is not loaded with less than its author meant."""
    path = os.path.join(root, FILE)
    if not os.path.lexists(path):
        return Manifest(name=name)
    if not os.path.realpath(path).startswith(os.path.realpath(root) + os.sep):
        problems.append(Problem(path, "It leads out of the plugin, which is not loaded.", subject=name))
        return None
    found = read_object(path, problems)
    return None if found is None else make_manifest({"name": name, **found}, path, problems)


def make_manifest(fields: JsonObject, path: str, problems: list[Problem]) -> Manifest | None:
    """The manifest that these fields make; `None` with a problem when one of them has no meaning."""
    wrong = [key for key in ("name", "version", "description") if not isinstance(fields.get(key, ""), str)]
    name = fields["name"]
    if not wrong and not is_safe(name):
        what = f"{name!r} cannot be the name of a plugin: use letters, digits and hyphens."
        problems.append(Problem(path, what, subject="name"))
        return None
    for key in wrong:
        what = f"A text was expected, not {kind_of_value(fields[key])}: the plugin is not loaded."
        problems.append(Problem(path, what, subject=key))
    if wrong:
        return None
    features = fields.get("features")
    author = fields.get("author")
    return Manifest(
        name=name,
        version=fields.get("version", ""),
        description=fields.get("description", ""),
        author=str(author.get("name", "")) if isinstance(author, dict) else str(author or ""),
        keywords=list_texts(fields.get("keywords")),
        homepage=str(fields.get("homepage") or ""),
        license=str(fields.get("license") or ""),
        default_enabled=fields.get("defaultEnabled") is not False,
        features=frozenset(
            FEATURES.get(str(key), str(key)) for key, value in features.items() if value is True
        )
        if isinstance(features, dict)
        else None,
        fields=fields,
        source=path,
    )


def list_texts(value: Json) -> tuple[str, ...]:
    """The texts of a list, or the one that stands in its place."""
    if isinstance(value, str):
        return (value,)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
