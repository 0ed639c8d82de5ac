"""A service that has models, as facts: what it is called, where it is, how its list of models reads.

A vendor's module holds one as `SERVICE`, and `robota.providers.definitions` makes a definition of it. Nothing
is loaded here that a provider would not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from robota.core.messages import JsonObject
from robota.core.provider import Provider

if TYPE_CHECKING:
    from robota.providers.wire.errors import DescribeRefusal

ReadModel: TypeAlias = Callable[[JsonObject], JsonObject | None]
"""The facts of a catalogue entry in one entry of a list; `None` for a model that is not to be offered."""


def base_path(base_url: str, *endings: str) -> tuple[str, str]:
    """The address without what adapters let people write behind it, and its query."""
    path, mark, query = base_url.strip().partition("?")
    path = path.rstrip("/")
    for ending in endings:
        path = path.removesuffix(ending)
    return path, f"{mark}{query}"


def endpoint(base_url: str, path: str, *, version: str = "") -> str:
    """Where to POST, from a base URL with or without version, path and slash; its query stays behind."""
    place, query = base_path(base_url, path, version)
    return f"{place}{version}{path}{query}"


def openai_list_url(base_url: str) -> str:
    path, query = base_path(base_url, "/chat/completions", "/responses")
    return f"{path}/models{query}"


def read_openai(model: JsonObject) -> JsonObject:
    window = model.get("context_length") or model.get("max_model_len") or model.get("context_window")
    return {"context_window": window}


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


class Service(Struct, frozen=True, kw_only=True):
    """A service that wants a key, which is made at `key_page`; without that, a server that people run
    themselves, or with no address either, any that speaks the protocol. Most lists are as the defaults say.
    """

    name: str = ""
    """Of its provider."""
    title: str
    """In sentences."""
    display_name: str = ""
    """In lists, if it is another."""
    description: str
    make: Callable[..., Provider] | None = None
    """Makes the provider of a key, a base URL, a model and options, where its class does not take these."""
    options: Mapping[str, type] = {}
    """What a profile may say beside the usual options."""
    aliases: tuple[str, ...] = ()
    docs: str = ""
    key_page: str = ""
    key_variables: tuple[str, ...] = ()
    """Where the environment keeps the key, the first that is set."""
    base_url: str | None = None
    regions: Mapping[str, str] = {}
    """Other addresses of the service, by what the option `region` calls them; each has its own key."""
    model: str | None = None
    """The default; without one the user has to choose."""
    catalog: str = ""
    """The name of the catalogue that comes with the package, if there is one."""
    list_url: Callable[[str], str] = openai_list_url
    """The address of the list, made from the base URL."""
    entries: str = "data"
    """The field with the list."""
    key: str = "id"
    """The field with a model's name."""
    read: ReadModel = read_openai
    sign: Callable[[str], Mapping[str, str]] = bearer
    """The headers that carry a key."""
    headers: Mapping[str, str] = {}
    key_url: Callable[[str], str] | None = None
    """Where a wrong key is refused, if the list itself is open to everybody."""
    describe: DescribeRefusal | None = None
    """The vendor's own reading of a refusal, where the status does not tell."""

    def find_list(self, base_url: str) -> str:
        """Where the list of models is for a profile with this base URL."""
        return self.list_url(base_url)
