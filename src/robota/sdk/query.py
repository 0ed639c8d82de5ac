"""`create_query`: one prompt, one answer, with everything a session has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack, overload

from robota.core.events import Compacted
from robota.core.messages import Prompt
from robota.core.permissions import PermissionMode
from robota.core.provider import Provider
from robota.core.run import OutputKind, OutputT
from robota.sdk.interactive import InteractiveSession

if TYPE_CHECKING:
    from robota.core.tool import Tool
    from robota.sessions.questions import PermissionHandler
    from robota.sessions.store.session_store import SessionStorePort
    from robota.sessions.usage.budget import Budget


class QueryOptions(TypedDict, total=False):
    """What a query may be told, when it is made or with each prompt."""

    cwd: str | os.PathLike[str]
    model: str
    permission_mode: PermissionMode
    permission_handler: PermissionHandler
    max_turns: int
    budget: Budget
    tools: Iterable[Tool]
    system_prompt: str
    append_system_prompt: str
    session_store: SessionStorePort
    setting_sources: Iterable[str]
    trust_project: bool
    on_text_delta: Callable[[str], object]
    on_compact: Callable[[Compacted], object]


class Query(Protocol):
    """What `create_query` gives: call it with a prompt, as often and as many at once as you like."""

    @overload
    async def __call__(self, prompt: Prompt, **options: Unpack[QueryOptions]) -> str: ...
    @overload
    async def __call__(
        self, prompt: Prompt, *, output: OutputKind[OutputT], **options: Unpack[QueryOptions]
    ) -> OutputT: ...
    async def __call__(
        self, prompt: Prompt, *, output: OutputKind[Any] | None = None, **options: Unpack[QueryOptions]
    ) -> Any: ...

    @overload
    def sync(self, prompt: Prompt, **options: Unpack[QueryOptions]) -> str: ...
    @overload
    def sync(
        self, prompt: Prompt, *, output: OutputKind[OutputT], **options: Unpack[QueryOptions]
    ) -> OutputT: ...
    def sync(
        self, prompt: Prompt, *, output: OutputKind[Any] | None = None, **options: Unpack[QueryOptions]
    ) -> Any:
        """The same for code without an event loop."""


def create_query(provider: Provider, **defaults: Unpack[QueryOptions]) -> Query:
    """A function that takes a prompt to its answer, in a session of its own each time.

    Tools run WITHOUT A QUESTION: the default `permission_mode` is `bypassPermissions`, because a program has
    nobody to ask. Pass another one, or deny rules, where prompts come from people you do not know. What is
    given here counts for every call, and what is given with a call counts more. An abort gives the words so
    far; a failing model raises. With `output=` the answer is a validated value of that type.
    """
    return _Query(provider, defaults)


class _Query:
    def __init__(self, provider: Provider, defaults: QueryOptions) -> None:
        self._provider = provider
        self._defaults = defaults
        self._make(defaults)  # a mistake is told here, not at the first prompt

    def _make(self, options: QueryOptions) -> InteractiveSession:
        given: dict[str, Any] = {"permission_mode": "bypassPermissions", **options}
        on_text, on_compact = given.pop("on_text_delta", None), given.pop("on_compact", None)
        session = InteractiveSession(provider=self._provider, **given)
        if on_text is not None:
            session.on("text_delta", on_text)
        if on_compact is not None:
            session.events.on(Compacted, on_compact)
        return session

    async def __call__(
        self, prompt: Prompt, *, output: OutputKind[Any] | None = None, **options: Unpack[QueryOptions]
    ) -> Any:
        async with self._make({**self._defaults, **options}) as session:
            result = await session.submit(prompt, output=output)
            if result.error is not None:
                raise result.error
            return result.text if output is None else result.output

    def sync(
        self, prompt: Prompt, *, output: OutputKind[Any] | None = None, **options: Unpack[QueryOptions]
    ) -> Any:
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        return run_sync(self(prompt, output=output, **options))
