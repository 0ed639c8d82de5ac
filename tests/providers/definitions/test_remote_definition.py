from __future__ import annotations

import pytest
from tests.providers.loopback import Loopback, Reply

from robota.core.provider_definition import ProbeResult, ProviderConfig
from robota.providers.remote import define
from robota.providers.scripted import ScriptedProvider
from robota.testing.remote_host import RemoteHost

pytestmark = pytest.mark.anyio

DEFINITION = define()

KEY = "key-to-the-host"


async def probe(url: str, key: str = KEY, **options: str) -> ProbeResult:
    assert DEFINITION.probe is not None
    config = ProviderConfig(
        model="big", api_key=key, base_url=url, options={"provider": "scripted", **options}
    )
    return await DEFINITION.probe(config)


async def test_a_host_that_knows_the_key_answers() -> None:
    async with RemoteHost(ScriptedProvider("ok"), api_key=KEY) as host:
        result = await probe(host.url)

    assert result.ok
    assert result.message == (
        "The remote host answers; whether scripted has big shows with the first prompt."
    )


async def test_a_wrong_key_to_the_host_is_one_sentence() -> None:
    async with RemoteHost(ScriptedProvider("ok"), api_key=KEY) as host:
        result = await probe(host.url, "wrong-key-for-the-host")

    assert result == ProbeResult(ok=False, message="The host does not accept this key; check user_api_key.")


async def test_a_host_that_cannot_be_reached_is_one_sentence() -> None:
    result = await probe("http://127.0.0.1:9")

    assert not result.ok
    assert "could not be reached at http://127.0.0.1:9" in result.message


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(404, b"{}", "check the model name and the base URL"), (200, b"{}", "is not a robota host")],
)
async def test_something_that_is_no_host_is_one_sentence(status: int, body: bytes, words: str) -> None:
    async with Loopback(Reply([body], status, {"content-type": "application/json"})) as server:
        result = await probe(server.origin)

    assert not result.ok
    assert words in result.message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ProviderConfig(api_key=KEY, base_url="http://h", model="m"), "needs the option 'provider'"),
        (ProviderConfig(api_key=KEY, base_url="http://h", options={"provider": "p"}), "needs a model"),
        (ProviderConfig(base_url="http://h", model="m", options={"provider": "p"}), "the key to the host"),
        (ProviderConfig(api_key=KEY, model="m", options={"provider": "p"}), "needs a server_url"),
    ],
)
async def test_what_is_missing_is_said_before_anything_is_sent(config: ProviderConfig, words: str) -> None:
    assert DEFINITION.probe is not None
    assert words in (await DEFINITION.probe(config)).message
