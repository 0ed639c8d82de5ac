from __future__ import annotations

import msgspec
import pytest

from robota.core.cache import CacheEntry, CachingProvider, MemoryCacheStorage, cache_key
from robota.core.errors import CacheIntegrityError, ProviderError
from robota.core.messages import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.ports import Ports
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    MetadataChunk,
    ModelSettings,
    NativePayload,
    NativeWebTools,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
    ToolSchema,
)
from robota.providers.scripted import Fail, ScriptedProvider, call

pytestmark = pytest.mark.anyio


def ask(**changes: object) -> ChatRequest:
    return msgspec.structs.replace(ChatRequest(model="m", messages=[UserMessage("hi")]), **changes)


async def drain(provider: CachingProvider, request: ChatRequest) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request)]


async def test_the_same_request_is_answered_without_asking_again() -> None:
    inner = ScriptedProvider(["Hel", "lo"])
    provider = CachingProvider(inner)
    first = await drain(provider, ask())
    assert await drain(provider, ask()) == first == [TextChunk("Hel"), TextChunk("lo"), StopChunk("end_turn")]
    assert len(inner.requests) == 1


async def test_every_kind_of_content_is_replayed_as_it_was() -> None:
    reply: list[Chunk] = [
        MetadataChunk({"model": "m-1", "id": "r"}),
        ReasoningChunk("hm"),
        ReasoningBlock("hm", signature="s", data={"k": [1]}),
        TextChunk("Let me look."),
        ServerToolChunk("web_search", {"query": "q"}),
        ToolInputChunk(0, '{"a"', "call_1", "add"),
        call("add", a=1),
        TokenUsage(10, 5, 3, 2, 1),
        StopChunk("tool_use", "tool_calls"),
    ]
    provider = CachingProvider(ScriptedProvider(reply))
    await drain(provider, ask())
    assert await drain(provider, ask()) == reply


async def test_what_belongs_to_one_call_is_not_repeated() -> None:
    provider = CachingProvider(
        ScriptedProvider(
            [
                NativePayload(kind="request", payload={}),
                RetryNotice(attempt=2, max_attempts=3, delay=1, message="busy"),
                TextChunk("hi", b'{"text":"hi"}'),
            ]
        )
    )
    seen = await drain(provider, ask(want_raw=True))
    assert [type(chunk) for chunk in seen] == [NativePayload, RetryNotice, TextChunk, StopChunk]
    assert await drain(provider, ask(want_raw=True)) == [TextChunk("hi"), StopChunk("end_turn")]


@pytest.mark.parametrize(
    "reason", ["max_tokens", "refusal", "content_filter", "pause", "aborted", "error", "other"]
)
async def test_a_reply_that_was_cut_is_not_kept(reason: str) -> None:
    provider = CachingProvider(ScriptedProvider([StopChunk(reason)], "whole"))  # type: ignore[arg-type]
    await drain(provider, ask())
    assert (await drain(provider, ask()))[0] == TextChunk("whole")


async def test_a_reply_that_failed_is_not_kept() -> None:
    provider = CachingProvider(ScriptedProvider(["Hel", Fail(ProviderError("broken"))], "whole"))
    with pytest.raises(ProviderError):
        await drain(provider, ask())
    assert (await drain(provider, ask()))[0] == TextChunk("whole")


async def test_a_reply_the_caller_stopped_reading_is_not_kept() -> None:
    inner = ScriptedProvider(["Hel", "lo"], "whole")
    provider = CachingProvider(inner)
    stream = provider.stream(ask())
    await anext(stream)
    await stream.aclose()
    assert inner.open_streams == 0
    assert (await drain(provider, ask()))[0] == TextChunk("whole")


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: CacheEntry(entry.body.replace(b"true", b"lies"), entry.integrity),
        lambda entry: CacheEntry(entry.body, "0" * 64),
    ],
    ids=["body", "hash"],
)
async def test_a_damaged_entry_is_reported_once_and_removed(damage) -> None:  # type: ignore[no-untyped-def]
    storage = MemoryCacheStorage()
    provider = CachingProvider(ScriptedProvider("true", "fresh"), storage)
    await drain(provider, ask())
    key = cache_key(ask(), provider.name)
    entry = await storage.get(key)
    assert entry is not None
    await storage.put(key, damage(entry))
    with pytest.raises(CacheIntegrityError, match="It was removed; ask again"):
        await drain(provider, ask())
    assert (await drain(provider, ask()))[0] == TextChunk("fresh")


@pytest.mark.parametrize("body", [b'[["smell", {}]]', b"not json", b'[["text", {"txt": 1}]]', b"[1]"])
async def test_an_entry_nobody_can_read_counts_as_damaged(body: bytes) -> None:
    from hashlib import sha256

    storage = MemoryCacheStorage()
    provider = CachingProvider(ScriptedProvider(), storage)
    await storage.put(cache_key(ask(), provider.name), CacheEntry(body, sha256(body).hexdigest()))
    with pytest.raises(CacheIntegrityError):
        await drain(provider, ask())


def test_ids_times_and_metadata_of_messages_do_not_change_the_key() -> None:
    def conversation() -> list[Message]:
        return [
            SystemMessage("s"),
            UserMessage("u"),
            AssistantMessage("a", (ToolCall("call_0", "add", "{}"),)),
            ToolMessage("3", "call_0", "add"),
        ]

    with_metadata = [*conversation()[:3], ToolMessage("3", "call_0", "add", metadata={"round": 1})]
    assert cache_key(ask(messages=conversation()), "p") == cache_key(ask(messages=with_metadata), "p")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "other"},
        {"messages": [UserMessage("ho")]},
        {"messages": [SystemMessage("hi")]},
        {"tools": (ToolSchema("add", "", {"type": "object"}),)},
        {"settings": ModelSettings(temperature=0.5)},
        {"settings": ModelSettings(max_tokens=10)},
        {"settings": ModelSettings(extra={"seed": 1})},
        {"output_schema": {"type": "object"}},
        {"native_web_tools": NativeWebTools(web_search=True)},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_whatever_can_change_the_answer_changes_the_key(changes: dict[str, object]) -> None:
    assert cache_key(ask(**changes), "p") != cache_key(ask(), "p")


def test_another_provider_has_another_key() -> None:
    assert cache_key(ask(), "p") != cache_key(ask(), "q")


def test_the_order_of_keys_in_a_schema_does_not_change_the_key() -> None:
    one = ask(output_schema={"type": "object", "title": "T"})
    other = ask(output_schema={"title": "T", "type": "object"})
    assert cache_key(one, "p") == cache_key(other, "p")


async def test_the_least_recently_used_entry_makes_room() -> None:
    storage = MemoryCacheStorage(max_entries=2)
    entry = CacheEntry(b"", "")
    await storage.put("a", entry)
    await storage.put("b", entry)
    await storage.get("a")
    await storage.put("c", entry)
    assert [await storage.get(key) for key in "abc"] == [entry, None, entry]


async def test_an_entry_lives_for_its_time_and_using_it_does_not_prolong_it() -> None:
    time = 0.0
    storage = MemoryCacheStorage(ttl=10, ports=Ports(monotonic=lambda: time))
    entry = CacheEntry(b"", "")
    await storage.put("a", entry)
    time = 9.9
    assert await storage.get("a") == entry
    time = 10.0
    assert (await storage.get("a"), len(storage)) == (None, 0)


async def test_the_wrapper_has_the_name_and_the_capabilities_of_what_it_wraps_and_closes_it() -> None:
    class Closable(ScriptedProvider):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    inner = Closable(name="inner", capabilities=Capabilities(vision=True))
    async with CachingProvider(inner) as provider, CachingProvider(ScriptedProvider()):
        assert (provider.name, provider.capabilities) == ("inner", Capabilities(vision=True))
        assert not inner.closed
    assert inner.closed
