from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from robota.core.provider import Provider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.remote import RemoteProvider
from robota.testing import ModelServer, ScriptedProvider
from robota.testing.conformance import HttpProviderConformance, ProviderConformance
from robota.testing.remote_host import RemoteHost
from robota.testing.reply_conformance import ScriptedReply

KEY = "key-of-the-client"


class HostedProvider(RemoteProvider):
    """A remote provider that takes its host along when it is closed."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self._host = ExitStack()
        host = self._host.enter_context(RemoteHost(inner, api_key=KEY).in_thread())
        super().__init__(host.url, KEY, inner.name, "test-model")

    async def aclose(self) -> None:
        await super().aclose()
        if isinstance(self._inner, OpenAICompatibleProvider):
            await self._inner.aclose()
        self._host.close()


class TestRemoteScript(ProviderConformance):
    def make_provider(self, script: Sequence[ScriptedReply]) -> Provider:
        return HostedProvider(ScriptedProvider(*script))


class TestRemoteService(HttpProviderConformance):
    """A model service behind a host: what happens to the host happens to its client. Every byte of what comes
    from a host is tried in `test_remote_wire.py`."""

    cut_every = 13

    def make_provider(self, server: ModelServer) -> Provider:
        return HostedProvider(OpenAICompatibleProvider("test", f"{server.url}/v1", name="upstream"))
