"""`LocalProvider`: a model file on this machine, run by llama.cpp in this process."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from robota.core.closing import AsyncClosing
from robota.core.errors import ConfigurationError, ProviderError
from robota.core.jsontext import decode, encode
from robota.core.messages import JsonObject
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    ToolSchema,
    assert_native_web_tools_available,
)
from robota.providers.chat.reply import ChatContent
from robota.providers.local.engine import (
    DEFAULT_CONTEXT,
    Engine,
    EngineSettings,
    GgufFacts,
    borrow_engine,
    default_threads,
    read_ahead,
    read_gguf_facts,
    return_engine,
)
from robota.providers.local.reply import ChoiceContent
from robota.providers.local.request import (
    MAX_TOKENS,
    TINY_PARAMETERS,
    choice_fields,
    choice_schema,
    offered_tools,
)
from robota.providers.local.small_model import stop_circle

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Queue

API_SURFACE = "llama.cpp-chat-completions"
SEED = 1
"""The same words to the same model get the same answer; -1 lets chance decide."""
_AGAINST_LOOPS = {"dry_multiplier": 0.8, "dry_allowed_length": 6, "dry_penalty_last_n": 128}
"""Very small models say a sentence once and then forever; this makes saying it again ever less likely."""


class LocalProvider(AsyncClosing):
    """A GGUF model. `model` is the path of a file, or the name of a model that was pulled.

    With tools in the request the model decodes under a schema: one of the tools with its arguments, or an
    answer. So a call always fits its tool, `tool_choice` is always kept, and a reply has at most one call.

    Very small models (by default: below a billion parameters) are shown `examples` of how the usual tools
    are used, and get tools without their optional parameters. A model that makes one call again and again
    gets no more tools and is told to answer.

    The file is loaded with the first request, once for all providers that use it the same way, and unloaded
    when the last of them is closed. Requests take turns. Leaving a stream stops the generation.
    """

    capabilities = Capabilities(output_schema=True)

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        name: str = "local",
        context_size: int | None = None,
        max_tokens: int = MAX_TOKENS,
        temperature: float | None = None,
        seed: int = SEED,
        threads: int | None = None,
        examples: bool | None = None,
    ) -> None:
        self.name = name
        self.model = os.fspath(model)
        self.path = _find_file(self.model)
        self._facts: GgufFacts | None = None
        self._context_size = context_size
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._seed = seed
        self._threads = default_threads() if threads is None else threads
        self._examples = examples
        counts = {"context_size": context_size, "threads": threads, "max_tokens": max_tokens}
        for option, value in counts.items():
            if value is not None and value < 1:
                raise ConfigurationError(f"The {option} of a local model must be at least 1, not {value}.")
        self._loaded: tuple[EngineSettings, Engine] | None = None
        self._loading = Lock()
        self._running: set[_Generation] = set()

    @property
    def context_size(self) -> int:
        """Tokens that prompt and reply may have together."""
        wanted = self._context_size or DEFAULT_CONTEXT
        return min(wanted, self._read_facts().trained_context or wanted)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        assert_native_web_tools_available(self, request.native_web_tools)
        engine = await self._engine()
        for body, content in self._bodies(request):
            if request.want_raw:
                yield NativePayload(kind="request", payload=body, api_surface=API_SURFACE)
            generation = _Generation(engine, body)
            self._running = {*filter(_Generation.is_alive, self._running), generation}
            sequence = 0
            try:
                async for event in generation.events():
                    if request.want_raw:
                        sequence += 1
                        yield NativePayload(
                            kind="stream_event", payload=event, api_surface=API_SURFACE, sequence=sequence
                        )
                    for chunk in self._read(event, content):
                        yield chunk
            except _UnusableSchemaError:
                continue
            finally:
                generation.stop()
            if not content.finish_reason:
                raise ProviderError(
                    f"{self.name} ended its reply without a reason; try again.", provider=self.name
                )
            for chunk in content.close():
                yield chunk
            return
        raise ProviderError(
            f"{self.name} cannot hold its model to the schemas of this request; simplify the tools or the "
            "output schema.",
            provider=self.name,
        )

    def _read(self, event: bytes, content: ChatContent) -> list[Chunk]:
        """The chunks of one event, which is one of Chat Completions."""
        reply, chunks = decode(event), list[Chunk]()
        if "error" not in reply:
            content.read(reply, None, chunks)
            return chunks
        error = reply["error"]
        if error.get("type") == "exceed_context_size_error":
            text = (
                f"A conversation of {error.get('n_prompt_tokens')} tokens exceeds the context window of the "
                f"local model ({self.context_size}); compact it or set a larger context_size."
            )
        else:
            said = " ".join(str(error.get("message", "no reason given")).split()).rstrip(".")
            text = f"{self.name} could not answer ({said}); change the request or use another model."
        raise ProviderError(text, provider=self.name, status=error.get("code"))

    async def aclose(self) -> None:
        """Stop what is being generated, and unload the model if nobody else uses it."""
        from anyio import to_thread  # noqa: PLC0415 - a loop is running

        running, self._running = self._running, set()
        for generation in running:
            generation.stop()
            await to_thread.run_sync(generation.wait)
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            return_engine(loaded[0])

    async def _engine(self) -> Engine:
        from anyio import to_thread  # noqa: PLC0415 - a loop is running

        if self._loaded is not None:
            return self._loaded[1]
        facts = await to_thread.run_sync(self._read_facts)
        await to_thread.run_sync(read_ahead, self.path, abandon_on_cancel=True)
        return await to_thread.run_sync(self._open, facts)

    def _read_facts(self) -> GgufFacts:
        if self._facts is None:
            self._facts = read_gguf_facts(self.path)
        return self._facts

    def _open(self, facts: GgufFacts) -> Engine:
        settings = EngineSettings(
            path=os.path.realpath(self.path), context=self.context_size, threads=self._threads
        )
        with self._loading:
            if self._loaded is None:
                self._loaded = settings, borrow_engine(settings, facts)
            return self._loaded[1]

    def _bodies(self, request: ChatRequest) -> Iterator[tuple[bytes, ChatContent]]:
        """The request body, and a second one with looser schemas in case llama.cpp cannot take the first.

        Each comes with what reads the reply to it.
        """
        request = stop_circle(request)
        tools, answer = offered_tools(request, tiny=self._is_tiny()), request.output_schema
        for loose in (False, True):
            if tools:
                schema = choice_schema(tools, request.settings.tool_choice, answer, loose=loose)
                yield self._body(request, tools, schema), ChoiceContent()
            elif answer is not None or not loose:
                yield self._body(request, (), {"type": "object"} if loose else answer), ChatContent()

    def _is_tiny(self) -> bool:
        facts = self._read_facts()
        return facts.parameters < TINY_PARAMETERS if self._examples is None else self._examples

    def _body(self, request: ChatRequest, tools: tuple[ToolSchema, ...], schema: JsonObject | None) -> bytes:
        settings = request.settings
        fields = choice_fields(request, tools, schema, tiny=self._is_tiny())
        fields |= {
            "return_progress": True,  # an event per batch of the prompt, and with it a chance to stop
            "max_tokens": settings.max_tokens or self._max_tokens,
            "temperature": self._temperature if settings.temperature is None else settings.temperature,
            "seed": self._seed,
        }
        if self._is_tiny():
            fields.update(_AGAINST_LOOPS)
        fields.update(settings.extra)
        return encode({name: value for name, value in fields.items() if value is not None})


class _UnusableSchemaError(Exception):
    """llama.cpp cannot make a grammar of it."""


class _Generation:
    """One request under way in a thread of its own; its events come to the event loop."""

    def __init__(self, engine: Engine, body: bytes) -> None:
        self._engine: Engine | None = engine
        self._body = body
        self._stopped = Event()
        self._thread: Thread | None = None

    async def events(self) -> AsyncGenerator[bytes, None]:
        import asyncio  # noqa: PLC0415 - a loop is running

        queue: Queue[bytes | Exception | None] = asyncio.Queue()
        self._thread = Thread(target=self._run, args=(asyncio.get_running_loop(), queue), name="llama.cpp")
        self._thread.start()
        while (event := await queue.get()) is not None:
            if isinstance(event, ValueError) and "schema" in str(event):
                raise _UnusableSchemaError from event
            if isinstance(event, Exception):
                raise event
            yield event

    def stop(self) -> None:
        """Generate no more; the thread ends with the token or the batch it is at."""
        self._stopped.set()

    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self, loop: AbstractEventLoop, queue: Queue[bytes | Exception | None]) -> None:
        def tell(event: bytes | Exception | None) -> bool:
            try:
                loop.call_soon_threadsafe(queue.put_nowait, event)
            except RuntimeError:  # the loop is closed: nobody listens any more
                self._stopped.set()
            return self._stopped.is_set()

        engine, self._engine = self._engine, None  # the last one to hold it unloads the model
        if engine is None or self._stopped.is_set():
            return
        try:
            engine.chat(self._body, tell)
        except Exception as error:  # noqa: BLE001 - it is raised where the reply is read
            tell(error)
        tell(None)


def _find_file(model: str) -> str:
    if not model:
        raise ConfigurationError("A local model needs a file or a name: see `robota model list`.")
    if os.sep in model or model.endswith(".gguf"):
        return os.path.expanduser(model)
    from robota.providers.local.store import ModelStore  # noqa: PLC0415 - for names only

    return str(ModelStore().require(model))
