"""Servers that people run themselves, with whatever model they like: their replies are read once more.

What a model wrote into its text and its server did not notice, thinking and calls, is taken out by
projectors. A projector holds text back only while it cannot know what it is. Nothing is lost: what turns out
to be plain is given out as it was written, also when the reply breaks off.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Protocol, Unpack

from msgspec import Struct
from msgspec.structs import replace

from robota.core.errors import ProviderError, RobotaError
from robota.core.messages import Json, ReasoningBlock, ToolCall
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    ReasoningChunk,
    StopChunk,
    TextChunk,
    ToolSchema,
)
from robota.providers.chat import API_SURFACE
from robota.providers.openai_compatible import Vendor, VendorOptions, VendorProvider

LOCAL_OPTIONS: dict[str, type] = {"constrain": bool, "examples": bool, "context_size": int}
"""What profiles of all such servers may say."""
SMALL_WINDOW = 8192
"""Tokens; up to here long descriptions of tools would leave too little for the conversation."""
MOST_BYTES = 6
"""Of a token, on average: what has more of them than this is sure not to fit."""
MARKS = {
    "<think>": "</think>",
    "<|channel>thought": "<channel|>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",
}
"""How thoughts begin and end: most open models, Gemma, Mistral, Command, Seed, MiniMax."""


SERVICE = Vendor(
    name="local-server",
    title="The local server",
    display_name="Local server",
    description="A server of yours, such as llama.cpp's; thinking and calls in its text are recognised.",
    base_url="http://localhost:8080/v1",
    capabilities=Capabilities(output_schema=True),
    options=LOCAL_OPTIONS,
)


class LocalServerProvider(VendorProvider):
    """A model behind a server of one's own. Such a server knows only some models' way of thinking and
    calling; what it leaves in the text is taken out here.

    With `constrain` the model writes under a schema, one of the tools with its arguments or an answer, where
    the server takes one (llama.cpp, vLLM, Ollama): for models too small to call tools by themselves;
    `examples` show tiny ones how. `context_size` is the window that the server has: what is sure not to fit
    is not sent, and with a small one tools are described in short. A model that makes one call again and
    again gets no more tools and is told to answer.
    """

    vendor = SERVICE

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        constrain: bool = False,
        examples: bool = False,
        context_size: int | None = None,
        **options: Unpack[VendorOptions],
    ) -> None:
        super().__init__(api_key, base_url, model, **options)
        self.context_size = context_size
        self._constrained = constrain
        self._brief: dict[int, tuple[ToolSchema, ToolSchema]] = {}
        """Tools in short, by the identity of those they are made of."""
        if constrain:
            from robota.providers.local.small_model import ChoiceEncoder  # noqa: PLC0415 - definitions are light

            self.encoder = encoder = ChoiceEncoder(tiny=examples)
            self.content = encoder.open_reply

    def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        return project(super().stream(request), *self._projectors(request))

    def _projectors(self, request: ChatRequest) -> list[Projector]:
        projectors: list[Projector] = [ReasoningProjector()]
        if request.tools and request.settings.tool_choice != "none" and not self._constrained:
            from robota.providers.pseudo_call import PseudoCallProjector  # noqa: PLC0415 - as above

            projectors.append(PseudoCallProjector(request.tools))
        return projectors

    def _fit(self, request: ChatRequest) -> ChatRequest:
        from robota.providers.local.small_model import stop_circle  # noqa: PLC0415 - as above

        request = super()._fit(stop_circle(request))
        if self._constrained or not 0 < (self.context_size or 0) <= SMALL_WINDOW:
            return request
        return replace(request, tools=tuple(map(self._shorten, request.tools)))

    def _shorten(self, tool: ToolSchema) -> ToolSchema:
        from robota.providers.local.request import brief_tool  # noqa: PLC0415 - as above

        known = self._brief.get(id(tool))
        if known is None or known[0] is not tool:
            known = self._brief[id(tool)] = tool, brief_tool(tool)
        return known[1]

    def _check(self, body: Json) -> None:
        size, window = len(body), self.context_size
        if window is None or size <= window * MOST_BYTES or b'"image_url"' in body:
            return
        raise ProviderError(
            f"{self.name} was not asked: the request has at least {size // MOST_BYTES:,} tokens, more than "
            f"the context window of the server ({window:,}); compact the conversation, use fewer tools, or "
            "start the server with a larger window.",
            provider=self.name,
            status=400,
        )


class Projector(Protocol):
    """Sees the chunks of one reply, in their order."""

    def take(self, chunk: Chunk) -> Iterable[Chunk]:
        """What to pass on for this chunk. The `StopChunk` ends the reply: nothing is held back any longer."""
        ...

    def release(self) -> Iterable[Chunk]:
        """The reply was cut: what was held back, as it was written."""
        ...


async def project(chunks: AsyncGenerator[Chunk, None], *projectors: Projector) -> AsyncGenerator[Chunk, None]:
    """The chunks of a reply as these projectors see it, one after the other."""
    failure: RobotaError | None = None
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                for seen in _pass_on([chunk], projectors):
                    yield seen
        except RobotaError as error:
            failure = error
    if failure is not None:
        for at, projector in enumerate(projectors):
            for seen in _pass_on(projector.release(), projectors[at + 1 :]):
                yield seen
        raise failure


def _pass_on(chunks: Iterable[Chunk], projectors: Sequence[Projector]) -> Iterable[Chunk]:
    for projector in projectors:
        chunks = [seen for chunk in chunks for seen in projector.take(chunk)]
    return chunks


def keep_raw(chunk: TextChunk) -> list[Chunk]:
    """The native event of a text that is about to be taken apart, by itself."""
    if chunk.raw is None:
        return []
    return [NativePayload(kind="stream_event", payload=chunk.raw, api_surface=API_SURFACE)]


def count_overlap(text: str, marks: Sequence[str]) -> int:
    """How many characters at the end of the text could be the beginning of one of the marks."""
    first = {mark[0] for mark in marks}
    for at in range(max(0, len(text) + 1 - max(map(len, marks))), len(text)):
        if text[at] in first and any(mark.startswith(text[at:]) for mark in marks):
            return len(text) - at
    return 0


class ReasoningProjector(Struct, eq=False):
    """Takes out the thinking that a server left in the text.

    A thought counts at the beginning of a reply or right behind another one, so that an answer may write
    about the marks. White space behind a mark belongs to it.
    """

    _may_think: bool = True
    """Nothing but white space and thoughts has come so far."""
    _until: str = ""
    """The mark that ends the thought we are in; empty outside."""
    _trim: bool = False
    """The last thing that came was a mark."""
    _held: str = ""
    _thoughts: list[str] = []

    def take(self, chunk: Chunk) -> list[Chunk]:
        if isinstance(chunk, TextChunk):
            return self._read(chunk) if self._may_think else [chunk]
        if isinstance(chunk, (ReasoningBlock, ToolCall, StopChunk)):  # no text follows these
            return [*self.release(), *self._conclude(), chunk]
        return [chunk]

    def release(self) -> list[Chunk]:
        said: list[Chunk] = []
        self._say(self._held, said)
        self._held = ""
        return said

    def _conclude(self) -> list[Chunk]:
        thought = "".join(self._thoughts)
        self._thoughts.clear()
        return [ReasoningBlock(thought)] if thought else []

    def _read(self, chunk: TextChunk) -> list[Chunk]:
        said: list[Chunk] = []
        rest, self._held = self._held + chunk.text, ""
        while rest:
            if self._trim:
                rest = rest.lstrip()
                self._trim = not rest
            elif self._until:
                rest = self._think(rest, said)
            elif self._may_think:
                rest = self._look(rest, said)
            else:
                self._say(rest, said)
                rest = ""
        return [chunk] if said == [TextChunk(chunk.text)] else [*keep_raw(chunk), *said]

    def _think(self, text: str, said: list[Chunk]) -> str:
        """Go on with a thought; what is behind its end is returned."""
        thought, mark, rest = text.partition(self._until)
        if mark:
            self._say(thought, said)
            self._until, self._trim = "", True
            return rest
        sure = len(text) - count_overlap(text, (self._until,))
        self._say(text[:sure], said)
        self._held = text[sure:]
        return ""

    def _look(self, text: str, said: list[Chunk]) -> str:
        """Look for the beginning of a thought; what is behind it, or no thought, is returned."""
        rest = text.lstrip()
        self._say(text[: len(text) - len(rest)], said)
        for mark, end in MARKS.items():
            if rest.startswith(mark):
                self._until, self._trim = end, True
                return rest[len(mark) :]
        if any(mark.startswith(rest) for mark in MARKS):
            self._held = rest
            return ""
        self._may_think = False
        return rest

    def _say(self, text: str, said: list[Chunk]) -> None:
        if text and self._until:
            self._thoughts.append(text)
            said.append(ReasoningChunk(text))
        elif text:
            said.append(TextChunk(text))
