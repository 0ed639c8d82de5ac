"""Qwen on DashScope: Chat Completions, and the Responses API for requests that want its hosted web tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.provider import Capabilities, ChatRequest, Chunk, NativeWebTool, NativeWebTools
from robota.providers.families.vendor import Vendor, VendorProvider
from robota.providers.responses.provider import ResponsesProvider
from robota.providers.wire.channel import HttpChannel, endpoint

if TYPE_CHECKING:
    import httpx2

Region: TypeAlias = Literal["singapore", "beijing", "virginia", "hong-kong"]
REGIONS: dict[Region, str] = {
    "singapore": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "beijing": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "virginia": "https://dashscope-us.aliyuncs.com/compatible-mode/v1",
    "hong-kong": "https://cn-hongkong.dashscope.aliyuncs.com/compatible-mode/v1",
}
"""A key is good in its own region only."""
WEB_FETCH_TOOL = "web_extractor"
_NO_WEB_TOOLS = NativeWebTools()


class QwenProvider(VendorProvider):
    """A model of Qwen in one of the `REGIONS`, or at a `base_url`.

    `built_in_web_tools` enables DashScope's own web search and page reader; they are used by requests that
    ask for them (`ChatRequest.native_web_tools`), so a session's permission rules have their say. Which of
    them ran, for what and on which pages, is told as it happens and kept in the message's metadata
    (`serverTools`).
    """

    vendor = Vendor(
        name="qwen",
        base_url=REGIONS["singapore"],
        model="qwen-plus",
        key_variable="DASHSCOPE_API_KEY",
        hosts=tuple(urlsplit(address).netloc for address in REGIONS.values()),
    )

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        region: Region = "singapore",
        built_in_web_tools: NativeWebTools | None = None,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        client: httpx2.AsyncClient | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        if region not in REGIONS:
            raise ConfigurationError(f"Qwen has no region {region!r}; use one of {', '.join(REGIONS)}.")
        address = self.vendor.find_address(base_url or REGIONS[region])
        able = _add_web_tools(capabilities or self.vendor.capabilities, built_in_web_tools or _NO_WEB_TOOLS)
        super().__init__(
            api_key,
            address,
            model,
            name=name,
            headers=headers,
            transport=transport,
            client=client,
            capabilities=able,
        )
        key = (self.vendor.find_key(api_key, address) or "").strip()
        channel = HttpChannel(
            endpoint(address, "/responses"),
            {"authorization": f"Bearer {key}", **(headers or {})} if key else headers or {},
            provider=self.name,
            secrets=[key],
            transport=transport,
            client=client,
        )
        self._hosting = ResponsesProvider(
            channel, capabilities=able, instructions=False, web_fetch_tool=WEB_FETCH_TOOL
        )

    def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        wanted = request.native_web_tools or _NO_WEB_TOOLS
        if not (wanted.web_search or wanted.web_fetch):
            return super().stream(request)
        if wanted.web_fetch:  # the page reader works only for models that think
            extra = {"enable_thinking": True, **request.settings.extra}
            request = replace(request, settings=replace(request.settings, extra=extra))
        return self._hosting.stream(replace(request, model=request.model or self.model or ""))

    async def aclose(self) -> None:
        await super().aclose()
        await self._hosting.aclose()


def _add_web_tools(able: Capabilities, enabled: NativeWebTools) -> Capabilities:
    def describe(source: str, option: str, *, on: bool) -> NativeWebTool:
        reason = None if on else f"Pass built_in_web_tools=NativeWebTools({option}=True)."
        return NativeWebTool(supported=True, enabled=on, source=source, reason=reason)

    return replace(
        able,
        web_search=describe("web_search", "web_search", on=enabled.web_search),
        web_fetch=describe(WEB_FETCH_TOOL, "web_fetch", on=enabled.web_fetch),
    )
