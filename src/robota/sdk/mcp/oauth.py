"""Logins at remote servers: tokens live in the user's key store, and are renewed without a question.

Importing this loads the protocol's library.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2
import msgspec
from anyio import to_thread
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from msgspec import Struct
from pydantic import AnyUrl, BaseModel, ValidationError

from robota.core.errors import ConfigurationError
from robota.sdk.auth import KeyStore
from robota.sdk.mcp.pinned import PinnedMetadata
from robota.sdk.places import Places
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.failure import LoginNeededError

ModelT = TypeVar("ModelT", bound=BaseModel)


class KeptLogin(Struct, omit_defaults=True):
    """What is kept for one server, each part as the library writes it."""

    tokens: str = ""
    client: str = ""
    metadata: str = ""
    expires: float = 0.0
    """When the tokens have to be renewed; 0: nobody said."""


class LoginStore:
    """The login at one server, as the library wants to keep it."""

    def __init__(self, definition: ServerDefinition, places: Places) -> None:
        self._keys = KeyStore(places.robota_home)
        mark = hashlib.sha256(definition.url.encode()).hexdigest()[:12]
        self.name = f"mcp:{definition.name}:{mark}"
        self.kept = self._read()
        self.provider: OAuthClientProvider | None = None

    def _read(self) -> KeptLogin:
        try:
            return msgspec.json.decode(self._keys.get(self.name) or "{}", type=KeptLogin)
        except (ConfigurationError, msgspec.DecodeError):
            return KeptLogin()

    async def get_tokens(self) -> OAuthToken | None:
        return _parse(OAuthToken, self.kept.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.kept.tokens = tokens.model_dump_json(exclude_none=True)
        self.kept.expires = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        metadata = None if self.provider is None else self.provider.context.oauth_metadata
        if metadata is not None:
            self.kept.metadata = metadata.model_dump_json(exclude_none=True)
        await self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return _parse(OAuthClientInformationFull, self.kept.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.kept.client = client_info.model_dump_json(exclude_none=True)
        await self._write()

    async def _write(self) -> None:
        text = msgspec.json.encode(self.kept).decode()
        await to_thread.run_sync(self._keys.set, self.name, text)


def _parse(kind: type[ModelT], text: str) -> ModelT | None:
    try:
        return kind.model_validate_json(text) if text else None
    except ValidationError:
        return None


def make_auth(
    store: LoginStore,
    definition: ServerDefinition,
    *,
    address: str = "http://127.0.0.1/callback",
    open_page: Callable[[str], Awaitable[None]] | None = None,
    wait_for_code: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
) -> httpx2.Auth:
    """What signs requests. Without a page to open, a login that is not there is an error."""

    async def refuse(url: str) -> None:
        raise LoginNeededError(f"{definition.name} wants a login.")

    options = definition.oauth
    if options is not None and options.client_id and not store.kept.client:
        known = OAuthClientInformationFull(client_id=options.client_id, redirect_uris=[AnyUrl(address)])
        store.kept.client = known.model_dump_json(exclude_none=True)
    metadata = OAuthClientMetadata(
        client_name="robota",
        redirect_uris=[AnyUrl(address)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
        scope=(options.scopes or None) if options is not None else None,
    )
    provider = OAuthClientProvider(
        server_url=definition.url,
        client_metadata=metadata,
        storage=store,
        redirect_handler=open_page or refuse,
        callback_handler=wait_for_code,
    )
    provider.context.token_expiry_time = store.kept.expires or None
    provider.context.oauth_metadata = _parse(OAuthMetadata, store.kept.metadata)
    store.provider = provider
    if options is not None and options.metadata_url:
        return PinnedMetadata(provider, definition, options.metadata_url)
    return provider
