"""A model service for tests: a real HTTP server on the loopback interface that says what a script tells it.

    async with ModelServer(["Hel", "lo"], HttpError(429, headers={"retry-after": "2"})) as server:
        provider = OpenAICompatibleProvider(base_url=f"{server.url}/v1", api_key="test", model="any")

It runs in the test's own loop (`async with`), in a thread (`with ModelServer(…).in_thread() as server`) or as
a process (`python -m robota.testing.model_server`). Each request that asks the model something takes the next
reply; `server.requests` remembers everything that came. A function of the script that raises makes the
`with` block raise the same.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Self

import msgspec

from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.testing.dialect import UNREADABLE, Dialect
from robota.testing.http_connection import Connection
from robota.testing.http_request import ReceivedRequest, response
from robota.testing.latch import PATIENCE, Latch
from robota.testing.model_list import list_models
from robota.testing.model_script import Cut, HttpError, ModelReply, ModelStep, freeze, settle
from robota.testing.reply_plan import Plan, make_plan, plan_error
from robota.testing.wire_anthropic import Messages
from robota.testing.wire_chat import ChatCompletions
from robota.testing.wire_gemini import GenerateContent
from robota.testing.wire_responses import Responses

DIALECTS: tuple[Dialect, ...] = (ChatCompletions(), Messages(), Responses(), GenerateContent())
"""The protocols spoken; the first that serves a path answers."""
PLANS_KEPT = 256


class ModelServer:
    """Serves the replies one per model request, in order of arrival.

    `repeat` starts over at the end. `strict` refuses, with status 400, a request that the vendor would
    refuse. `record=False` forgets requests once they are answered, for long runs. `models` is what the list
    of models names. `on_request` is called with each request, when its reply is known and before it is sent.
    """

    def __init__(
        self,
        *replies: ModelReply,
        repeat: bool = False,
        strict: bool = True,
        record: bool = True,
        models: Sequence[str] = ("scripted",),
        port: int = 0,
        on_request: Callable[[ReceivedRequest], object] | None = None,
    ) -> None:
        self.requests: list[ReceivedRequest] = []
        """Everything that arrived, in order."""
        self.port = port
        """The port asked for, then the port bound; it stays known after the server is gone."""
        self._replies = [reply if callable(reply) else freeze(reply) for reply in replies]
        self._repeat = repeat
        self._strict = strict
        self._record = record
        self._received = 0
        self._models = tuple(models)
        self._on_request = on_request
        self._played = 0
        self._plans: dict[Hashable, tuple[object, Plan]] = {}
        self._failure: Exception | None = None
        self._waiting: list[tuple[int, Latch]] = []
        self._listener: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._quiet = asyncio.Event()

    # --- for tests ---------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the server is, without a path; OpenAI clients want `/v1` behind it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_urls(self) -> dict[str, str]:
        """What to tell a client of each protocol, by the protocol's name."""
        return {dialect.name: self.url + dialect.base_path for dialect in DIALECTS}

    async def wait_for_requests(self, count: int, timeout: float = PATIENCE) -> list[ReceivedRequest]:
        """The requests, as soon as there are at least so many."""
        await self._count_latch(count).wait(timeout)
        return self.requests

    def wait_for_requests_in_thread(self, count: int, timeout: float = PATIENCE) -> list[ReceivedRequest]:
        """`wait_for_requests` for tests without an event loop."""
        self._count_latch(count).wait_in_thread(timeout)
        return self.requests

    def _count_latch(self, count: int) -> Latch:
        latch = Latch(f"the model server got {count} requests")
        self._waiting.append((count, latch))
        self._announce()
        return latch

    def _announce(self) -> None:
        for count, latch in self._waiting:
            if self._received >= count:
                latch.open()

    # --- life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, until `stop()`; an address that cannot be used raises `OSError`."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: Connection(self), "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End every connection, whatever is under way."""
        assert self._listener is not None
        self._listener.close()
        for connection in tuple(self._connections):
            connection.drop()
        if self._connections:
            await self._quiet.wait()
        await self._listener.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if self._failure is not None and error is None:
            raise self._failure

    def in_thread(self) -> AbstractContextManager[Self]:
        """Run in a thread with a loop of its own, for synchronous tests and for clients that change loops."""
        from robota.testing.in_thread import running_in_thread  # noqa: PLC0415 - most tests stay in their own

        return running_in_thread(self)

    # --- for connections ---------------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._quiet.clear()

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._quiet.set()

    def answer(self, request: ReceivedRequest) -> Plan:
        """Remember the request and say how it is answered."""
        self._received += 1
        request.number = self._received
        if self._record:
            self.requests.append(request)
        if request.method == "POST":
            request.dialect = next((known for known in DIALECTS if known.serves(request.path)), None)
        plan = self._plan(request)
        request.reply_size, request.status, request.problem = plan.size, plan.status, plan.problem
        self._announce()
        if self._on_request is not None:
            self._on_request(request)
        return plan

    def _plan(self, request: ReceivedRequest) -> Plan:
        dialect = request.dialect
        if dialect is None:
            return self._answer_other(request)
        problem = _check(dialect, request.json) if self._strict else None
        if problem is not None:
            return _plan_problem(f"Invalid request: {problem}.", dialect)
        try:
            return self._prepare(settle(self._next_reply(), request), dialect, request)
        except Exception as error:  # noqa: BLE001 - a script is foreign code; the test gets its error on leaving
            self._failure = self._failure or error
            return _plan_problem(f"The script failed: {type(error).__name__}: {error}", dialect)

    def _next_reply(self) -> ModelReply:
        at = self._played
        self._played += 1
        if at < len(self._replies):
            return self._replies[at]
        if self._repeat and self._replies:
            return self._replies[at % len(self._replies)]
        raise ConfigurationError(
            f"The script has {len(self._replies)} replies and this is model request {at + 1}; "
            "add a reply or pass repeat=True."
        )

    def _prepare(
        self, reply: tuple[ModelStep, ...] | str | HttpError | Cut, dialect: Dialect, request: ReceivedRequest
    ) -> Plan:
        """The plan for a reply; one that was said before in the same way is not encoded again."""
        body = request.json
        stream = dialect.wants_stream(request.path, body)
        key = (id(reply), dialect.name, stream, dialect.variant(request.path, body))
        kept = self._plans.get(key)
        if kept is not None:
            return kept[1]
        plan = make_plan(reply, dialect, dialect.encoder(request.path, body), stream=stream)
        if len(self._plans) >= PLANS_KEPT:
            self._plans.clear()
        self._plans[key] = (reply, plan)  # holding the reply keeps its identity from being given away
        return plan

    def _answer_other(self, request: ReceivedRequest) -> Plan:
        listed = list_models(request, self._models)
        if listed is not None:
            document = msgspec.json.encode(listed)
            return Plan((response(200, {"content-type": "application/json"}, document),), len(document))
        message = f"This model server has nothing at {request.method} {request.path}."
        body: JsonObject = {"error": {"message": message, "type": "not_found_error"}}
        return plan_error(HttpError(404, body), None, message)


def _check(dialect: Dialect, body: JsonObject) -> str | None:
    """Why the vendor would refuse the request; what the check itself stumbles over is no request at all."""
    try:
        return dialect.check(body)
    except UNREADABLE as error:
        return f"it does not have the shape of the protocol ({type(error).__name__}: {error})"


def _plan_problem(message: str, dialect: Dialect) -> Plan:
    return plan_error(HttpError(400, dialect.error_body(400, message)), dialect, message)


# --- as a process ------------------------------------------------------------------------------------


def load_script(name: str) -> list[ModelReply]:
    """The replies named `module:attribute`: one reply, or a list of them."""
    from importlib import import_module  # noqa: PLC0415 - only the process entry loads by name

    module, _, attribute = name.partition(":")
    script = getattr(import_module(module), attribute, None) if attribute else None
    if script is None:
        raise ConfigurationError(f"--script {name}: name a reply or a list of replies as module:attribute.")
    return list(script) if isinstance(script, list) else [script]


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until stdin closes; the first line of output is JSON with the port and the address."""
    import argparse  # noqa: PLC0415 - only the process entry has arguments

    parser = argparse.ArgumentParser(prog="robota.testing.model_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--reply", action="append", help="a text to answer with; may be given several times")
    parser.add_argument("--script", help="module:attribute, a reply or a list of replies")
    parser.add_argument("--lenient", action="store_true", help="do not check requests as the vendor would")
    chosen = parser.parse_args(argv)
    replies = (
        load_script(chosen.script) if chosen.script else chosen.reply or ["Hello from the scripted model."]
    )
    serving = ModelServer(*replies, repeat=True, strict=not chosen.lenient, record=False, port=chosen.port)
    with serving.in_thread() as server:
        sys.stdout.write(msgspec.json.encode({"port": server.port, "url": server.url}).decode() + "\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
