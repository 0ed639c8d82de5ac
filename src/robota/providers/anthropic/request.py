"""Requests of the Messages API: bodies joined from fragments that are encoded once.

Cache marks stand behind the tools, the system prompt and the last two user turns: what the last request wrote
to the cache, this one finds again, however many blocks came in between. The marks are put into the joined
request, never into the fragments a history keeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from robota.core.models import get_model_max_output
from robota.core.provider import ChatRequest, ToolSchema
from robota.providers.anthropic.blocks import (
    CONTENT_KEY,
    BlockDialect,
    assistant_blocks,
    missing_result_block,
    result_block,
    stray_result_block,
    text_block,
    user_blocks,
)
from robota.providers.encoding import (
    EncodedTools,
    Encoder,
    GroupEncoder,
    encode_groups,
    match_results,
    own_fields,
    without_none,
)

WEB_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
MARKED_TURNS = 2
"""The API allows four marks; tools and system prompt have the other two."""
_LEAST_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 60_000}
"""Tokens of thinking for models that know no effort."""


class MessagesEncoder(Encoder, frozen=True):
    """Turns requests into bodies, as one endpoint takes them."""

    optional = ("cache_control", "thinking", "output_config", "temperature", "top_p")

    sampling: bool = False
    """Whether it takes `temperature` and `top_p`, which the API has refused since its version 2026-10-21."""
    output_schema: bool = False
    prompt_caching: bool = True
    blocks: BlockDialect = BlockDialect()

    def encode(self, request: ChatRequest, model: str) -> bytes:
        caching = self.prompt_caching and "cache_control" not in self.left_out
        turns = TurnEncoder(request, self.blocks)
        fragments = encode_groups(request, self.blocks, turns.encode_group)
        pieces = [encode(self._fields(request, model))[:-1]]
        tools = _encode_tools(request, caching=caching)
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        system = _system_blocks(request, fragments.count(SYSTEM))
        if system:
            pieces += (b',"system":', encode(mark_last(system) if caching else system))
        pieces += (b',"messages":', *turns.join(fragments, marked=MARKED_TURNS if caching else 0), b"}")
        return b"".join(pieces)

    def _fields(self, request: ChatRequest, model: str) -> JsonObject:
        """All but messages, tools and system prompt; the caller's own fields win over ours."""
        settings = request.settings
        max_tokens = settings.max_tokens or get_model_max_output(model)
        fields: JsonObject = {
            "model": model,
            "max_tokens": max_tokens,
            "stream": True,
            "stop_sequences": settings.stop or None,
            **self._effort_fields(request, model, max_tokens),
        }
        if self.sampling:
            fields |= {"temperature": settings.temperature, "top_p": settings.top_p}
        if settings.tool_choice is not None and (request.tools or _wants_search(request)):
            fields["tool_choice"] = _encode_tool_choice(settings.tool_choice)
        return without_none({**self.accepted(fields), **own_fields(settings, "messages", "system")})

    def _effort_fields(self, request: ChatRequest, model: str, max_tokens: int) -> JsonObject:
        config: JsonObject = {}
        thinking: JsonObject | None = None
        effort = request.settings.effort
        if effort and effort != "none":
            # a forced call and thinking exclude each other
            free = request.settings.tool_choice in (None, "auto", "none")
            if model_generation(model) != "budget":
                config["effort"] = "low" if effort == "minimal" else effort
            if model_generation(model) == "adaptive":
                thinking = {"type": "adaptive", "display": "summarized"} if free else None
            elif free:
                thinking = _budget(effort, max_tokens)
        if request.output_schema is not None and self.output_schema:
            config["format"] = {"type": "json_schema", "schema": request.output_schema}
        return {"thinking": thinking, "output_config": config or None}


def _system_blocks(request: ChatRequest, count: int) -> list[JsonObject]:
    """The system prompt; `count` is how many messages it has at most."""
    texts: list[str] = []
    for message in request.messages if count else ():
        if isinstance(message, SystemMessage):
            texts.append(message.content)
            if len(texts) == count:
                break
    return [text_block(text) for text in texts if text.strip()]


def _encode_tools(request: ChatRequest, *, caching: bool) -> bytes:
    """The tools, then the hosted ones and those that the caller adds."""
    wire, more = TOOLS.find(request.tools), [WEB_SEARCH] if _wants_search(request) else []
    more += request.settings.extra.get("tools") or ()
    if caching and more:
        more = mark_last(more)
    elif caching and wire:
        wire[-1] = wire[-1][:-1] + CLOSING_MARK
    return b",".join((*wire, *map(encode, more)))


def _encode_tool(tool: ToolSchema) -> bytes:
    """The tool under the name it has here: the API gets no aliases."""
    return encode({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})


TOOLS = EncodedTools(_encode_tool)


def model_generation(model: str) -> Literal["adaptive", "effort", "budget"]:
    """How a model is told how much to think. Names without a version are taken for new ones."""
    found = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)", model.lower())
    if found is None:
        return "adaptive"
    version = int(found[1]), int(found[2] or 0)
    if version >= (4, 6):
        return "adaptive"
    return "effort" if "opus" in model and version == (4, 5) else "budget"


def _budget(effort: str, max_tokens: int) -> JsonObject | None:
    tokens = min(_BUDGETS.get(effort, _BUDGETS["medium"]), max_tokens - _LEAST_BUDGET)
    return {"type": "enabled", "budget_tokens": tokens} if tokens >= _LEAST_BUDGET else None


def _wants_search(request: ChatRequest) -> bool:
    return request.native_web_tools is not None and request.native_web_tools.web_search


def _encode_tool_choice(choice: str) -> JsonObject:
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}


Role: TypeAlias = Literal["user", "assistant"]
# --- turns -----------------------------------------------------------------------------------------------

# A fragment is what one group of messages adds to the `messages` array: its blocks, after a comma if the turn
# goes on, after the opening of a new turn otherwise. It depends on what came before it and on nothing that
# will come, so it can be kept; joined, the fragments are the array without its last two brackets.

SYSTEM = b" "
"""The fragment of a system message, whose place is elsewhere: harmless between JSON tokens, countable."""
CACHE_MARK = {"type": "ephemeral"}
CLOSING_MARK = b',"cache_control":{"type":"ephemeral"}}'
_OPENING: dict[Role, bytes] = {
    "user": b']},{"role":"user","content":[',
    "assistant": b']},{"role":"assistant","content":[',
}
_CLOSING = b"]}"
_BEGIN_NOTE = text_block("[The beginning of this conversation is not shown.]")
_GO_ON_NOTE = text_block("Go on.")
_ANY = BlockDialect()
_CLEAN_ID = re.compile("[a-zA-Z0-9_-]+")


class TurnEncoder(GroupEncoder):
    """The turns of one request, as fragments to be kept and joined."""

    __slots__ = ("_dialect",)

    def __init__(self, request: ChatRequest, dialect: BlockDialect) -> None:
        super().__init__(request)
        self._dialect = dialect

    def encode_group(self, group: Sequence[Message]) -> bytes:
        at = self.enter(group)
        if isinstance(group[0], SystemMessage):
            return SYSTEM
        fragment, role = b"", self._role_before(at)
        for next_role, blocks in self._pieces(group, at):
            fragment += (b"," if next_role == role else _OPENING[next_role]) + encode(blocks)[1:-1]
            role = next_role
        return fragment

    def join(self, fragments: list[bytes], *, marked: int) -> list[bytes]:
        """The array in pieces, with a cache mark at the end of the last `marked` user turns."""
        end = self._ending()
        if end:
            fragments = [*fragments, _OPENING["user"] + encode(end)[1:-1]]
        turns = _mark_turns(fragments, marked) if marked else list(fragments)
        first = next(place for place, fragment in enumerate(turns) if len(fragment) > len(SYSTEM))
        if turns[first].startswith(_OPENING["assistant"]):
            begin = _OPENING["user"] + encode(_BEGIN_NOTE)
            turns[first] = begin[len(_CLOSING) + 1 :] + turns[first]
        else:
            turns[first] = turns[first][len(_CLOSING) + 1 :]  # there is no turn before it to be closed
        return [b"[", *turns, _CLOSING, b"]"]

    def _pieces(self, group: Sequence[Message], at: int) -> list[tuple[Role, list[JsonObject]]]:
        """What a group adds to the turns."""
        first = group[0]
        pieces: list[tuple[Role, list[JsonObject]]] = []
        if isinstance(first, AssistantMessage):
            blocks = assistant_blocks(first, self.wire_ids(first, at) if first.tool_calls else ())
            pieces += [("user", self._unanswered(at)), ("assistant", blocks)] if blocks else []
        elif isinstance(first, UserMessage):
            blocks = user_blocks(first, self._dialect)
            pieces += [("user", self._unanswered(at) + blocks)] if blocks else []
        elif isinstance(first, ToolMessage):
            pieces.append(("user", self._result_blocks(group, at)))
        return [(role, blocks) for role, blocks in pieces if blocks]

    def _ending(self) -> list[JsonObject]:
        """The blocks of the user turn that the end of the history still needs; none if it has one."""
        end = len(self.messages)
        missing = self._unanswered(end)
        if missing or self._role_before(end) == "user":
            return missing
        return [] if self._is_paused() else [_GO_ON_NOTE]

    # --- calls and their results -----------------------------------------------------------------------

    def _result_blocks(self, group: Sequence[Message], at: int) -> list[JsonObject]:
        """Results first, as the API demands; then what can only be said as text."""
        results: list[JsonObject] = []
        strays: list[JsonObject] = []
        waiting = self.waiting(at)
        for _, message, wire_id in match_results(group, waiting):
            if wire_id is None:
                strays.append(stray_result_block(message))
            else:
                results.append(result_block(message, wire_id, self._dialect))
        return results + [missing_result_block(wire_id) for _, wire_id in waiting] + strays

    def _unanswered(self, at: int) -> list[JsonObject]:
        return [missing_result_block(wire_id) for _, wire_id in self.waiting(at)]

    def takes_id(self, id: str, at: int) -> bool:
        """The API takes these letters, and no id that an earlier call has."""
        return bool(_CLEAN_ID.fullmatch(id)) and self.is_first_use(id, at)

    # --- what came before --------------------------------------------------------------------------------

    def before(self, at: int) -> int:
        """Where the last message before this place stands that has blocks."""
        at -= 1
        while at >= 0 and not _has_blocks(self.messages[at]):
            at -= 1
        return at

    def _role_before(self, at: int) -> Role | None:
        at = self.before(at)
        if at < 0:
            return None
        return "assistant" if isinstance(self.messages[at], AssistantMessage) else "user"

    def _is_paused(self) -> bool:
        """Whether the service wants its own unfinished turn back as the last one, to go on with it."""
        at = self.before(len(self.messages))
        metadata = self.messages[at].metadata if at >= 0 else {}
        return metadata.get("stopReason") == "pause" and CONTENT_KEY in metadata


def mark_last(blocks: list[JsonObject]) -> list[JsonObject]:
    """The blocks with a cache mark at their end."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": CACHE_MARK}] if blocks else blocks


def _mark_turns(fragments: Sequence[bytes], count: int) -> list[bytes]:
    """The fragments with a cache mark at the end of the last `count` user turns."""
    marked = list(fragments)
    last = None
    for place in range(len(marked) - 1, -1, -1):
        fragment = marked[place]
        if len(fragment) <= len(SYSTEM):
            continue
        last = place if last is None else last
        if fragment.startswith(b","):
            continue
        if fragment.startswith(_OPENING["user"]):
            # a fragment that answers calls for the history has the user's turn in front of an answer
            turn, answer, rest = fragment.partition(_OPENING["assistant"])
            last = place if answer else last
            marked[last] = b"".join(((turn if answer else marked[last])[:-1], CLOSING_MARK, answer, rest))
            count -= 1
            if count == 0:
                break
        last = None
    return marked


def _has_blocks(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return bool(message.tool_calls or message.content.strip() or assistant_blocks(message, ()))
    if isinstance(message, UserMessage):
        return bool(message.content.strip() or user_blocks(message, _ANY))
    return isinstance(message, ToolMessage)
