"""A profile's settings as a provider needs them: defaults filled in, the key looked up, options checked.

A key is resolved here, at the last moment, and goes to one place only: the key of a profile to the address of
that profile, the vendor's variable to the vendor's own host. No text made here holds a key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from urllib.parse import urlsplit

from msgspec.structs import replace

from robota.core.credentials import ENV_REFERENCE_PREFIX, is_env_reference, resolve_env_reference
from robota.core.errors import AuthenticationError, ConfigurationError
from robota.core.messages import Json
from robota.core.provider import ChatRequest, Chunk, Provider, ProviderWrapper, get_provider_capabilities
from robota.core.provider_definition import ProviderConfig, ProviderDefinition
from robota.providers.catalog import suggest

USUAL_OPTIONS: dict[str, type] = {"headers": dict, "vision": bool, "files": bool, "output_schema": bool}
"""What most adapters take: more headers, and what the user knows of a model and nobody else can."""
_ABILITIES = ("vision", "files", "output_schema")
_WORDS: dict[type, str] = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    float: "a number",
    dict: "an object",
    list: "a list",
}


def settle(
    config: ProviderConfig, defaults: ProviderConfig, title: str, *, needs_key: bool = False
) -> ProviderConfig:
    """What to work with; `needs_key` refuses to go to the vendor's own host without one."""
    base_url = _resolve(config.base_url, "base URL", title) or defaults.base_url
    if base_url is not None and not is_web_address(base_url):
        raise ConfigurationError(
            f"The base URL {base_url!r} of {_within(title)} is not a web address; it must look like "
            "https://host/v1 or http://localhost:8080/v1."
        )
    at_home = defaults.base_url is not None and is_same_host(base_url, defaults.base_url)
    key = _resolve(config.api_key, "key", title)
    if key is None and at_home and defaults.api_key is not None:
        key = resolve_env_reference(defaults.api_key)
        if not key and needs_key:
            variable = defaults.api_key.removeprefix(ENV_REFERENCE_PREFIX)
            raise ConfigurationError(f"{title} needs an API key: set {variable} or give the profile a key.")
    return ProviderConfig(
        model=config.model or defaults.model,
        api_key=(key or "").strip() or None,
        base_url=base_url,
        timeout=config.timeout or defaults.timeout,
        options={**defaults.options, **config.options},
    )


def is_same_host(one: str | None, other: str | None) -> bool:
    """Whether two addresses lead to the same scheme, host and port."""
    if one is None or other is None:
        return one is other
    return _origin(one) == _origin(other)


def read_options(config: ProviderConfig, title: str, known: Mapping[str, type]) -> dict[str, Json]:
    """The profile's own options as keyword arguments; settings files spell them in camelCase."""
    read: dict[str, Json] = {}
    for written, value in config.options.items():
        name = _snake_case(written)
        kind = known.get(name)
        if kind is None:
            raise ConfigurationError(f"{title} has no option {written!r}: {suggest(name, known)}.")
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise ConfigurationError(f"The option {written!r} of {_within(title)} must be {_WORDS[kind]}.")
        if name == "headers" and not all(isinstance(item, str) for item in value.values()):
            raise ConfigurationError(f"The option {written!r} of {_within(title)} must hold texts only.")
        read[name] = value
    return read


def make_provider(
    make: Callable[..., Provider], settled: ProviderConfig, options: dict[str, Json]
) -> Provider:
    """The provider with these options; it knows what it can do, unless the options say otherwise."""
    abilities = {name: options.pop(name) for name in _ABILITIES if name in options}
    given = (settled.api_key, settled.base_url, settled.model)
    made = make(*given, **options)
    if not abilities:
        return made
    able = replace(get_provider_capabilities(made), **abilities)
    return make(*given, **options, capabilities=able)


def _resolve(written: str | None, what: str, title: str) -> str | None:
    text = (written or "").strip()
    if not text:
        return None
    value = resolve_env_reference(text)
    if value is None and is_env_reference(text):
        variable = text.removeprefix(ENV_REFERENCE_PREFIX)
        raise ConfigurationError(
            f"The {what} of {_within(title)} is to be read from the variable {variable}, which is not set: "
            f"set it or configure another {what}."
        )
    return value


def _within(title: str) -> str:
    """The title in the middle of a sentence."""
    return f"the {title.removeprefix('The ')}" if title.startswith("The ") else title


def is_web_address(address: str) -> bool:
    """Whether a provider can be there."""
    return bool(_origin(address)[1])


def _origin(address: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return address, "", None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "") if usual else "", port or usual


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


FORBIDDEN = 403
"""The key is known, but not good for this: the advice of the error itself is better."""


class KeyAdvice(ProviderWrapper):
    """The provider; when it is refused for its key, the error says which variable or option to look at."""

    def __init__(self, inner: Provider, advice: str) -> None:
        super().__init__(inner)
        self._advice = advice

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        async with aclosing(self.inner.stream(request)) as chunks:
            try:
                async for chunk in chunks:
                    yield chunk
            except AuthenticationError as error:
                if not error.problem or error.status == FORBIDDEN:
                    raise
                raise AuthenticationError(
                    f"{error.problem}; {self._advice}.",
                    provider=error.provider,
                    status=error.status,
                    request_id=error.request_id,
                ) from error


def advise(definition: ProviderDefinition, config: ProviderConfig) -> str:
    """Where the key of this choice comes from, or where it would."""
    if config.api_key and is_env_reference(config.api_key):
        return f"set {config.api_key.removeprefix(ENV_REFERENCE_PREFIX)} to a key that is good there"
    if definition.defaults.api_key:
        return f"set {definition.defaults.api_key.removeprefix(ENV_REFERENCE_PREFIX)}"
    where = f" --base-url {config.base_url}" if config.base_url else ""
    return f"set OPENAI_API_KEY and use --provider openai{where}"


# --- servers of the user's own: how one is recognised, and how the model is asked that it has --------------

OWN_SERVERS = ("ollama", "lmstudio", "vllm", "gemma", "local-server")
"""Types of providers whose server is asked."""
CONSTRAINING = ("llama.cpp", "vllm", "ollama")
"""Servers that keep a model to a schema."""
SMALL_PARAMETERS = 4_000_000_000
"""Models below rarely make a proper call by themselves, and hardly ever a wrong one under a schema."""
_HOME_NAMES = (".local", ".localhost", ".lan", ".internal", ".home.arpa")


def is_own_server(address: str) -> bool:
    """Whether the address leads to this machine or into a private network, as far as it tells."""
    from ipaddress import ip_address  # noqa: PLC0415 - few name an address

    from robota.http.errors import UrlError  # noqa: PLC0415 - definitions load no HTTP
    from robota.http.url import parse_url  # noqa: PLC0415

    try:
        url = parse_url(address)
    except UrlError:  # the provider will say so
        return False
    if url.is_address:
        return ip_address(url.host).is_private
    return "." not in url.host or url.host.endswith(_HOME_NAMES)


async def fit_to_server(
    definition: ProviderDefinition, config: ProviderConfig
) -> tuple[ProviderConfig, str | None]:
    """The profile with what its server says, and a note: the window, and that a small model is held to a
    schema.
    """
    address = config.base_url or definition.defaults.base_url
    if definition.type not in OWN_SERVERS or address is None:
        return config, None
    from robota.providers.local.detect import ask_local_server  # noqa: PLC0415 - for own servers only
    from robota.providers.local.request import TINY_PARAMETERS  # noqa: PLC0415

    model = config.model or ""
    server = await ask_local_server(address, load=model)
    served = None if server is None else server.find(model)
    if server is None or served is None:
        return config, None
    options = {**config.options, "context_size": served.context_window}
    count, note = served.parameters, None
    if count is not None and count < SMALL_PARAMETERS and server.kind in CONSTRAINING:
        options |= {"constrain": True, "examples": count < TINY_PARAMETERS}
        size = f"{count / 1e9:.1f} billion" if count >= 1e9 else f"{count / 1e6:.0f} million"
        name = model.rpartition("/")[2]
        note = f"{name} is small ({size} parameters): it is held to a schema, one tool call at a time."
    known = {name: value for name, value in options.items() if value is not None}
    return replace(config, options=known), note
