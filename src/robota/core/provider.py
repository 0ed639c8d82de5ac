"""What a model provider is: an object with a `name`, `capabilities` and one method, `stream(request)`.

A provider is shared by many runs at once, so a request carries everything and changes nothing. It yields
chunks until the reply is over; a failure is raised. Cancelling the iteration must close the connection.
Cache, retry, recording and remote execution are objects that are providers and hold one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field

from robota.core.closing import AsyncClosing
from robota.core.encoded import EncodedHistory
from robota.core.errors import ConfigurationError
from robota.core.events import PayloadKind
from robota.core.given import Options, check_fields, require_texts
from robota.core.messages import Json, JsonObject, Message, ReasoningBlock, StopReason, TokenUsage, ToolCall

# --- what goes in ------------------------------------------------------------------------------------

ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str
"""`auto`, `none`, `required`, or the name of the one tool to use."""


class ModelSettings(Options, frozen=True, kw_only=True):
    """How the model should answer. `None` leaves the choice to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    effort: str | None = None
    """Reasoning effort, in the provider's words (`low`, `medium`, `high` …)."""
    tool_choice: ToolChoice | None = None
    stop: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Fields passed to the provider's request body as they are."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_texts("ModelSettings.stop", self.stop)


class NativeWebTools(Struct, frozen=True, kw_only=True):
    """Which hosted web tools of the provider this request wants."""

    web_search: bool = False
    web_fetch: bool = False


class ToolSchema(Struct, frozen=True, weakref=True):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: JsonObject
    """JSON schema of the arguments; the root is an object."""


class ChatRequest(Struct, frozen=True, kw_only=True):
    """One request to a model, in our terms."""

    model: str
    messages: Sequence[Message]
    tools: tuple[ToolSchema, ...] = ()
    settings: ModelSettings = ModelSettings()
    native_web_tools: NativeWebTools | None = None
    output_schema: JsonObject | None = None
    """The answer must be JSON of this schema; providers that cannot enforce it ignore it."""
    history: EncodedHistory | None = None
    """Where an adapter keeps the wire form of settled messages; using it never changes a request."""
    want_raw: bool = False
    """Somebody records native payloads: yield `NativePayload` chunks and put raw bytes on text chunks."""


# --- what comes out ----------------------------------------------------------------------------------


class TextChunk(Struct, frozen=True, gc=False):
    """A piece of the answer's text."""

    text: str
    raw: bytes | None = None


class ReasoningChunk(Struct, frozen=True, gc=False):
    """A piece of thinking as it streams; the finished `ReasoningBlock` follows."""

    text: str


class ToolInputChunk(Struct, frozen=True):
    """A piece of a tool call's arguments as it streams; the finished `ToolCall` follows."""

    index: int
    delta: str
    id: str = ""
    name: str = ""


class NativePayload(Struct, frozen=True, kw_only=True):
    """The provider's own request, response or stream event, for the journal."""

    kind: PayloadKind
    payload: Json
    api_surface: str | None = None
    sequence: int | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


class ServerToolChunk(Struct, frozen=True):
    """A tool the provider ran on its own side, such as web search."""

    name: str
    input: Json = None


class RetryNotice(Struct, frozen=True, kw_only=True):
    """A wrapper is about to try again."""

    attempt: int
    max_attempts: int
    delay: float
    message: str
    status: int | None = None
    """HTTP status of the attempt that failed, when the service answered at all."""


class MetadataChunk(Struct, frozen=True):
    """Facts about the reply to keep with its message: the answering model, a response id, provenance."""

    values: Mapping[str, Json]


class StopChunk(Struct, frozen=True):
    """Why the model stopped."""

    reason: StopReason
    detail: str | None = None
    """The provider's own word for it, or an explanation it gave."""


Chunk: TypeAlias = (
    TextChunk
    | ReasoningChunk
    | ReasoningBlock
    | ToolInputChunk
    | ToolCall
    | TokenUsage
    | NativePayload
    | ServerToolChunk
    | RetryNotice
    | MetadataChunk
    | StopChunk
)
CHUNK_NAMES: dict[type[Chunk], str] = {
    TextChunk: "text",
    ReasoningChunk: "reasoning",
    ReasoningBlock: "reasoning_block",
    ToolInputChunk: "tool_input",
    ToolCall: "tool_call",
    TokenUsage: "usage",
    NativePayload: "native",
    ServerToolChunk: "server_tool",
    RetryNotice: "retry",
    MetadataChunk: "metadata",
    StopChunk: "stop",
}
"""What they are called where they are written down: in caches, and between hosts."""


# --- who does it -------------------------------------------------------------------------------------


class NativeWebTool(Struct, frozen=True, kw_only=True):
    """A web tool that the model's own service runs."""

    supported: bool = False
    enabled: bool = False
    source: str | None = None
    reason: str | None = None
    """Why it is not available, for people."""


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a provider can do. The defaults promise function calling and nothing else."""

    function_calling: bool = True
    vision: bool = False
    files: bool = False
    output_schema: bool = False
    """Enforces `ChatRequest.output_schema`."""
    web_search: NativeWebTool = NativeWebTool()
    web_fetch: NativeWebTool = NativeWebTool()

    NONE: ClassVar[Capabilities]


Capabilities.NONE = Capabilities(function_calling=False)


@runtime_checkable
class Provider(Protocol):
    """The one role an adapter plays. `capabilities` may be left out: see `get_provider_capabilities`."""

    @property
    def name(self) -> str: ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]: ...


def get_provider_capabilities(provider: Provider) -> Capabilities:
    """What the provider says it can do, with safe defaults when it says nothing."""
    said = getattr(provider, "capabilities", None)
    return said if isinstance(said, Capabilities) else Capabilities()


def get_provider_secrets(provider: Provider) -> tuple[str, ...]:
    """The keys that the provider says it holds (`secrets`), so that nobody writes them down."""
    held = getattr(provider, "secrets", ())
    if not held:
        return ()
    return tuple([key for key in held if isinstance(key, str)]) if isinstance(held, tuple | list) else ()


def assert_native_web_tools_available(provider: Provider, wanted: NativeWebTools | None) -> None:
    """Refuse a request for hosted web tools the provider does not offer, before anything is sent."""
    if wanted is None:
        return
    offered = get_provider_capabilities(provider)
    for asked, tool, label in (
        (wanted.web_search, offered.web_search, "web search"),
        (wanted.web_fetch, offered.web_fetch, "web fetch"),
    ):
        if not asked or (tool.supported and tool.enabled):
            continue
        because = f" {tool.reason}" if tool.reason else ""
        if not tool.supported:
            raise ConfigurationError(f"Provider {provider.name} does not support native {label}.{because}")
        raise ConfigurationError(
            f"Provider {provider.name} supports native {label} but it is not enabled.{because}"
        )


def check_provider(provider: object) -> None:
    named = isinstance(getattr(provider, "name", None), str)
    if isinstance(provider, type) or not named or not callable(getattr(provider, "stream", None)):
        raise ConfigurationError(
            f"{provider!r} is not a provider: pass an instance of one, such as choose_provider() finds; one "
            "of your own needs a `name` and an async generator method `stream(request)`."
        )


class ProviderWrapper(AsyncClosing):
    """Looks like the provider inside; a subclass changes how `stream` reaches it."""

    def __init__(self, inner: Provider) -> None:
        check_provider(inner)
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def capabilities(self) -> Capabilities:
        return get_provider_capabilities(self.inner)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} around {self.inner!r}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        return get_provider_secrets(self.inner)

    async def aclose(self) -> None:
        """Close the wrapped provider, if it can be closed."""
        close = getattr(self.inner, "aclose", None)
        if close is not None:
            await close()
