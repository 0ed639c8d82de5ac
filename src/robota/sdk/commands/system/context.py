"""The context window: how full it is, with what, which files are kept in it, and when it is summarized."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from anyio import to_thread

from robota.core.context import BYTES_PER_TOKEN, serialized_size
from robota.core.jsontext import encode
from robota.core.plain_text import strip_controls
from robota.sdk.commands.arguments import dispatch, split_first, usage
from robota.sdk.commands.bars import length_bar, share_bar
from robota.sdk.commands.effects import CommandResult, ContextShown
from robota.sdk.settings.write import change_setting, remove_setting
from robota.sessions.context_window_tracker import DEFAULT_AUTO_COMPACT_THRESHOLD, AutoCompactThreshold

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

TOOLS = "Descriptions of tools"
SETTING = "autoCompactThreshold"
_AUTO = "auto [on | off | 85% | reset]"


async def context(host: InteractiveSession, args: str) -> CommandResult:
    actions = {"show": _show, "add": _add, "remove": _remove, "clear": _clear, "auto": _auto}
    return await dispatch(host, "context", args, actions, default="show")


async def _show(host: InteractiveSession, args: str) -> CommandResult:
    state = host.context_state
    used = f"{state.used_tokens:,} / {state.max_tokens:,} tokens ({state.used_percentage:.0f}%)"
    lines = [f"Context: {used}", f"  {share_bar(state.used_percentage / 100, 50)}"]
    if not host.is_ready_made:
        parts = list(list_parts(host))
        largest = max((tokens for _, tokens in parts), default=0)
        width = max((len(name) for name, _ in parts), default=0)
        lines += [
            f"  {f'{name}: {tokens:,} tokens':<{width + 18}} {length_bar(tokens, largest)}".rstrip()
            for name, tokens in parts
        ]
        lines += [f"  kept: {each.path} ({each.size:,} bytes)" for each in host.kit.context.references.active]
    effect = ContextShown(state.used_tokens, state.max_tokens, state.used_percentage)
    return CommandResult("\n".join(lines), effect=effect)


def list_parts(host: InteractiveSession) -> Iterator[tuple[str, int]]:
    """What a request is made of, and about how many tokens each part takes."""
    for section in host.kit.context.prompt.sections:
        yield section.name, section.tokens
    agent = host.session.agent
    said = [each for each in agent.conversation.messages_for_api() if each.role != "system"]
    yield TOOLS, _estimate(len(encode(agent.toolset.schemas)))
    yield "Conversation", _estimate(sum(map(serialized_size, said)))


def show_part(host: InteractiveSession, name: str) -> str | None:
    """What the model is given as a part of the system prompt, or the size of each tool's description; the
    conversation is known to whoever follows it."""
    if host.is_ready_made:
        return None
    if name == TOOLS:
        sizes = {each.name: _estimate(len(encode(each))) for each in host.session.agent.toolset.schemas}
        return "\n".join(
            f"{tokens:>6,}  {tool}" for tool, tokens in sorted(sizes.items(), key=_largest_first)
        )
    return next((each.text for each in host.kit.context.prompt.sections if each.name == name), None)


def _largest_first(item: tuple[str, int]) -> int:
    return -item[1]


def _estimate(size: int) -> int:
    return math.ceil(size / BYTES_PER_TOKEN)


async def _add(host: InteractiveSession, args: str) -> CommandResult:
    if not args:
        return usage("context", "add PATH")
    added = host.kit.context.references.add(args)
    return CommandResult(f"{added.path} is kept in the conversation ({added.size:,} bytes).")


async def _remove(host: InteractiveSession, args: str) -> CommandResult:
    if not args:
        return usage("context", "remove PATH")
    return CommandResult(f"{host.kit.context.references.remove(args).path} is not followed any more.")


async def _clear(host: InteractiveSession, args: str) -> CommandResult:
    count = host.kit.context.references.clear()
    return CommandResult(f"{count} {'file is' if count == 1 else 'files are'} not followed any more.")


async def _auto(host: InteractiveSession, args: str) -> CommandResult:
    word, _ = split_first(args)
    if word in ("", "on", "off", "reset"):
        named: dict[str, AutoCompactThreshold] = {"off": False}
        threshold = named.get(word, DEFAULT_AUTO_COMPACT_THRESHOLD)
    else:
        try:
            threshold = read_threshold(word)
        except ValueError as error:
            return usage("context", _AUTO, str(error))
    session, path = host.session, host.project.places.user("settings.json")
    if word == "":
        return CommandResult(describe_threshold(session.auto_compact_threshold))
    if word == "reset":
        await to_thread.run_sync(remove_setting, path, SETTING)
    else:
        await to_thread.run_sync(change_setting, path, SETTING, threshold)
    session.auto_compact_threshold = threshold
    return CommandResult(describe_threshold(threshold))


def read_threshold(word: str) -> float:
    """`85%` or `0.85`; a bare `85` could be either, so it is refused."""
    try:
        number = float(word.removesuffix("%"))
    except ValueError:
        raise ValueError(f"{strip_controls(word)!r} is not a part of the window.") from None
    if not word.endswith("%") and number > 1:
        raise ValueError(f"Write {word}% for that part of the window.")
    part = number / 100 if word.endswith("%") else number
    if not 0 < part <= 1:
        raise ValueError(f"{word} is not more than nothing and at most the whole window.")
    return round(part, 6)


def describe_threshold(threshold: AutoCompactThreshold) -> str:
    if threshold is False:
        return "The conversation is summarized only by /compact."
    return f"The conversation is summarized when {threshold * 100:.4g}% of the window is used."
