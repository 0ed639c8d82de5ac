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
from contextlib import suppress

import msgspec

from robota.core.context import BYTES_PER_TOKEN
from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.providers.scripted import Delay
from robota.testing.dialect import UNREADABLE, Dialect
from robota.testing.http_server import (
    PATIENCE,
    BadRequest,
    Latch,
    LoopbackServer,
    ReceivedRequest,
    ServerConnection,
    response,
)
from robota.testing.model_script import Cut, Gate, HttpError, ModelReply, ModelStep, Tap, freeze, settle
from robota.testing.reply_plan import Endless, Plan, Wait, make_plan, plan_error
from robota.testing.wire_anthropic import Messages
from robota.testing.wire_chat import ChatCompletions
from robota.testing.wire_gemini import GenerateContent
from robota.testing.wire_responses import Responses

DIALECTS: tuple[Dialect, ...] = (ChatCompletions(), Messages(), Responses(), GenerateContent())
"""The protocols spoken; the first that serves a path answers."""
PLANS_KEPT = 256
UNSENT_LIMIT = 1 << 20
"""Bytes that may wait for a client that does not read; what is repeated for ever then pauses."""
_CREATED = 1_700_000_000
_CREATED_AT = "2023-11-14T22:13:20Z"
_TOKENS = 100_000


class ModelServer(LoopbackServer):
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
        super().__init__(port)
        self.requests: list[ReceivedRequest] = []
        """Everything that arrived, in order."""
        self._replies = [
            reply if callable(reply) and not isinstance(reply, type) else freeze(reply) for reply in replies
        ]
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

    # --- for tests ---------------------------------------------------------------------------------

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

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()
        if self._failure is not None and failure[0] is None:
            raise self._failure

    # --- for connections ---------------------------------------------------------------------------

    def connect(self) -> _Connection:
        return _Connection(self)

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
            f"The script has no reply for model request {at + 1}; add one or pass repeat=True."
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
        listed = _list_models(request, self._models) or _count_tokens(request)
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


class _Connection(ServerConnection):
    """Plays plans back, in order and kept alive.

    There are no tasks: a plan is played until it must wait, and goes on from whatever ends the wait. Losing
    the connection ends everything that hangs on it.
    """

    def __init__(self, server: ModelServer) -> None:
        super().__init__(server)
        self._answer = server.answer
        self._request: ReceivedRequest | None = None
        """The request being answered."""
        self._plan = Plan(())
        self._at = 0
        self._timer: asyncio.Handle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            self._request.disconnected.open()
            self._request = None
        self.let_go()

    def serve(self) -> None:
        """A request behind one that still waits is answered after it."""
        try:
            while self._request is None and self.transport is not None and not self.transport.is_closing():
                request = self.reader.next()
                if request is None:
                    if self.reader.take_expectation():
                        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    return
                self._begin(request)
        except BadRequest as error:
            self.refuse(error)

    def _begin(self, request: ReceivedRequest) -> None:
        self._request = request
        self._plan = self._answer(request)
        self._at = 0
        self._play(request)

    def _play(self, request: ReceivedRequest) -> None:
        transport = self.transport
        if transport is None or self._request is not request:
            return  # the client left while the reply waited
        operations = self._plan.operations
        while self._at < len(operations):
            operation = operations[self._at]
            self._at += 1
            if not isinstance(operation, bytes):
                self._pause(operation, request)
                return
            transport.write(operation)
        self._request = None
        request.answered.open()
        if self._plan.hang_up or request.headers.get("connection", "").lower() == "close":
            transport.close()

    def _resume(self, request: ReceivedRequest) -> None:
        self._play(request)
        self.serve()

    def _pause(self, wait: Wait, request: ReceivedRequest) -> None:
        """Come back to the plan when the wait is over; a stall is over when the connection is."""
        if isinstance(wait, Delay):
            self._timer = (
                self.loop.call_later(wait.seconds, self._resume, request)
                if wait.seconds > 0
                else self.loop.call_soon(self._resume, request)
            )
        elif isinstance(wait, Endless):
            if wait.until is not None:
                wait.until.reached.open()
            self._repeat(wait, request)
        elif isinstance(wait, Tap):
            wait.then(lambda: self._wake(request))
        elif isinstance(wait, Gate):
            wait.opened.then(lambda: self._wake(request))
            wait.reached.open()

    def _wake(self, request: ReceivedRequest) -> None:
        """Go on, called from any thread; the server may be gone by now."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._resume, request)

    def _repeat(self, endless: Endless, request: ReceivedRequest) -> None:
        if self.transport is None:
            return
        if endless.until is not None and endless.until.opened.is_open:
            self._resume(request)
            return
        if self.transport.get_write_buffer_size() < UNSENT_LIMIT:
            self.transport.write(endless.data)
        self._timer = self.loop.call_later(endless.every, self._repeat, endless, request)


# --- how many tokens a request would have, by the rule of thumb of four bytes each ---------------------

_COUNTED: tuple[tuple[str, Callable[[int], JsonObject]], ...] = (
    ("/messages/count_tokens", lambda count: {"input_tokens": count}),
    (":countTokens", lambda count: {"totalTokens": count}),
    ("/responses/input_tokens", lambda count: {"object": "response.input_tokens", "input_tokens": count}),
)


def _count_tokens(request: ReceivedRequest) -> JsonObject | None:
    """The answer to a request for the size of a request; `None` when it asks something else."""
    if request.method != "POST":
        return None
    answer = next((said for ending, said in _COUNTED if request.path.endswith(ending)), None)
    return None if answer is None else answer(-(-len(request.raw) // BYTES_PER_TOKEN))


# --- the list of models: which protocol's is meant shows in the path and the headers ------------------


def _list_models(request: ReceivedRequest, models: Sequence[str]) -> JsonObject | None:
    """The answer to a request for all models or for one of them; `None` when it asks something else."""
    if request.method != "GET":
        return None
    before, asked, name = request.path.partition("/models")
    if not asked or name not in ("", "/", *(f"/{known}" for known in models)):
        return None
    wanted = name.strip("/")
    if "/v1beta" in before or "x-goog-api-key" in request.headers:
        described = [_gemini(known) for known in models]
        return _gemini(wanted) if wanted else {"models": described}
    if "anthropic-version" in request.headers:
        return _anthropic(wanted) if wanted else _page([_anthropic(known) for known in models])
    return _openai(wanted) if wanted else {"object": "list", "data": [_openai(known) for known in models]}


def _openai(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "robota"}


def _anthropic(name: str) -> JsonObject:
    return {"type": "model", "id": name, "display_name": name, "created_at": _CREATED_AT}


def _page(entries: list[JsonObject]) -> JsonObject:
    edges = {"first_id": entries[0]["id"], "last_id": entries[-1]["id"]} if entries else {}
    return {"data": entries, "has_more": False, **edges}


def _gemini(name: str) -> JsonObject:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": _TOKENS,
        "outputTokenLimit": _TOKENS,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


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
