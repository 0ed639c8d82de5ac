from __future__ import annotations

import httpx2
import pytest

from robota.core.errors import ConfigurationError
from robota.core.provider import NativeWebTools
from robota.providers.deepseek import DeepSeekProvider
from robota.providers.gemma import GemmaProvider
from robota.providers.lmstudio import LmStudioProvider
from robota.providers.ollama import OllamaProvider
from robota.providers.openrouter import OpenRouterProvider
from robota.providers.qwen import REGIONS, QwenProvider
from robota.providers.vllm import VllmProvider
from robota.testing.reply_conformance import ask, listen

pytestmark = pytest.mark.anyio

REPLY = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "output": []}'
HOSTED = [
    (DeepSeekProvider, "DEEPSEEK_API_KEY", "https://api.deepseek.com/chat/completions"),
    (OpenRouterProvider, "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1/chat/completions"),
    (QwenProvider, "DASHSCOPE_API_KEY", f"{REGIONS['singapore']}/chat/completions"),
]
LOCAL = [
    (GemmaProvider, "http://localhost:1234/v1", "Bearer lm-studio"),
    (LmStudioProvider, "http://localhost:1234/v1", "Bearer lm-studio"),
    (OllamaProvider, "http://localhost:11434/v1", None),
    (VllmProvider, "http://localhost:8000/v1", None),
]


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for _, variable, _ in HOSTED:
        monkeypatch.setenv(variable, f"{variable}-secret")


class Post:
    """Takes requests in the place of the network."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self.transport = httpx2.MockTransport(self.answer)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(200, content=REPLY)

    async def sent(self, make, request=None, **options) -> tuple[str, str | None]:
        """Where a request goes, and with which key."""
        provider = make(transport=self.transport, **{"model": "m", **options})
        await listen(provider, request)
        return str(self.requests[-1].url), self.requests[-1].headers.get("authorization")


@pytest.mark.parametrize(("make", "variable", "url"), HOSTED)
async def test_the_vendor_gets_its_key_from_the_environment(make, variable, url) -> None:
    assert await Post().sent(make) == (url, f"Bearer {variable}-secret")


@pytest.mark.parametrize(("make", "variable", "url"), HOSTED)
async def test_no_other_host_gets_the_key_from_the_environment(make, variable, url) -> None:
    host = httpx2.URL(url).host
    for elsewhere in (
        "https://gateway.example/v1",
        f"http://{host}/v1",
        f"https://{host}.example/v1",
        f"https://evil-{host}/v1",
        f"https://{host}@evil.example/v1",
        f"https://{host}:8443/v1",
        f"https://evil.example/{host}",
        f"https://evil.example#@{host}/v1",
    ):
        post = Post()
        await post.sent(make, base_url=elsewhere)
        sent = f"{post.requests[0].url} {post.requests[0].headers.raw} {post.requests[0].read()!r}"
        assert variable not in sent, elsewhere


@pytest.mark.parametrize(("make", "variable", "url"), HOSTED)
async def test_a_key_that_is_given_goes_where_it_is_told_to_go(make, variable, url) -> None:
    given = {"api_key": "mine", "base_url": "https://gateway.example/v1"}
    assert await Post().sent(make, **given) == ("https://gateway.example/v1/chat/completions", "Bearer mine")
    assert (await Post().sent(make, api_key=""))[1] is None


@pytest.mark.parametrize(("make", "variable", "url"), HOSTED)
async def test_capitals_and_the_usual_port_are_the_same_host(make, variable, url) -> None:
    address = httpx2.URL(url.removesuffix("/chat/completions"))
    written = f"https://{address.host.upper()}:443{address.path}"
    assert (await Post().sent(make, base_url=written))[1] == f"Bearer {variable}-secret"


@pytest.mark.parametrize(("make", "url", "key"), LOCAL)
async def test_a_local_server_is_found_where_it_usually_is(make, url, key) -> None:
    assert await Post().sent(make) == (f"{url}/chat/completions", key)


@pytest.mark.parametrize(("make", "url", "key"), LOCAL)
@pytest.mark.parametrize(
    "given", ["http://10.0.0.5:9000", "http://10.0.0.5:9000/", "http://10.0.0.5:9000/v1/"]
)
async def test_a_host_alone_gets_the_usual_path(make, url, key, given) -> None:
    assert await Post().sent(make, base_url=given) == ("http://10.0.0.5:9000/v1/chat/completions", key)


@pytest.mark.parametrize("make", [make for make, *_ in (*HOSTED, *LOCAL)])
def test_an_address_that_is_none_is_refused_in_a_sentence(make) -> None:
    for address in ("localhost:1234", "not an address", "http://[::1"):
        with pytest.raises(ConfigurationError, match="is not a web address"):
            make(base_url=address)


@pytest.mark.parametrize("region", REGIONS)
async def test_qwen_has_four_regions_with_one_key_each(region) -> None:
    post, search = Post(), NativeWebTools(web_search=True)
    options = {"region": region, "built_in_web_tools": search}
    url, key = await post.sent(QwenProvider, **options)
    assert (url, key) == (f"{REGIONS[region]}/chat/completions", "Bearer DASHSCOPE_API_KEY-secret")
    url, key = await post.sent(QwenProvider, ask(native_web_tools=search), **options)
    assert (url, key) == (f"{REGIONS[region]}/responses", "Bearer DASHSCOPE_API_KEY-secret")
    assert len(REGIONS) == 4


def test_a_region_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="no region 'mars'; use one of singapore, beijing"):
        QwenProvider(region="mars")


def test_models_and_names_have_defaults_where_the_vendor_has_one_model_for_all() -> None:
    defaults = {make().name: make().model for make, *_ in (*HOSTED, *LOCAL)}
    assert defaults == {
        "deepseek": "deepseek-v4-flash",
        "openrouter": None,
        "qwen": "qwen-plus",
        "gemma": None,
        "lm-studio": None,
        "ollama": None,
        "vllm": None,
    }
