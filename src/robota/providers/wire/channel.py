"""How adapters reach a model service: requests to one address, every failure as one of our errors.

Addresses and headers are prepared once; the HTTP client is loaded with the first request. Redirects are not
followed, so a key goes to the host it was configured for and to no other. No error text repeats a secret.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from robota._lazy_pattern import lazy_pattern
from robota._version import __version__
from robota.core.errors import AuthenticationError, ConfigurationError, NetworkError, ProviderError
from robota.core.jsontext import decode
from robota.core.messages import Json
from robota.http.errors import HeaderError, HttpError, UrlError
from robota.http.exchange import Reply, Request, build_request
from robota.http.url import Url, parse_url
from robota.providers.service import bearer
from robota.providers.wire.errors import DescribeRefusal, Refusal, describe_refusal
from robota.providers.wire.provider import Channel

if TYPE_CHECKING:
    import httpx2

    from robota.http.client import HttpClient


MAX_ERROR_BYTES = 64 * 1024
MAX_JSON_BYTES = 16 * 1024 * 1024
PATIENCE = 20.0
"""Seconds for the whole answer to a question."""
_DEFAULT_HEADERS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": f"robota/{__version__}",
}
_SECRET_WORDS = ("authorization", "key", "token", "secret", "cookie")
_CREDENTIALS = lazy_pattern(r"(?P<scheme>[^/?#]*://)(?P<user>[^/?#@:]*):?(?P<password>[^/?#]*)@")


class HttpChannel(Channel):
    """The way to one service, at one address unless `address` says where requests for a model go.

    `key` goes into the headers as `sign` says; `headers` win over it. It is hidden in every error, and so are
    a password in the URL and the values of headers that look secret. `describe` makes the error of an answer
    that is not 200, for services with errors of their own kind. `silence` is how many seconds the service may
    send nothing; by default that is left to the idle timer of the loop. `client` and `transport` are httpx2's
    own, and make all requests go its way: a client keeps its headers, proxies, hooks and connections and is
    not closed here; a transport is, and serves one event loop only.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        provider: str,
        key: str | None = None,
        sign: Callable[[str], Mapping[str, str]] = bearer,
        address: Callable[[str], str] | None = None,
        describe: DescribeRefusal = describe_refusal,
        transport: httpx2.AsyncBaseTransport | None = None,
        client: httpx2.AsyncClient | None = None,
        silence: float | None = None,
    ) -> None:
        self.provider = provider
        self._url, user, password = _split_credentials(url)
        place = self._parse(self._url)
        self.origin = f"{place.scheme}://{place.authority}"
        key = (key or "").strip()
        given = {**(sign(key) if key else {}), **(headers or {})}
        own = {name.lower(): value for name, value in given.items()}
        if user or password:
            own["authorization"] = _encode_basic(user, password)
        hidden = [key, password, *(value for name, value in own.items() if is_secret(name))]
        self.secrets = tuple(secret for secret in hidden if secret)
        if self.secrets and transport is None and client is None:
            refuse_open_road(place, provider)
        self._headers = {**_DEFAULT_HEADERS, **own}
        self._prepare("POST", place)  # refuses headers that cannot be sent
        self._requests: dict[str, Request] = {}
        """By model."""
        self._address = address
        self._describe = describe
        self._silence = silence
        self._transport = transport
        self._given_client = client
        self._client: HttpClient | None = None

    async def open(self, body: bytes, *, model: str = "") -> Reply:
        request = self._requests.get(model)
        if request is None:
            address = _split_credentials(self._address_of(model))[0]
            place = self._parse(address)
            if not self.secrets and self._transport is None and self._given_client is None:
                require_key(place.host, self.provider)
            request = self._requests[model] = self._prepare("POST", place)
        try:
            reply = await (self._client or self._connect()).send(request, body, repeatable=True)
        except HttpError as error:
            raise self.translate(error) from error
        if 200 <= reply.status < 300:
            return reply
        try:
            said = await reply.read(MAX_ERROR_BYTES)
        except HttpError:
            said = b""  # half an explanation: the status says enough
        raise self._refuse(reply, said, model, self._address_of(model))

    async def ask(
        self, method: str, below: str = "", *, body: bytes = b"", model: str = "", timeout: float
    ) -> Json:
        """One question below the address, one JSON answer within so many seconds; a refusal is raised.

        Only a GET has to be answered with something: to other questions nothing is an answer, `{}`.
        """
        import asyncio  # noqa: PLC0415 - a loop is running, so it is loaded

        request = self._prepare(method, self._parse(self._url + below))
        try:
            async with asyncio.timeout(timeout):
                reply = await (self._client or self._connect()).send(request, body)
                answer = await reply.read(MAX_JSON_BYTES)
        except HttpError as error:
            raise self.translate(error) from error
        except TimeoutError as error:
            raise NetworkError(
                f"{self.provider} at {self.origin} did not answer in time ({timeout:g} s); "
                "check the address and the network, or try again.",
                provider=self.provider,
            ) from error
        if not 200 <= reply.status < 300:
            raise self._refuse(reply, answer, model, self._url + below)
        try:
            return decode(answer or (b"" if method == "GET" else b"{}"))
        except ValueError as error:
            raise ProviderError(
                f"{self.provider} at {self.origin} answered with something that is not JSON; "
                "check the base URL: this may be a web page or a proxy.",
                provider=self.provider,
                status=reply.status,
            ) from error

    def _address_of(self, model: str) -> str:
        return self._url if self._address is None else self._address(model)

    def _refuse(self, reply: Reply, said: bytes, model: str, url: str) -> Exception:
        refusal = Refusal(reply.status, reply.headers, said, model, url)
        return self._describe(refusal, self.provider, self.secrets)

    async def aclose(self) -> None:
        """Close the connections of all event loops; another request would open new ones."""
        if self._client is not None:
            await self._client.aclose()

    def _connect(self) -> HttpClient:
        from robota.http.client import HttpClient  # noqa: PLC0415 - with asyncio 40 ms, paid by the first request

        detour = None
        if self._transport is not None or self._given_client is not None:
            from robota.http.detour import Detour  # noqa: PLC0415 - loads httpx2

            detour = Detour(transport=self._transport, client=self._given_client)
        self._client = HttpClient(silence=self._silence, detour=detour)
        return self._client

    def _parse(self, address: str) -> Url:
        try:
            return parse_url(address)
        except UrlError as error:
            raise ConfigurationError(
                f"The base URL of provider {self.provider!r} is not a web address: it leads to {address!r} "
                "and must look like https://host/v1 or http://localhost:8080/v1."
            ) from error

    def _prepare(self, method: str, url: Url) -> Request:
        try:
            return build_request(method, url, self._headers)
        except HeaderError as error:
            raise ConfigurationError(
                f"The header {error.name!r} of provider {self.provider!r} has characters that HTTP does not "
                "allow; check the key or value for line breaks and letters that are not ASCII."
            ) from error


def _split_credentials(url: str) -> tuple[str, str, str]:
    """The address without user and password, and these."""
    found = _CREDENTIALS.match(url)
    if found is None:
        return url, "", ""
    from urllib.parse import unquote  # noqa: PLC0415 - few addresses have credentials

    return found["scheme"] + url[found.end() :], unquote(found["user"]), unquote(found["password"])


def _encode_basic(user: str, password: str) -> str:
    from base64 import b64encode  # noqa: PLC0415 - as above

    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def is_secret(header: str) -> bool:
    name = header.lower()
    return any(word in name for word in _SECRET_WORDS)


async def get_json(
    url: str,
    headers: Mapping[str, str],
    *,
    provider: str,
    key: str | None,
    sign: Callable[[str], Mapping[str, str]] = bearer,
    describe: DescribeRefusal = describe_refusal,
    timeout: float | None = None,
) -> Json:
    """The JSON at that address; a refusal, a failure or anything that is not JSON is raised."""
    asked = {"accept": "application/json", "accept-encoding": "gzip", **headers}
    channel = HttpChannel(url, asked, provider=provider, key=key, sign=sign, describe=describe)
    try:
        return await channel.ask("GET", timeout=timeout or PATIENCE)
    finally:
        await channel.aclose()


# --- where a key is wanted, and where none may go: known before anything is sent -------------------------

KEY_VARIABLES: dict[str, str] = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "dashscope-intl.aliyuncs.com": "DASHSCOPE_API_KEY",
    "dashscope-us.aliyuncs.com": "DASHSCOPE_API_KEY",
    "cn-hongkong.dashscope.aliyuncs.com": "DASHSCOPE_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Hosts that answer nobody without a key, and the variable that usually has it."""
INSECURE_HOSTS = "ROBOTA_INSECURE_HOSTS"
"""The variable that names hosts, with commas, to which a key may go without encryption."""
_NEAR = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test", ".example", ".invalid")
"""Ends of names that lead nowhere in the public net."""


def require_key(host: str, provider: str) -> None:
    """Refuse a request that has no key and would be refused for it."""
    if variable := KEY_VARIABLES.get(host):
        raise AuthenticationError(
            f"{provider} has no key for {host}, so nothing was sent: set {variable} or pass api_key.",
            provider=provider,
        )


def refuse_open_road(url: Url, provider: str) -> None:
    """Refuse to send a key where everybody on the way can read it."""
    if url.scheme != "http" or is_near(url.host):
        return
    said = os.environ.get(INSECURE_HOSTS, "").lower().split(",")
    if url.host not in map(str.strip, said):
        raise ConfigurationError(
            f"The key of provider {provider!r} would go to {url.host} without encryption: use https://, or "
            f"name the host in {INSECURE_HOSTS} if this is meant."
        )


def is_near(host: str) -> bool:
    """Whether a host is this machine or one of the same network, by its name or address."""
    if ("." not in host and ":" not in host) or host.endswith(_NEAR):
        return True
    from robota.http.address import describe_special  # noqa: PLC0415 - only for plain HTTP with a key

    try:
        return describe_special(host.strip("[]")) is not None
    except ValueError:
        return False  # a name of the public kind
