"""What is known about models: window, longest output, display name, price.

The facts are data shipped with the package (`data/models.json`), read once, when somebody first asks. A table
is never changed; `extended` gives a new one. Nothing here treats one vendor differently from another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

import msgspec
from msgspec import Struct

from robota.core.errors import ConfigurationError

DEFAULT_CONTEXT_WINDOW = 200_000
DEFAULT_MAX_OUTPUT = 16_384

_DATED = r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest))?(?:-v\d+(?::\d+)?)?$"
_HOSTED = r"^(?:[a-z]+\.)+(?=[a-z])"


class ModelPrice(Struct, frozen=True, rename="camel", omit_defaults=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    """Of input that the service had in its cache; `None`: as any other input."""
    cache_write: float | None = None


class ModelDefinition(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The shipped facts about a model: window, longest answer, prices."""

    id: str = ""
    """Given by its place in the table."""
    name: str
    context_window: int
    max_output: int
    price: ModelPrice | None = None
    family: str = ""


class _File(Struct, frozen=True, rename="camel"):
    models: dict[str, ModelDefinition] = {}
    family_prices: dict[str, ModelPrice] = {}


class ModelTable:
    """Model facts by id. A dated or hosted spelling of a known id finds the same row."""

    __slots__ = ("_family_prices", "models")

    def __init__(
        self,
        models: Mapping[str, ModelDefinition],
        family_prices: Mapping[str, ModelPrice] | None = None,
    ) -> None:
        self.models: Mapping[str, ModelDefinition] = MappingProxyType(dict(models))
        self._family_prices = dict(family_prices or {})

    @classmethod
    def from_json(cls, text: bytes | str, source: str = "the model table") -> ModelTable:
        """The table a JSON text describes, in the format of the shipped `models.json`."""
        try:
            file = msgspec.json.decode(text, type=_File)
        except msgspec.MsgspecError as error:
            raise ConfigurationError(f"Cannot read {source}: {error}.") from error
        models = {id: msgspec.structs.replace(row, id=id) for id, row in file.models.items()}
        return cls(models, file.family_prices)

    def family(self, name: str) -> Mapping[str, ModelDefinition]:
        """The models of one family, by id."""
        return {id: model for id, model in self.models.items() if model.family == name}

    def extended(self, more: ModelTable) -> ModelTable:
        """This table with `more` on top of it."""
        return ModelTable(
            {**self.models, **more.models},
            # families are tried in order, so the newer ones come first and count
            {**more._family_prices, **self._family_prices, **more._family_prices},
        )

    def find(self, model: str) -> ModelDefinition | None:
        exact = self.models.get(model)
        if exact is not None:
            return exact
        plain = _plain_id(model)
        return self.models.get(plain) or self.models.get(plain.replace(".", "-"))

    def find_price(self, model: str) -> ModelPrice | None:
        """The price of the model, else that of its family, else `None`."""
        known = self.find(model)
        if known is not None and known.price is not None:
            return known.price
        from fnmatch import fnmatchcase  # noqa: PLC0415 - few models get this far

        plain = _plain_id(model)
        return next(
            (price for family, price in self._family_prices.items() if fnmatchcase(plain, family)), None
        )


@lru_cache(maxsize=256)
def _plain_id(model: str) -> str:
    """The id without what routers, clouds and releases add: `router/us.cloud.name-20250929-v1` is `name`."""
    import re  # noqa: PLC0415 - exact ids need no pattern

    tail = model.lower().rsplit("/", 1)[-1]
    return re.sub(_HOSTED, "", re.sub(_DATED, "", tail))


@cache
def shipped_models() -> ModelTable:
    """The table that comes with the package."""
    path = os.path.join(os.path.dirname(__file__), "data", "models.json")
    with open(path, "rb") as file:
        return ModelTable.from_json(file.read(), path)


def __getattr__(name: str) -> Mapping[str, ModelDefinition]:
    if name == "CLAUDE_MODELS":  # computed when asked for: importing this module reads no file
        return shipped_models().family("claude")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_known_model(model: str) -> bool:
    """Whether the window below is a fact rather than the fallback; a run says so once when it is not."""
    return shipped_models().find(model) is not None


def get_model_context_window(model: str) -> int:
    """The window of a model in tokens; of an unknown one the assumed default."""
    known = shipped_models().find(model)
    return DEFAULT_CONTEXT_WINDOW if known is None else known.context_window


def get_model_max_output(model: str) -> int:
    """The longest answer of a model in tokens; of an unknown one the assumed default."""
    known = shipped_models().find(model)
    return DEFAULT_MAX_OUTPUT if known is None else known.max_output


def get_model_name(model: str) -> str:
    """The name for people, else the id."""
    known = shipped_models().find(model)
    return model if known is None else known.name


@lru_cache(maxsize=256)
def find_model_price(model: str) -> ModelPrice | None:
    return shipped_models().find_price(model)


def format_token_count(tokens: int) -> str:
    """`1M`, `1.2M`, `200K`, `1.5K`; `<1K` for less, `0K` for nothing."""
    if tokens <= 0:
        return "0K"
    if tokens < 1000:
        return "<1K"
    thousands = round(tokens / 1000, 1)
    if thousands < 1000:
        return f"{thousands:g}K"
    return f"{round(tokens / 1_000_000, 1):g}M"


def describe_unknown_model(model: str) -> str:
    """What the user should be told about a model whose window is only assumed."""
    return (
        f"Nothing is known about the model {model!r}: its context window is taken to be "
        f"{DEFAULT_CONTEXT_WINDOW:,}. If it has another: --context-window, or context_window= in a program."
    )
