"""The library's client as we use it. Importing this loads the library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import mcp_types
from mcp import MCPError
from mcp.client import Client, ClientRequestContext
from mcp.client.session import MessageHandlerFnT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl

from robota._version import __version__
from robota.tools.mcp.open_call import Answers

_NO_CALL = "A model is asked only while a tool of the server is called."


def make_client(
    transport: AbstractAsyncContextManager[Any],
    mode: str,
    answers: Answers,
    hear: MessageHandlerFnT,
) -> Client:
    """A client that is not entered yet; `hear` gets what the server tells by itself."""

    async def elicit(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        call = answers.newest_call
        return (
            mcp_types.ElicitResult(action="cancel")
            if call is None
            else await call.elicit(params, answers.fill_in)
        )

    async def sample(
        context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        call = answers.newest_call
        if call is None or answers.sample is None:
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=_NO_CALL)
        answer = await call.pause(answers.sample(call.server, params, call.context))
        if isinstance(answer, str):
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=answer)
        sampled: mcp_types.CreateMessageResult = answer
        return sampled

    async def list_roots(context: ClientRequestContext) -> mcp_types.ListRootsResult:
        paths = [Path(root) for root in answers.roots]
        roots = [mcp_types.Root(uri=FileUrl(path.as_uri()), name=path.name) for path in paths]
        return mcp_types.ListRootsResult(roots=roots)

    return Client(
        transport,
        mode=mode,
        client_info=mcp_types.Implementation(name="robota", version=__version__),
        message_handler=hear,
        elicitation_callback=elicit,
        sampling_callback=None if answers.sample is None else sample,
        list_roots_callback=list_roots if answers.roots else None,
        cache=None,
    )


def wants_newer(error: BaseException) -> bool:
    """Whether a server refused the handshake because it speaks only what came after it."""
    codes = (mcp_types.UNSUPPORTED_PROTOCOL_VERSION, mcp_types.METHOD_NOT_FOUND)
    return isinstance(error, MCPError) and error.code in codes


@asynccontextmanager
async def follow_lists(client: Client, on_change: Callable[[], None]) -> AsyncIterator[None]:
    """Hear of changed lists, where the protocol tells of them on request only."""
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        yield
        return

    async def follow() -> None:
        with suppress(MCPError, RuntimeError, TimeoutError):  # a server need not tell of changes
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _ in changes:
                    on_change()

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,), timeout=1)
