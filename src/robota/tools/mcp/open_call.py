"""Calls of a server's tools that are under way: what they may ask of us, and how long they may be silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from robota.core.messages import JsonObject
from robota.core.questions import FormAnswer, FormQuestion
from robota.core.tool import ToolContext

if TYPE_CHECKING:
    import mcp_types

Sample: TypeAlias = Callable[[str, "mcp_types.CreateMessageRequestParams", ToolContext], Awaitable[Any]]
"""Asks the session's model for a server, if the user lets it: the server's name, what it asks, the call. A
text is why not."""


FillIn: TypeAlias = Callable[[FormQuestion, JsonObject, ToolContext], Awaitable[FormAnswer | None]]
"""Has a form of a server filled in: the form, what the server asked as hooks hear of it, the call."""


async def ask_user(form: FormQuestion, asked: JsonObject, context: ToolContext) -> FormAnswer | None:
    """What the user fills in; `None` if nobody can be asked, or nobody answers."""
    answer = None if context.ask is None else await context.ask(form)
    return answer if isinstance(answer, FormAnswer) else None


class OpenCall(Struct, eq=False):
    """While a person or a model is asked, the server cannot answer: that time does not count."""

    server: str
    context: ToolContext
    seconds: float
    """How long it may be silent."""
    _timer: asyncio.Timeout | None = None
    _asking: int = 0

    async def limit(self, work: Awaitable[Any]) -> Any:
        """Wait for the work, as long as there are signs of life; `TimeoutError` when there are none."""
        async with asyncio.timeout(self.seconds) as self._timer:
            return await work

    def sign_of_life(self) -> None:
        if self._timer is not None and not self._timer.expired():
            when = None if self._asking else asyncio.get_running_loop().time() + self.seconds
            self._timer.reschedule(when)

    async def show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.sign_of_life()
        amount = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
        self.context.progress(f"{amount} {message}\n" if message else f"{amount}\n")

    async def elicit(self, params: mcp_types.ElicitRequestParams, fill_in: FillIn) -> mcp_types.ElicitResult:
        """Have a form of the server filled in."""
        import mcp_types  # noqa: PLC0415 - a server is connected, so it is loaded

        asked: JsonObject = {"mcp_server_name": self.server, "message": params.message}
        if isinstance(params, mcp_types.ElicitRequestFormParams):
            schema = params.requested_schema
            asked |= {"mode": "form", "requested_schema": schema}
            form = FormQuestion(message=params.message, schema=schema, server=self.server)
        else:
            asked |= {"mode": "url", "url": params.url, "elicitation_id": params.elicitation_id}
            message = f"{params.message}\nOpen this address, and say when you are done: {params.url}"
            form = FormQuestion(message=message, schema=_NO_FIELDS, server=self.server)
        answer = await self.pause(fill_in(form, asked, self.context))
        if answer is None:
            return mcp_types.ElicitResult(action="cancel")
        content = answer.content if answer.action == "accept" and form.schema is not _NO_FIELDS else None
        return mcp_types.ElicitResult(action=answer.action, content=content)

    async def pause(self, work: Awaitable[Any]) -> Any:
        self._asking += 1
        self.sign_of_life()
        try:
            return await work
        finally:
            self._asking -= 1
            self.sign_of_life()


_NO_FIELDS: dict[str, Any] = {"type": "object", "properties": {}}


class Answers(Struct, eq=False):
    """What a server may ask of us while it is connected, and the calls on whose behalf."""

    sample: Sample | None
    fill_in: FillIn
    roots: tuple[str, ...]
    """The directories that the session works in."""
    calls: list[OpenCall] = []

    @property
    def newest_call(self) -> OpenCall | None:
        """The one that a question of the server belongs to, as far as anybody can tell."""
        return self.calls[-1] if self.calls else None
