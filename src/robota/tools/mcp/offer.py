"""What a server offers: tools, prompts and resources, as it listed them last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from robota.core.messages import JsonObject
from robota.core.permissions.subjects import SubjectKind, Touches
from robota.core.plain_text import strip_controls

if TYPE_CHECKING:
    from mcp.client import Client

MAX_DESCRIPTION = 2048
"""Characters of a description that the model sees."""
MAX_TOOLS = 1000
MAX_PAGES = 100
TOUCHES_KEY = "robota/touches"
"""In a tool's `_meta`: which of its arguments name files or commands. It can only restrict the tool."""
_KINDS: dict[str, SubjectKind] = {
    "command": "command", "read": "read", "write": "write", "search": "search", "url": "url",
}  # fmt: skip


class OfferedTool(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    schema: JsonObject
    touches: tuple[Touches, ...] = ()
    annotations: JsonObject = field(default_factory=dict)
    """What the server claims about it. Nobody relies on it."""


class PromptArgument(Struct, frozen=True):
    name: str
    required: bool = False


class OfferedPrompt(Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class OfferedResource(Struct, frozen=True, kw_only=True):
    uri: str
    name: str = ""
    description: str = ""


class Offer(Struct, frozen=True, kw_only=True):
    """All of it."""

    server: str = ""
    """What it calls itself."""
    version: str = ""
    protocol: str = ""
    instructions: str = ""
    tools: Mapping[str, OfferedTool] = field(default_factory=dict)
    prompts: Mapping[str, OfferedPrompt] = field(default_factory=dict)
    resources: tuple[OfferedResource, ...] = ()
    templates: tuple[OfferedResource, ...] = ()


async def read_offer(client: Client, complain: Callable[[str], None]) -> Offer:
    """Ask for everything that the server says it has. Only the list of tools has to work."""
    can, info = client.server_capabilities, client.server_info
    tools = [] if can.tools is None else await _read_pages(client.list_tools, "tools")
    if len(tools) > MAX_TOOLS:
        complain(f"It has {len(tools):,} tools, of which the first {MAX_TOOLS:,} are used.")

    async def read(capability: object, method: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
        return [] if capability is None else await _try(_read_pages(method, field), complain)

    prompts = await read(can.prompts, client.list_prompts, "prompts")
    resources = await read(can.resources, client.list_resources, "resources")
    templates = await read(can.resources, client.list_resource_templates, "resource_templates")
    return Offer(
        server="" if info is None else info.name,
        version="" if info is None else info.version,
        protocol=client.protocol_version,
        instructions=cut_description(client.instructions or ""),
        tools={tool.name: _read_tool(tool) for tool in tools[:MAX_TOOLS]},
        prompts={prompt.name: _read_prompt(prompt) for prompt in prompts[:MAX_TOOLS]},
        resources=tuple(_read_resource(each, str(each.uri)) for each in resources[:MAX_TOOLS]),
        templates=tuple(_read_resource(each, each.uri_template) for each in templates[:MAX_TOOLS]),
    )


async def _read_pages(method: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await method(cursor=cursor, cache_mode="refresh")
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(found) > MAX_TOOLS:
            break
    return found


async def _try(reading: Awaitable[list[Any]], complain: Callable[[str], None]) -> list[Any]:
    from mcp import MCPError  # noqa: PLC0415 - loaded by whoever connects
    from pydantic import ValidationError  # noqa: PLC0415 - likewise

    try:
        return await reading
    except MCPError as error:
        if error.code != -32601:  # a method that it does not have is nothing that it offers
            complain(f"It could not list all that it has: {error.error.message}")
    except ValidationError as error:
        complain(f"It listed something that is not as the protocol has it: {error.errors()[0]['msg']}.")
    return []


def _read_tool(tool: Any) -> OfferedTool:
    claimed = tool.annotations
    return OfferedTool(
        name=tool.name,
        description=cut_description(tool.description or tool.title or ""),
        schema=tool.input_schema,
        touches=_read_touches((tool.meta or {}).get(TOUCHES_KEY)),
        annotations={} if claimed is None else claimed.model_dump(by_alias=True, exclude_none=True),
    )


def _read_touches(declared: Any) -> tuple[Touches, ...]:
    found = []
    for each in declared if isinstance(declared, list) else [declared]:
        match each:
            case {"kind": str(kind), "fields": [*fields]} if kind in _KINDS:
                names = tuple(name for name in fields if isinstance(name, str))
                found.append(Touches(_KINDS[kind], names))
    return tuple(found)


def _read_prompt(prompt: Any) -> OfferedPrompt:
    return OfferedPrompt(
        name=prompt.name,
        description=cut_description(prompt.description or prompt.title or ""),
        arguments=tuple(PromptArgument(each.name, bool(each.required)) for each in prompt.arguments or ()),
    )


def _read_resource(resource: Any, uri: str) -> OfferedResource:
    described = resource.description or resource.title or ""
    return OfferedResource(uri=uri, name=resource.name, description=cut_description(described))


def cut_description(text: str) -> str:
    """A description without control characters, as long as one may be."""
    text = strip_controls(text)
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"
