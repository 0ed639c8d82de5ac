"""What to do about a key that was refused, in the words of the command line."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from robota.core.env_ref import ENV_REFERENCE_PREFIX, is_env_reference
from robota.core.errors import AuthenticationError
from robota.core.provider import ChatRequest, Chunk, Provider, ProviderWrapper
from robota.core.provider_definition import ProviderConfig, ProviderDefinition

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
