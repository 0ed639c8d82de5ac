"""Requests in the wire form of Gemini's generateContent."""

from __future__ import annotations

import re

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import ChatRequest, ModelSettings, NativeWebTools, ToolSchema
from robota.providers.encoding import EncodedTools
from robota.providers.gemini.turns import TurnDialect, TurnWriter

_GENERATION = re.compile(r"gemini-(\d+)")
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_LEVELS = {"none": "MINIMAL", "off": "MINIMAL", "xhigh": "HIGH", "max": "HIGH"}
"""Efforts that these models know under another name; the others are sent as they are."""
_BUDGETS = {"none": 0, "off": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576}
"""Tokens of thinking for the second generation, which has no levels; others choose for themselves."""
_OWN_CHOICE = -1


class GeminiModel(Struct, frozen=True):
    """What the name of a model says about it; a name that says nothing stands for a current one."""

    name: str

    @property
    def generation(self) -> int | None:
        found = _GENERATION.search(self.name)
        return int(found[1]) if found else None

    @property
    def is_old(self) -> bool:
        """Before Gemini 3: thinks by budget, signs nothing, takes either functions or what excludes them."""
        generation = self.generation
        return generation is not None and generation < 3

    @property
    def signs_calls(self) -> bool:
        return "gemini" in self.name and not self.is_old


class GeminiEncoder:
    """Turns requests into bodies."""

    __slots__ = ("_files", "_images", "_output_schema")

    def __init__(self, *, images: bool = True, files: bool = True, output_schema: bool = True) -> None:
        self._images = images
        self._files = files
        self._output_schema = output_schema

    def encode(self, request: ChatRequest, model: str) -> bytes:
        known = GeminiModel(model)
        dialect = TurnDialect(self._images, self._files, known.signs_calls)
        writer = TurnWriter(request.messages, dialect)
        fields = self._fields(request, known, writer.instructions())
        tools = self._encode_tools(request)
        pieces = [b'{"contents":[', *writer.write(request), b"]"]
        if fields:
            pieces += (b",", encode(fields)[1:-1])
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        pieces.append(b"}")
        return b"".join(pieces)

    def _fields(self, request: ChatRequest, model: GeminiModel, instructions: list[JsonObject]) -> JsonObject:
        extra = request.settings.extra
        if "contents" in extra:
            raise ConfigurationError(
                "ModelSettings.extra cannot hold 'contents'; pass messages in ChatRequest.messages."
            )
        fields: JsonObject = {
            "systemInstruction": {"parts": instructions, "role": "user"} if instructions else None,
            "toolConfig": _encode_tool_config(request, model),
        }
        fields.update((name, value) for name, value in extra.items() if name != "tools")
        config = self._generation_config(request, model) | (extra.get("generationConfig") or {})
        fields["generationConfig"] = config or None
        return {name: value for name, value in fields.items() if value is not None}

    def _generation_config(self, request: ChatRequest, model: GeminiModel) -> JsonObject:
        settings = request.settings
        config: JsonObject = {
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "maxOutputTokens": settings.max_tokens,
            "stopSequences": settings.stop or None,
            "thinkingConfig": _encode_thinking(settings, model),
        }
        if request.output_schema is not None and self._output_schema and not (request.tools and model.is_old):
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = request.output_schema
        return {name: value for name, value in config.items() if value is not None}

    def _encode_tools(self, request: ChatRequest) -> bytes:
        functions = b",".join(FUNCTIONS.find(request.tools))
        web = request.native_web_tools or NativeWebTools()
        more: list[Json] = [{"googleSearch": {}}] if web.web_search else []
        more += [{"urlContext": {}}] if web.web_fetch else []
        more += request.settings.extra.get("tools") or ()
        declared = (b'{"functionDeclarations":[%b]}' % functions,) if functions else ()
        return b",".join((*map(encode, more), *declared))


def _encode_function(tool: ToolSchema) -> bytes:
    return encode(
        {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
    )


FUNCTIONS = EncodedTools(_encode_function)


def _encode_tool_config(request: ChatRequest, model: GeminiModel) -> JsonObject | None:
    if not request.tools:
        return None
    config: JsonObject = {}
    web = request.native_web_tools
    if web is not None and (web.web_search or web.web_fetch):
        if model.is_old:
            raise ConfigurationError(
                f"Model {model.name!r} cannot have hosted web tools beside other tools; "
                "use a Gemini 3 model or leave one kind out."
            )
        config["includeServerSideToolInvocations"] = True
    choice = request.settings.tool_choice
    if choice is not None:
        calling: JsonObject = {"mode": _MODES.get(choice, "ANY")}
        if choice not in _MODES:
            calling["allowedFunctionNames"] = [choice]
        config["functionCallingConfig"] = calling
    return config or None


def _encode_thinking(settings: ModelSettings, model: GeminiModel) -> JsonObject | None:
    """Asking for an effort asks for the thoughts as well."""
    effort = (settings.effort or "").lower()
    if not effort:
        return None
    if not model.is_old:
        return {"includeThoughts": True, "thinkingLevel": _LEVELS.get(effort, effort.upper())}
    budget = _BUDGETS.get(effort, _OWN_CHOICE)
    return {"includeThoughts": budget != 0, "thinkingBudget": budget}
