"""Functions of your own program as hooks: `{"PreToolUse": [hook(check, matcher="Bash")]}`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from typing import TypeAlias

from anyio import to_thread

from robota.core.errors import ConfigurationError
from robota.core.hooks.definition import DEFAULT_TIMEOUT, HookDefinition, HookGroup
from robota.core.hooks.outcome import HookResult
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.plugin import Refusal

HookAnswer: TypeAlias = Refusal | Mapping[str, Json] | str | None
"""No, an answer as a command would print it in JSON, words for the model, or nothing to say."""
HookFunction: TypeAlias = Callable[[JsonObject], HookAnswer | Awaitable[HookAnswer]]

FUNCTION = "function"


def hook(
    function: HookFunction, *, matcher: str = "", condition: str = "", timeout: float = DEFAULT_TIMEOUT
) -> HookGroup:
    """A function as a hook, for the configuration of a session. It gets what a command gets as JSON.

    An async function is awaited where it is, another one runs in a worker thread.
    """
    if not callable(function):
        raise ConfigurationError(f"A hook needs a function, not {type(function).__name__}.")
    handler = HookDefinition(
        type=FUNCTION,
        command=getattr(function, "__qualname__", type(function).__name__),
        condition=condition,
        timeout=timeout,
        extra={FUNCTION: function},
        source="the program",
    )
    return HookGroup(matcher=matcher, hooks=(handler,))


class FunctionExecutor:
    """Calls the functions that `hook` was given."""

    type = FUNCTION

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        function = hook.extra.get(FUNCTION)
        if not callable(function):
            return HookResult(exit_code=1, failure="names no function: settings can only have commands")
        given = dict(hook_input)
        if iscoroutinefunction(function):
            answer: object = await function(given)
        else:
            answer = await to_thread.run_sync(function, given, abandon_on_cancel=True)
        if isinstance(answer, Refusal):
            return HookResult(exit_code=2, stderr=answer.reason)
        if isinstance(answer, Mapping):
            return HookResult(stdout=encode(dict(answer)).decode())
        if answer is None or isinstance(answer, str):
            return HookResult(stdout=answer or "")
        kind = type(answer).__name__
        return HookResult(
            exit_code=1, failure=f"returned {kind}; it may return None, text, a dict or Refusal"
        )
