"""A provider that plays a script: the model of tests, of the tour and of `make run` without a key.

Each argument is one reply, in order. A reply is a step or a list of steps: a text is a delta, a chunk is
yielded as it is, `Stall`, `Delay` and `Fail` do what they say, a function gets the request and returns steps.
For a journal, the native form of a reply is its place in the script.

    ScriptedProvider(["Hel", "lo"], [call("add", a=1, b=2)], "The sum is 3.")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.given import kind_of_value
from robota.core.messages import Json, ToolCall
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    StopChunk,
    TextChunk,
    assert_native_web_tools_available,
)

if TYPE_CHECKING:
    from robota.core.provider_definition import ProviderDefinition

TITLE = "The scripted model"
MODEL = "scripted"
REPLY = "I am the scripted model, so I can only say this sentence."


class Stall(Struct, frozen=True):
    """Wait until somebody cancels, as a connection does that never sends another byte."""


class Delay(Struct, frozen=True):
    """Wait before the next piece of a scripted answer."""

    seconds: float


class Fail(Struct, frozen=True):
    """Raise this error at this point of the reply."""

    error: Exception


Step: TypeAlias = str | Chunk | Stall | Delay | Fail
Reply: TypeAlias = Step | Sequence[Step] | Callable[[ChatRequest], "Reply"]


def call(name: str, id: str | None = None, /, **arguments: Json) -> ToolCall:
    """A tool call for a script. Keywords are arguments of the tool. The id defaults to `call_<name>`, and to
    `call_<name>_2` and so on for further calls of the tool in one reply."""
    return ToolCall(id or f"call_{name}", name, msgspec.json.encode(arguments).decode())


def number_calls(steps: Iterable[Any]) -> Iterator[Any]:
    """The steps of a reply; further calls of one tool get ids of their own where the script names none."""
    seen: dict[str, int] = {}
    for step in steps:
        if isinstance(step, ToolCall) and step.id == f"call_{step.name}":
            count = seen[step.name] = seen.get(step.name, 0) + 1
            yield step if count == 1 else replace(step, id=f"{step.id}_{count}")
        else:
            yield step


def check_reply(reply: object) -> None:
    """Refuse what a script cannot play, where it is written."""
    if isinstance(reply, type):
        raise ConfigurationError(f"{reply.__name__} is a class: write {reply.__name__}().")
    if isinstance(reply, BaseException):
        raise ConfigurationError(f"An error is a step of a reply: write Fail({reply!r}).")
    if isinstance(reply, (bytes, Mapping)) or not (isinstance(reply, (Iterable, Struct)) or callable(reply)):
        raise ConfigurationError(
            "A reply is a text, a step such as call('add', a=1), a list of these, or a function that returns "
            f"one; not {kind_of_value(reply)}."
        )


class ScriptedProvider:
    """Plays its replies one per request, and remembers every request it got."""

    def __init__(
        self,
        *replies: Reply,
        name: str = "scripted",
        repeat: bool = False,
        capabilities: Capabilities | None = None,
        ports: Ports = REAL_WORLD,
    ) -> None:
        for reply in replies:
            check_reply(reply)
        self.name = name
        self.capabilities = Capabilities() if capabilities is None else capabilities
        self.requests: list[ChatRequest] = []
        self.open_streams = 0
        """Replies being played right now; 0 after every run, however it ended."""
        self._replies = replies
        self._repeat = repeat
        self._ports = ports

    def __repr__(self) -> str:
        played = f"{len(self.requests)} requests, {len(self._replies)} replies"
        return f"<ScriptedProvider {self.name!r}, {played}>"

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        from asyncio import sleep as pause  # noqa: PLC0415 - a loop is running, so this is a look-up

        assert_native_web_tools_available(self, request.native_web_tools)
        reply = self._next_reply(request)
        self.open_streams += 1
        try:
            number = len(self.requests)
            stopped = False
            used_tool = False
            native = not request.want_raw
            for step in self._steps(reply, request):
                await pause(0)  # as between the pieces that a network brings
                if isinstance(step, Delay):
                    await self._ports.sleep(step.seconds)
                elif isinstance(step, Stall):
                    await _forever()
                elif isinstance(step, Fail):
                    raise step.error
                elif request.want_raw or not isinstance(step, NativePayload):
                    stopped = stopped or isinstance(step, StopChunk)
                    used_tool = used_tool or isinstance(step, ToolCall)
                    native = native or isinstance(step, NativePayload)
                    yield TextChunk(step) if isinstance(step, str) else step
            if not native:
                yield NativePayload(kind="response", payload={"reply": number})
            if not stopped:
                yield StopChunk("tool_use" if used_tool else "end_turn")
        finally:
            self.open_streams -= 1

    def _next_reply(self, request: ChatRequest) -> Reply:
        played = len(self.requests)
        self.requests.append(request)
        if played < len(self._replies):
            return self._replies[played]
        if self._repeat and self._replies:
            return self._replies[played % len(self._replies)]
        raise ProviderError(
            f"The script has no reply for request {played + 1}; add one or pass repeat=True.",
            provider=self.name,
        )

    def _steps(self, reply: Reply, request: ChatRequest) -> Iterable[Step]:
        while callable(reply):
            reply = reply(request)
            check_reply(reply)
        return (reply,) if isinstance(reply, (str, Struct)) else number_calls(reply)


async def _forever() -> None:
    import anyio  # noqa: PLC0415 - the scripted model itself needs no backend

    await anyio.sleep_forever()


# --- by name -----------------------------------------------------------------------------------------


def define() -> ProviderDefinition:
    from robota.core.provider_definition import (  # noqa: PLC0415 - a provider needs none
        ModelCatalog,
        ModelCatalogEntry,
        ProbeResult,
        ProviderConfig,
        ProviderDefinition,
    )
    from robota.providers.configuration import read_options  # noqa: PLC0415

    entry = ModelCatalogEntry(id=MODEL, capabilities=("tools", "streaming"), context_window=100_000)
    catalog = ModelCatalog(status="live", entries=(entry,))

    def create(config: ProviderConfig) -> ScriptedProvider:
        replies = read_options(config, TITLE, {"replies": list}).get("replies", [REPLY])
        if not replies or not all(isinstance(reply, str) for reply in replies):
            raise ConfigurationError("The option 'replies' of the scripted model must be a list of strings.")
        return ScriptedProvider(*replies, repeat=True)

    async def refresh(config: ProviderConfig) -> ModelCatalog:
        return catalog

    async def probe(config: ProviderConfig) -> ProbeResult:
        return ProbeResult(ok=True, message=f"{TITLE} always answers.", models=(MODEL,))

    return ProviderDefinition(
        type="scripted",
        create=create,
        display_name="Scripted",
        description="Says fixed sentences, without a service or a key.",
        defaults=ProviderConfig(model=MODEL),
        model_catalog=catalog,
        refresh=refresh,
        probe=probe,
    )
