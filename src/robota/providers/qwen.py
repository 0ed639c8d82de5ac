"""Qwen on DashScope: Chat Completions, and the Responses API for requests that want its hosted web tools.

Each region has an address of its own, and a key that is good nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal, TypeAlias, Unpack
from urllib.parse import urlsplit

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.core.provider import Capabilities, ChatRequest, Chunk, NativeWebTool, NativeWebTools, Provider
from robota.providers.openai_compatible import Vendor, VendorOptions, VendorProvider
from robota.providers.responses import responses_codec
from robota.providers.service import endpoint
from robota.providers.wire.provider import WireProvider

Region: TypeAlias = Literal["singapore", "beijing", "virginia", "hong-kong"]
REGIONS: dict[str, str] = {
    "singapore": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "beijing": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "virginia": "https://dashscope-us.aliyuncs.com/compatible-mode/v1",
    "hong-kong": "https://cn-hongkong.dashscope.aliyuncs.com/compatible-mode/v1",
}
WEB_FETCH_TOOL = "web_extractor"
_NO_WEB_TOOLS = NativeWebTools()
_WEB_TOOL_OPTIONS = {"webSearch": "web_search", "webFetch": "web_fetch"}


def _make(*given: Json, built_in_web_tools: Json = None, **options: Json) -> Provider:
    if built_in_web_tools is not None:
        options["built_in_web_tools"] = _read_web_tools(built_in_web_tools)
    return QwenProvider(*given, **options)


def _read_web_tools(wanted: dict[str, Json]) -> NativeWebTools:
    read = {_WEB_TOOL_OPTIONS.get(name, name): value for name, value in wanted.items()}
    known = set(read) <= set(_WEB_TOOL_OPTIONS.values())
    if not known or not all(isinstance(on, bool) for on in read.values()):
        raise ConfigurationError(
            "The option 'builtInWebTools' of Qwen has webSearch and webFetch, each true or false."
        )
    return NativeWebTools(**read)


SERVICE = Vendor(
    name="qwen",
    title="Qwen",
    description="Qwen models on DashScope; web search and a page reader can be enabled.",
    make=_make,
    options={"region": str, "built_in_web_tools": dict},
    aliases=("dashscope",),
    base_url=REGIONS["singapore"],
    regions=REGIONS,
    hosts=tuple(urlsplit(address).netloc for address in REGIONS.values()),
    model="qwen-plus",
    key_page="https://www.alibabacloud.com/help/model-studio/get-api-key",
    key_variables=("DASHSCOPE_API_KEY",),
    docs="https://www.alibabacloud.com/help/en/model-studio",
    catalog="qwen",
)


class QwenProvider(VendorProvider):
    """A model of Qwen in one of the `REGIONS`, or at a `base_url`.

    `built_in_web_tools` enables DashScope's own web search and page reader; they are used by requests that
    ask for them (`ChatRequest.native_web_tools`), so a session's permission rules have their say. Which of
    them ran, for what and on which pages, is told as it happens and kept in the message's metadata
    (`serverTools`).
    """

    vendor = SERVICE

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        region: Region = "singapore",
        built_in_web_tools: NativeWebTools | None = None,
        **options: Unpack[VendorOptions],
    ) -> None:
        from robota.providers.wire.channel import HttpChannel  # noqa: PLC0415 - definitions load no HTTP

        if region not in REGIONS:
            raise ConfigurationError(f"Qwen has no region {region!r}; use one of {', '.join(REGIONS)}.")
        address = self.vendor.find_address(base_url or REGIONS[region])
        able = _add_web_tools(
            options.get("capabilities") or self.vendor.capabilities, built_in_web_tools or _NO_WEB_TOOLS
        )
        options["capabilities"] = able
        super().__init__(api_key, address, model, **options)
        channel = HttpChannel(
            endpoint(address, "/responses"),
            options.get("headers"),
            provider=self.name,
            key=self.vendor.find_key(api_key, address),
            transport=options.get("transport"),
            client=options.get("client"),
        )
        encoder, content = responses_codec(able, instructions=False, web_fetch_tool=WEB_FETCH_TOOL)
        self._hosting = WireProvider(
            self.name, self.model, able, channel=channel, encoder=encoder, content=content
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
