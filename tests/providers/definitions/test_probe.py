from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply

from robota.core.provider_definition import ProbeResult, ProviderConfig, ProviderDefinition
from robota.providers.definitions import our_definitions

pytestmark = pytest.mark.anyio

DEFINITIONS = {definition.type: definition for definition in our_definitions()}
KEY = "key-that-nobody-may-see"
JSON = {"content-type": "application/json"}
OPENAI_LIST = {"object": "list", "data": [{"id": "alpha-large"}, {"id": "alpha-small"}, {"id": "beta"}]}
GOOGLE_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    }
}
LISTS: dict[str, Any] = {
    "gemini": {"models": [{"name": f"models/{model['id']}"} for model in OPENAI_LIST["data"]]},  # type: ignore[index]
    "ollama": {"models": [{"name": f"{model['id']}:latest"} for model in OPENAI_LIST["data"]]},  # type: ignore[index]
}
ASKED = {
    "anthropic": ["/v1/models?limit=1000"],
    "gemini": ["/v1/models?pageSize=1000"],
    "ollama": ["/api/tags"],
    "openrouter": ["/v1/key", "/v1/models"],
}
OVER_HTTP = [
    definition
    for definition in DEFINITIONS.values()
    if definition.type not in ("scripted", "local", "remote")
]
over_http = pytest.mark.parametrize("definition", OVER_HTTP, ids=lambda definition: definition.type)


def answer(body: Any, status: int = 200) -> Reply:
    return Reply([json.dumps(body).encode()], status, JSON)


def good_replies(definition: ProviderDefinition) -> list[Reply]:
    listed = answer(LISTS.get(definition.type, OPENAI_LIST))
    return [answer({"data": {"label": "mine"}}), listed] if definition.type == "openrouter" else [listed]


async def probe(definition: ProviderDefinition, url: str, model: str = "alpha-large") -> ProbeResult:
    assert definition.probe is not None
    return await definition.probe(ProviderConfig(model=model, api_key=KEY, base_url=url))


def is_one_sentence(text: str) -> bool:
    return text[-1] in ".?" and "\n" not in text and ". " not in text and KEY not in text


@over_http
async def test_a_profile_that_works_is_said_to_work(definition: ProviderDefinition) -> None:
    async with Loopback(*good_replies(definition)) as server:
        result = await probe(definition, server.url)

    assert (result.ok, is_one_sentence(result.message)) == (True, True), result.message
    assert "answers and has alpha-large" in result.message
    assert len(result.models) == 3
    assert [request.path for request in server.requests] == ASKED.get(definition.type, ["/v1/models"])
    header = "x-goog-api-key" if definition.type == "gemini" else "authorization"
    assert KEY in server.requests[0].headers[header]


@over_http
async def test_a_wrong_key_is_one_sentence(definition: ProviderDefinition) -> None:
    body = {"error": {"type": "authentication_error", "message": f"bad key {KEY}"}}
    wrong = answer(GOOGLE_KEY, 400) if definition.type == "gemini" else answer(body, 401)
    async with Loopback(wrong) as server:
        result = await probe(definition, server.url)

    assert (result.ok, is_one_sentence(result.message.replace("valid. Please", ""))) == (False, True)
    assert "refused the API key" in result.message
    assert result.message.startswith(("The ", definition.title))


@over_http
async def test_a_wrong_model_is_one_sentence_with_the_nearest_names(definition: ProviderDefinition) -> None:
    async with Loopback(*good_replies(definition)) as server:
        result = await probe(definition, server.url, "alpha-lage")

    assert (result.ok, is_one_sentence(result.message)) == (False, True)
    assert "has no model 'alpha-lage': the nearest are alpha-large" in result.message


@over_http
async def test_a_host_that_cannot_be_reached_is_one_sentence(definition: ProviderDefinition) -> None:
    result = await probe(definition, "http://127.0.0.1:9/v1")

    assert (result.ok, is_one_sentence(result.message)) == (False, True)
    assert "could not be reached at http://127.0.0.1:9" in result.message


@over_http
async def test_a_web_page_in_place_of_a_list_is_one_sentence(definition: ProviderDefinition) -> None:
    page = Reply([b"<html>Welcome</html>"], 200, {"content-type": "text/html"})
    async with Loopback(page, page) as server:
        result = await probe(definition, server.url)

    assert (result.ok, is_one_sentence(result.message)) == (False, True)
    assert "check the base URL" in result.message


@over_http
async def test_an_answer_that_is_no_list_is_one_sentence(definition: ProviderDefinition) -> None:
    for odd in ([], {"data": 3}, {"models": {}}, "hello"):
        async with Loopback(answer(odd), answer(odd)) as server:
            result = await probe(definition, server.url)

        assert (result.ok, is_one_sentence(result.message)) == (False, True)
        assert "not with a list of models" in result.message


async def test_an_endpoint_without_a_list_is_not_held_against_it() -> None:
    async with Loopback(answer({"error": {"message": "no such route"}}, 404)) as server:
        result = await probe(DEFINITIONS["openai-compatible"], server.url)

    assert (result.ok, is_one_sentence(result.message)) == (True, True)
    assert "no list of models to check" in result.message


async def test_a_server_without_models_is_told_to_load_one() -> None:
    async with Loopback(answer({"models": []})) as server:
        result = await probe(DEFINITIONS["ollama"], server.url)

    assert result == ProbeResult(
        ok=False, message="Ollama answers, but has no models: load or pull one first."
    )


async def test_a_profile_without_a_model_lists_what_there_is() -> None:
    async with Loopback(answer(OPENAI_LIST)) as server:
        result = await probe(DEFINITIONS["openai"], server.url, "")

    assert not result.ok
    assert result.message == (
        "OpenAI answers, but the profile names no model: there are alpha-large, alpha-small, beta."
    )


async def test_a_missing_key_is_noticed_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert DEFINITIONS["anthropic"].probe is not None

    result = await DEFINITIONS["anthropic"].probe(ProviderConfig())

    assert result.message == "Anthropic needs an API key: set ANTHROPIC_API_KEY or give the profile a key."


@pytest.mark.parametrize("type", ["anthropic", "openai", "deepseek"])
async def test_the_key_of_the_environment_is_not_sent_to_another_host(
    type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = DEFINITIONS[type]
    monkeypatch.setenv(str(definition.defaults.api_key).removeprefix("$ENV:"), KEY)
    assert definition.refresh is not None
    async with Loopback(*good_replies(definition)) as server:
        await definition.refresh(ProviderConfig(base_url=server.url))

    assert KEY not in str(server.requests[0].headers)


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with Loopback() as thief, Loopback(Reply([], 302, {"location": f"{thief.url}/models"})) as server:
        result = await probe(DEFINITIONS["openai-compatible"], server.url)

    assert thief.requests == []
    assert "moved to" in result.message


async def test_a_service_that_says_nothing_is_given_up_on() -> None:
    assert DEFINITIONS["ollama"].probe is not None
    async with Loopback(Reply([], hang=True)) as server:
        result = await DEFINITIONS["ollama"].probe(
            ProviderConfig(model="m", base_url=server.url, timeout=0.05)
        )

    assert "did not answer in time" in result.message


@over_http
@pytest.mark.parametrize("address", ["http://[::1/v1", "localhost:8080", "ftp://host/v1", "http://"])
async def test_what_is_no_address_is_one_sentence(definition: ProviderDefinition, address: str) -> None:
    result = await probe(definition, address)

    assert (result.ok, is_one_sentence(result.message)) == (False, True)
    assert f"The base URL {address!r} of" in result.message
