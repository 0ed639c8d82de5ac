"""Layers made into one: every key is checked against the table, and it is known where each came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.given import nearest
from robota.core.messages import Json
from robota.sdk.problems import Problem
from robota.sdk.settings.elsewhere import KEPT, WITHOUT_EFFECT
from robota.sdk.settings.keys import GROUPS, KEYS, Key, Kind
from robota.sdk.settings.layers import Layer

_BEFORE_TRUST = frozenset(("permissions.deny", "permissions.ask"))
"""What a project's files may do before the user trusts it."""
_REMARKS = ("_", "//", "#")
"""How people begin a key that is a remark."""
MAX_PROBLEMS = 100
"""That are told of one file."""
_HARMLESS = frozenset(("type", "model", "timeout"))
"""Fields of a provider profile that decide neither where keys go nor what is sent along."""
_STEERS_US = lazy_pattern(
    r"(?i)ROBOTA_.*|CLAUDE_CONFIG_DIR|(HTTPS?|ALL|NO|FTP|WSS?)_PROXY|SSL_CERT_(FILE|DIR)|CURL_CA_BUNDLE"
    r"|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|.*_BASE_URL|.*_API_KEY|.*_AUTH_TOKEN|.*_CUSTOM_HEADERS"
)
"""Variables that decide which service is asked, how it is reached or by what key."""
_WORDS = {
    "string": "a string", "boolean": "true or false", "integer": "a whole number", "number": "a number",
    "array": "a list", "object": "an object", "null": "null",
}  # fmt: skip
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list, "object": dict,
}  # fmt: skip


class Entry(Struct, frozen=True):
    """What one layer says about a key."""

    layer: Layer
    value: Json


class Merged(Struct, kw_only=True):
    values: dict[str, Json] = field(default_factory=dict)
    """Key with dots to what counts."""
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The same, and every field of an object that was merged, to the files it came from."""
    written: dict[str, list[Entry]] = field(default_factory=dict)
    """What each layer says, the lowest first, for keys whose meaning depends on the layer."""
    problems: list[Problem] = field(default_factory=list)
    _told: dict[str, int] = field(default_factory=dict)

    def report(
        self, layer: Layer, path: tuple[str | int, ...], message: str, *, harmless: bool = False
    ) -> None:
        told = self._told.get(layer.path, 0)
        self._told[layer.path] = told + 1
        if told < MAX_PROBLEMS:
            line, subject = layer.line(*path) if path else 0, _show_path(path)
            self.problems.append(Problem(layer.path, make_printable(message), line, subject, harmless))
        elif told == MAX_PROBLEMS:
            self.problems.append(Problem(layer.path, "there is more that is wrong with this file."))


def merge_layers(layers: Sequence[Layer], *, trusted: bool) -> Merged:
    """Layers, the highest first, as one; a project's layers are restricted, more so before it is trusted."""
    merged = Merged()
    for layer in reversed(layers):
        for doubled in layer.doubled:
            merged.report(layer, (), f"the key {_show(doubled)!r} is there twice; both were put together.")
        for path, value in _walk(layer, layer.values, (), merged, trusted=trusted or not layer.of_project):
            key = KEYS[".".join(path)]
            usable = _fit(value, key.kind, path, layer, merged)
            if usable is None:
                usable = key.if_unusable
            if usable is not None and layer.of_project:
                usable = _restrict(key, usable, path, layer, merged)
            if usable is not None:
                _take(key, usable, layer, merged)
    return merged


def _walk(
    layer: Layer, values: Mapping[str, Json], above: tuple[str, ...], merged: Merged, *, trusted: bool
) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every key of the table that a layer has."""
    for name, value in values.items():
        path = (*above, name)
        dotted = ".".join(path) if "." not in name else ""  # a dot in a name leads into no object
        if not trusted and dotted not in _BEFORE_TRUST and dotted != "permissions":
            continue
        if dotted in GROUPS and (isinstance(value, dict) or dotted not in KEYS):
            if isinstance(value, dict):
                yield from _walk(layer, value, path, merged, trusted=trusted)
            else:
                guards = path == ("permissions",)  # nobody knows what it was meant to forbid
                merged.report(layer, path, _mistaken("an object", value) + (_LOST["ask"] if guards else ""))
                yield from [(("permissions", "ask"), ["*"])] if guards else ()
        elif dotted in KEYS:
            if value is not None:
                yield path, value
        elif dotted in WITHOUT_EFFECT:
            merged.report(layer, path, f"this has no effect: {WITHOUT_EFFECT[dotted]}.")
        elif (not dotted or dotted not in KEPT) and not name.startswith(_REMARKS):
            merged.report(layer, path, _unknown(path))


def _unknown(path: tuple[str, ...]) -> str:
    """A sentence about a key that is not there: it may be misspelt, or in the wrong object."""
    above = ".".join(path[:-1])
    prefix = above + "." if above else ""
    names = (*KEYS, *KEPT)
    known = {name.removeprefix(prefix).partition(".")[0] for name in names if name.startswith(prefix)}
    elsewhere = (name for name in KEYS if name.endswith(f".{path[-1]}") or name == path[-1])
    near = next(elsewhere, None) or nearest(path[-1], known, 0.8)
    return f"there is no such setting; {f'did you mean {near!r}?' if near else 'it was left out.'}"


def _fit(value: Json, kind: Kind, path: tuple[str | int, ...], layer: Layer, merged: Merged) -> Json:
    """The value as far as it is of this kind, `None` when nothing of it is; the rest is reported."""
    if not _is(value, kind):
        if path[0] == "permissions" and path[-1] in _LOST:
            lost = " It is read as one rule." if isinstance(value, str) else _LOST[str(path[-1])]
            merged.report(layer, path, _mistaken("a list of rules", value) + lost)
            return [value]
        merged.report(layer, path, _mistaken(describe_kind(kind), value) + " It was left out.")
        return None
    if isinstance(value, list) and "items" in kind and path[0] != "permissions":
        fitted = (_fit(each, kind["items"], (*path, i), layer, merged) for i, each in enumerate(value))
        return [each for each in fitted if each is not None]
    inner = kind.get("additionalProperties")
    if isinstance(value, dict) and inner is not None and path[0] != "providers":
        return {
            name: usable
            for name, each in value.items()
            if (usable := _fit(each, inner, (*path, name), layer, merged)) is not None
        }
    return value


_LOST = {
    "allow": " It was left out.",
    "deny": " What it was meant to forbid is asked about.",
    "ask": " Everything is asked about.",
}


def _is(value: Json, kind: Kind) -> bool:
    names = kind.get("type")
    if names is None:
        return _is_one_of(value, kind)
    if isinstance(names, str):
        if not _has_type(value, names):
            return False
    elif not any(_has_type(value, name) for name in names):
        return False
    if isinstance(value, str):
        return "minLength" not in kind or len(value.strip()) >= kind["minLength"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            kind.get("minimum", value) <= value <= kind.get("maximum", value)
            and ("exclusiveMinimum" not in kind or value > kind["exclusiveMinimum"])
        )  # fmt: skip
    return True


def _is_one_of(value: Json, kind: Kind) -> bool:
    if "anyOf" in kind:
        return any(_is(value, each) for each in kind["anyOf"])
    if "const" in kind:
        return value is kind["const"]
    return isinstance(value, str) and value in kind["enum"]


def _has_type(value: Json, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def describe_kind(kind: Kind) -> str:
    if "anyOf" in kind:
        return " or ".join(map(describe_kind, kind["anyOf"]))
    if "const" in kind:
        return str(kind["const"]).lower()
    if "enum" in kind:
        return "one of " + ", ".join(kind["enum"])
    names = kind["type"] if isinstance(kind["type"], list) else [kind["type"]]
    words = " or ".join(_WORDS[name] for name in names)
    limits = [f"of at least {kind['minimum']}"] if "minimum" in kind else []
    limits += [f"above {kind['exclusiveMinimum']}"] if "exclusiveMinimum" in kind else []
    limits += [f"up to {kind['maximum']}"] if "maximum" in kind else []
    limits += ["that is not empty"] if kind.get("minLength") else []
    return " ".join([words, *limits])


def _mistaken(expected: str, value: Json) -> str:
    """A sentence about a wrong value; a text is shown only if it is a word, so that no secret is."""
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    given = names.get(type(value), "null" if value is None else "an object")
    if isinstance(value, bool | int | float):
        given = str(value).lower()
    elif isinstance(value, str) and value.isalpha() and len(value) <= 20:
        given = repr(value)
    return f"this is {expected}, not {given}."


def _restrict(key: Key, value: Json, path: tuple[str, ...], layer: Layer, merged: Merged) -> Json:
    """What of a value a project may say, trusted or not; `None` for nothing."""
    refused: list[tuple[str, ...]] = []
    if key.user_only or any(value is each or value == each for each in key.not_from_project):
        refused, value = [path], None
    elif key.name == "env":
        refused = [(*path, name) for name in value if _STEERS_US.fullmatch(name)]
        value = {name: each for name, each in value.items() if not _STEERS_US.fullmatch(name)}
    elif key.name == "providers":
        profiles = {name: each for name, each in value.items() if isinstance(each, dict)}
        refused = [
            (*path, name, each) for name in profiles for each in profiles[name] if each not in _HARMLESS
        ]
        value = {
            name: {each: given for each, given in profile.items() if each in _HARMLESS}
            for name, profile in profiles.items()
        }
    for each in refused:
        told = "a project may not choose this; put it into your own settings."
        merged.report(layer, each, told, harmless=key.of_terminal)
    return value


def _take(key: Key, value: Json, layer: Layer, merged: Merged) -> None:
    name = key.name
    for other in key.instead_of:
        if merged.origins.get(other, (layer.path,)) != (layer.path,):
            merged.values.pop(other, None)
            merged.origins.pop(other, None)
    entries = merged.written.setdefault(name, [])
    entries.append(Entry(layer, value))
    before = merged.values.get(name)
    if before is not None and key.merge == "least" and value >= before:
        return
    if key.merge in ("override", "least"):
        entries = [Entry(layer, value)]
    elif key.merge == "restrict":
        entries = [entry for entry in entries if not entry.layer.of_project] or entries
    merged.values[name] = _combine(key, [entry.value for entry in entries])
    merged.origins[name] = tuple(dict.fromkeys(entry.layer.path for entry in entries))
    if key.merge == "deep":
        merged.origins |= dict.fromkeys(_leaves(name, value), (layer.path,))


def _combine(key: Key, values: list[Json]) -> Json:
    join = merge_objects if key.merge == "deep" else _pool
    return reduce(join, values)


def _pool(first: Json, second: Json) -> Json:
    """Both without doubles; hooks are objects of lists."""
    if isinstance(first, dict) and isinstance(second, dict):  # hooks
        return {**first, **{name: _pool(first.get(name, []), each) for name, each in second.items()}}
    if isinstance(first, list) and isinstance(second, list):
        return first + [each for each in second if each not in first]
    return first


def merge_objects(low: Mapping[str, Json], high: Mapping[str, Json]) -> dict[str, Json]:
    """Both, field by field; where both say something, the higher counts."""
    merged = dict(low)
    for name, value in high.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = merge_objects(before, value)
        merged[name] = value
    return merged


def _leaves(name: str, value: Json) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for inner, each in value.items():
            yield from _leaves(f"{name}.{inner}", each)
    else:
        yield name


def _show_path(path: tuple[str | int, ...]) -> str:
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{_show(part)}" for part in path)
    return shown.removeprefix(".")


def _show(name: str) -> str:
    """A key as it may stand in a sentence."""
    text = make_printable(name)
    return text if len(text) <= 60 else text[:57] + "..."


def make_printable(text: str) -> str:
    """Text of a file as it may be shown, whoever wrote it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
