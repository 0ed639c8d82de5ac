"""An OpenAPI document as a tree: read from text, references followed, what cannot be used noted by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from robota.core.errors import ConfigurationError
from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject

MAX_NODES = 2_000_000
"""Of a YAML document with its aliases written out; a few lines of aliases can stand for billions."""
_MAX_HOPS = 30


class UnsupportedError(Exception):
    """Something in the document that these tools cannot do; the text completes `… is left out: `."""


class Document:
    """The tree, and the notes taken while reading it."""

    __slots__ = ("notes", "root", "version")

    def __init__(self, root: JsonObject) -> None:
        self.root = root
        self.version = check_version(root)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def follow(self, node: Json) -> JsonObject:
        """The object a node is or refers to."""
        for _ in range(_MAX_HOPS):
            if not isinstance(node, dict):
                raise UnsupportedError(f"an object was expected where {str(node)[:40]!r} stands")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.resolve(node["$ref"])
        raise UnsupportedError("a reference leads in a circle")

    def resolve(self, ref: str) -> Json:
        """What a reference within the document points to."""
        if not ref.startswith("#"):
            raise UnsupportedError(f"the reference {ref[:100]!r} leads out of the document")
        from urllib.parse import unquote  # noqa: PLC0415 - a document without references does without

        target: Json = self.root
        for step in ref[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, dict) and name in target:
                target = target[name]
            else:
                raise UnsupportedError(f"the reference {ref[:100]!r} leads nowhere")
        return target


def read_document(source: str | Mapping[str, Json]) -> JsonObject:
    """The tree of a document given as JSON or YAML text, or ready made."""
    if isinstance(source, Mapping):
        return dict(source)
    text = source.lstrip("\ufeff \t\r\n")
    try:
        tree: Json = decode(text) if text.startswith("{") else _read_yaml(text)
    except ValueError as error:
        raise ConfigurationError(f"The OpenAPI document cannot be read: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigurationError("The OpenAPI document is no object: pass the text of a JSON or YAML file.")
    return tree


def check_version(root: JsonObject) -> str:
    if "swagger" in root:
        raise ConfigurationError("This is a Swagger 2 document: convert it to OpenAPI 3 first.")
    version = str(root.get("openapi", ""))
    if not re.fullmatch(r"3\.\d+(?:\.\d+)?(?:-\w+)?", version):
        raise ConfigurationError(
            f"The document says openapi: {version[:20]!r}, but 3.0 or 3.1 is needed: check that this is the "
            "right file."
        )
    return version


def mapping_of(node: Json) -> JsonObject:
    """The node if it is an object, else an empty one: a document may be wrong anywhere."""
    return node if isinstance(node, dict) else {}


def list_of(node: Json) -> list[Json]:
    return node if isinstance(node, list) else []


def text_of(node: Json) -> str:
    return node if isinstance(node, str) else ""


def is_token(name: str) -> bool:
    """Whether HTTP allows this as the name of a header or cookie."""
    return re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) is not None


def _read_yaml(text: str) -> Json:
    """YAML with the meaning of JSON: `no` and `2024-01-01` are texts."""
    import yaml  # noqa: PLC0415 - a JSON document does without

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012 - how the library wants it
            first: [(tag, pattern) for tag, pattern in pairs if not tag.endswith((":bool", ":timestamp"))]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?i:true|false)"), list("tTfF"))
    try:
        tree: Json = yaml.load(text, Loader)
        return _Plain().copy(tree)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply, or contains itself") from error


class _Plain:
    """Copies what YAML gives into plain JSON: text keys, no shared parts."""

    def __init__(self) -> None:
        self._nodes = 0

    def copy(self, node: Json) -> Json:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ValueError("it is too large with its aliases written out")
        if isinstance(node, dict):
            return {str(key): self.copy(value) for key, value in node.items()}
        if isinstance(node, list):
            return [self.copy(value) for value in node]
        if node is None or isinstance(node, str | int | float):
            return node
        raise ValueError(f"it holds a {type(node).__name__}, which JSON does not have")
