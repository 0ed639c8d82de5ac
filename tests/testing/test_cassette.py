from __future__ import annotations

import httpx2
import pytest
import yaml
from tests.support.lazy import openai

from robota import Robota
from robota.core.errors import ConfigurationError
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.testing import Cassette, CassetteMismatch, Cut, ModelServer, RawBytes, Stall
from robota.testing.cassette_file import Exchange, RecordedReply, SentRequest, format_cassette, read_cassette

pytestmark = pytest.mark.anyio

URL = "http://service.test/v1/chat/completions"
HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def exchange(url=URL, body=None, reply=("Good day.",), **facts) -> Exchange:
    response = RecordedReply(200, {"content-type": "text/plain"}, reply, **facts)
    return Exchange(SentRequest("POST", url, body), response)


@pytest.fixture
def write(tmp_path):
    """Writes a cassette and opens it, with nothing in the environment."""

    def open_cassette(*exchanges: Exchange, environment=None, **options) -> Cassette:
        path = tmp_path / "tape.yaml"
        path.write_text(format_cassette(exchanges))
        return Cassette(path, mode="none", environment=environment or {}, **options)

    return open_cassette


async def post(cassette: Cassette, body, url=URL) -> httpx2.Response:
    async with cassette.client() as client:
        return await client.post(url, json=body)


# --- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["data: 1\n\n", "data: 1\r\n\r\n", " trailing \n\n", "🐢\u2028\u0085\x07\t", "", "\n", "- a: [1", "null",
     "1e5", "2030-01-01", "\ufeff", "tab\there\n\n  indented\n"],
)  # fmt: skip
def test_any_text_reads_back_as_it_was(tmp_path, text):
    written = [exchange(body={"text": text, text or "x": [text, 1, 1.5, True, None]}, reply=(text, text))]
    (tmp_path / "tape.yaml").write_text(format_cassette(written), newline="")
    assert read_cassette(tmp_path / "tape.yaml") == tuple(written)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("version: 2\nexchanges: []\n", "has version 2, and this robota reads version 1; record it anew"),
        ("exchanges: []\n", "missing required field `version`. Restore it, or delete it and record anew."),
        ("version: 1\nexchanges: [{}]\n", "missing required field `request`"),
        ("{", "while parsing a flow"),
        ("- !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_a_file_that_is_no_cassette_is_named(tmp_path, text, complaint):
    path = tmp_path / "tape.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Cassette(path, mode="none")
    told = str(caught.value)
    assert str(path) in told
    assert complaint in told
    assert "\n" not in told


# --- matching ----------------------------------------------------------------------------------------


async def test_the_order_of_fields_does_not_count_and_everything_else_does(write):
    cassette = write(exchange(body={"a": 1, "b": [1, 2]}))
    for body in ({"a": 1.5, "b": [1, 2]}, {"a": 1, "b": [2, 1]}, {"a": True, "b": [1, 2]}, {"a": 1}):
        with pytest.raises(CassetteMismatch, match="is none of the 1 recorded requests"):
            await post(cassette, body)
    for url in (f"{URL}?x=1", "http://other.test/v1/chat/completions"):
        with pytest.raises(CassetteMismatch):
            await post(cassette, {"a": 1, "b": [1, 2]}, url)
    assert (await post(cassette, {"b": [1, 2], "a": 1})).text == "Good day."


async def test_the_diff_is_against_the_nearest_and_shows_where_long_texts_differ(write):
    prompt = " ".join(f"word{n}" for n in range(500))
    cassette = write(exchange(body={"prompt": "short"}), exchange(body={"model": "m", "prompt": prompt}))
    with pytest.raises(CassetteMismatch) as caught:
        await post(cassette, {"model": "m", "prompt": prompt.replace("word250", "other")})
    told = str(caught.value)
    assert "The nearest is request 2:" in told
    assert max(map(len, told.splitlines()[1:])) < 200  # the first names the file, wherever that is
    changed = [line for line in told.splitlines() if line.startswith(("+ ", "- "))]
    assert "word250" in changed[0]
    assert any("other" in line for line in changed)


async def test_what_was_secret_may_be_anything(write):
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    cassette = write(
        exchange(body={"text": "my key: [REDACTED]!", "password": "[REDACTED]"}),
        exchange(f"{URL}?key=[REDACTED]"),
        exchange(body={"text": "open sesame, please"}),
        environment={"MY_PASSWORD": "open sesame"},
    )
    await post(cassette, {"text": f"my key: {key}!", "password": ["a", "b"]})
    async with cassette.client() as client:
        await client.post(f"{URL}?key={key}")
    assert (await post(cassette, {"text": "open sesame, please"})).text == "Good day."
    with pytest.raises(CassetteMismatch) as caught:
        await post(cassette, {"text": f"{key} open sesame"})
    assert key not in str(caught.value)
    assert "+  text: '[REDACTED] [REDACTED]'" in str(caught.value)


# --- replies -----------------------------------------------------------------------------------------


async def test_replies_come_as_they_were_recorded(write):
    cassette = write(
        exchange(reply=("a", "b")),
        exchange(reply=("gA==",), encoding="base64"),
        exchange(reply=("a",), ended="broken"),
        exchange(reply=("a",), ended="early"),
    )
    async with cassette.client() as client:
        async with client.stream("POST", URL) as response:
            assert [piece async for piece in response.aiter_raw()] == [b"a", b"b"]
        assert (await client.post(URL)).content == b"\x80"
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.post(URL)
        with pytest.raises(CassetteMismatch, match="was recorded only as far as it was read then"):
            await client.post(URL)


async def test_a_recording_has_what_the_client_read(tmp_path):
    path = tmp_path / "tape.yaml"
    cassette = Cassette(path, errors=True, environment={})
    replies = (["whole"], [RawBytes(b"\x80\x81")], ["Hel", Cut()], ["Hi", Stall()])
    async with ModelServer(*replies) as server:
        url, streamed = f"{server.url}/v1/chat/completions", {**HELLO, "stream": True}
        async with cassette.client() as client:
            await client.post(url, json=HELLO)
            await client.post(url, json=HELLO)
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.post(url, json=streamed)
            async with client.stream("POST", url, json=streamed) as response:
                await anext(response.aiter_raw())
    (note,) = cassette.finish()
    assert note.endswith("tape.yaml: recorded 4 requests")
    replies = [made["response"] for made in yaml.safe_load(path.read_text())["exchanges"]]
    assert [reply.get("ended", "complete") for reply in replies] == [
        "complete",
        "complete",
        "broken",
        "early",
    ]
    assert [len(reply["body"]) for reply in replies] == [1, 1, 2, 2]
    assert replies[1]["encoding"] == "base64"


# --- secrets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "carried",
    [{"headers": {"authorization": "Bearer open-sesame-9"}}, {"headers": {"x-api-key": "open-sesame-9"}},
     {"headers": {"cookie": "session=1; token=open-sesame-9"}}, {"params": {"key": "open-sesame-9"}}],
)  # fmt: skip
async def test_a_key_that_the_request_carries_is_written_nowhere(tmp_path, carried):
    path = tmp_path / "tape.yaml"
    cassette = Cassette(path, environment={})

    def repeat(request):
        return "You sent open-sesame-9."

    body = {**HELLO, "user": "open-sesame-9"}
    async with ModelServer(repeat) as server, cassette.client() as client:
        await client.post(f"{server.url}/v1/chat/completions", json=body, **carried)
    cassette.finish()
    assert "open-sesame-9" not in path.read_text()


async def test_a_path_in_the_environment_is_no_secret(write, tmp_path):
    cassette = write(environment={"MY_PASSWORD": str(tmp_path)})
    with pytest.raises(CassetteMismatch, match=str(tmp_path)):
        await post(cassette, {}, f"http://service.test{tmp_path}")


# --- providers ---------------------------------------------------------------------------------------


async def test_a_provider_gets_its_key_from_the_test_or_needs_none(write, tmp_path):
    seen = []

    def make(api_key=None, *, transport):
        seen.append(api_key)
        return transport

    replaying = write(exchange())
    replaying.provider(make)
    replaying.provider(make, api_key="mine")
    replaying.provider(make, "mine too")
    Cassette(tmp_path / "new.yaml", environment={}).provider(make)
    assert seen == ["no-key-is-needed", "mine", "mine too", None]
    one, other = replaying.transport, replaying.transport
    assert one is not other  # providers close theirs


async def test_an_own_transport_of_a_provider_works_without_the_fixture(tmp_path):
    path = tmp_path / "tape.yaml"
    async with ModelServer("Good day.") as server:
        for mode in ("once", "none"):
            cassette = Cassette(path, mode=mode, environment={})
            provider = OpenAICompatibleProvider("k", f"{server.url}/v1", "m", transport=cassette.transport)
            async with provider:
                assert (await Robota(provider, model="m").run("Hello")).text == "Good day."
            cassette.finish()
    assert len(server.requests) == 1


# --- without an event loop ---------------------------------------------------------------------------


def test_a_synchronous_client_is_recorded_and_replayed(tmp_path):
    path = tmp_path / "tape.yaml"
    with ModelServer(["Hel", "lo"], "Again").in_thread() as server:
        url = f"{server.url}/v1/chat/completions"
        recording = Cassette(path, mode="all", environment={})
        recording.replace(server.url, "server")
        with recording.sync_client() as client:
            streamed = client.post(url, json={**HELLO, "stream": True}).text
            whole = client.post(url, json=HELLO).json()
        assert recording.finish() == [f"{recording._shown}: recorded 2 requests"]
    replay = Cassette(path, mode="none", environment={})
    replay.replace("http://elsewhere.test", "server")
    url = "http://elsewhere.test/v1/chat/completions"
    with replay.sync_client() as client:
        assert client.post(url, json={**HELLO, "stream": True}).text == streamed
        assert client.post(url, json=HELLO).json() == whole
    assert replay.finish() == []


def test_a_synchronous_client_that_asks_for_something_else_is_told(write):
    cassette = write(exchange(body=HELLO))
    with cassette.sync_client() as client, pytest.raises(CassetteMismatch, match="none of the 1 recorded"):
        client.post(URL, json={**HELLO, "model": "other"})


def test_the_vendors_synchronous_client_plays_from_a_cassette(write):
    said = '{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, '
    said += '"finish_reason": "stop", "message": {"role": "assistant", "content": "Good day."}}]}'
    response = RecordedReply(200, {"content-type": "application/json"}, (said,))
    cassette = write(Exchange(SentRequest("POST", URL, HELLO), response))
    http = cassette.sync_client()
    with openai.OpenAI(api_key="k", base_url="http://service.test/v1", http_client=http) as client:
        reply = client.chat.completions.create(**HELLO)
    assert reply.choices[0].message.content == "Good day."
    assert cassette.finish() == []


@pytest.mark.parametrize(
    ("ended", "error"), [("broken", httpx2.RemoteProtocolError), ("early", CassetteMismatch)]
)
def test_a_synchronous_replay_ends_as_the_recording_did(write, ended, error):
    cassette = write(exchange(body=HELLO, ended=ended))
    with cassette.sync_client() as client, pytest.raises(error):
        client.post(URL, json=HELLO)
