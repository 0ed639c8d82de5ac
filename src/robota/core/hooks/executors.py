"""The kinds of handlers that need no model: commands, HTTP requests and functions of the program.

An executor has a `type` and `execute(hook, hook_input)`; others are added from outside. It reports failure as
a result, never by raising.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio
from anyio import to_thread

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ConfigurationError
from robota.core.given import require_texts
from robota.core.hooks.definition import DEFAULT_TIMEOUT, HookDefinition, HookGroup
from robota.core.hooks.outcome import DEFAULT_REASON, HookResult
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.core.plain_text import clip, to_plain_text
from robota.core.plugin import Refusal
from robota.core.process import ProcessResult, clean_environment, run_process
from robota.http.errors import HeaderError, HttpError
from robota.http.exchange import Reply, Request, build_request
from robota.http.url import parse_url

if TYPE_CHECKING:  # the network modules are loaded with the first http hook
    from ssl import SSLContext

    from robota.http.address import AddressPolicy

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of a command's output that are read: enough for a JSON answer that carries a file."""
HTTP_SECONDS = 30.0
"""A request never takes longer, whatever the handler asks for."""
MAX_ANSWER_BYTES = 10 * 1024 * 1024

_PLACEHOLDER = lazy_pattern(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_(?:ROOT|PATH|DATA))\}")
_VARIABLE = lazy_pattern(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


class HookExecutor(Protocol):
    """Runs hooks of one type."""

    @property
    def type(self) -> str:
        """The handler type it executes."""
        ...

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult: ...


class CommandExecutor:
    """Runs a shell line, or a program with arguments, with the input as JSON on standard input."""

    type = "command"

    def __init__(self, *, keep_variables: Collection[str] | Callable[[], Collection[str]] = ()) -> None:
        """`keep_variables` names credentials that commands may have, or says when asked which those are."""
        kept = keep_variables if callable(keep_variables) else require_texts("keep_variables", keep_variables)
        self._keep: Callable[[], Collection[str]] = kept if callable(kept) else lambda: kept

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        cwd = _directory(hook_input)
        given = hook_input.get("env") or {}
        extra = {
            "CLAUDE_PROJECT_DIR": cwd,
            "CLAUDE_SESSION_ID": str(hook_input.get("session_id") or ""),
            **{name: str(value) for name, value in given.items()},
            **hook.env,
        }
        result = await run_process(
            command_line(hook, extra),
            cwd=cwd,
            env=clean_environment(keep=self._keep(), extra=extra),
            stdin=encode(hook_input) + b"\n",
            timeout=hook.timeout,
            output_limit=OUTPUT_LIMIT // 2,
        )
        return _read_process(result, hook)


def _directory(hook_input: Mapping[str, Json]) -> str:
    return os.path.abspath(str(hook_input.get("cwd") or ""))


def command_line(hook: HookDefinition, variables: Mapping[str, str]) -> list[str]:
    """What is started for a command: its program with arguments, or a shell with its line."""
    if hook.args is not None:  # no shell, so nobody else would expand these
        return [
            _PLACEHOLDER.sub(lambda found: variables.get(found[1], found[0]), part)
            for part in (hook.command, *hook.args)
        ]
    if hook.shell == "powershell":
        return ["pwsh", "-NoProfile", "-Command", hook.command]
    import shutil  # noqa: PLC0415 - only when a hook really runs

    return ["bash" if shutil.which("bash") else "sh", "-c", hook.command]


def _read_process(result: ProcessResult, hook: HookDefinition) -> HookResult:
    """A process as a hook's answer; a shell tells what became of its program by 126, 127 or 128 + signal."""
    said = f": {clip(result.stderr.strip(), 500)}" if result.stderr.strip() else ""
    code, failure = result.exit_code, result.error
    if result.timed_out:
        return timed_out(hook.timeout)
    if result.signal is not None:
        failure = f"was ended by {result.signal}"
    elif code in (126, 127):
        failure = f"could not be started{said}"
    elif code is not None and code - 128 in set(signal.Signals):
        failure = f"was ended by {signal.Signals(code - 128).name}{said}"
    return HookResult(
        exit_code=1 if code is None else code, stdout=result.stdout, stderr=result.stderr, failure=failure
    )


def timed_out(seconds: float) -> HookResult:
    """The answer of a hook that took too long."""
    return HookResult(exit_code=1, stderr="Hook timed out", failure=f"timed out after {seconds:g} s")


class HttpExecutor:
    """Posts the input as JSON; only a 2xx answer can decide. Never follows redirects, never sends cookies."""

    type = "http"

    def __init__(self, *, policy: AddressPolicy | None = None, tls: SSLContext | None = None) -> None:
        self._policy = policy
        self._tls = tls

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        limit = min(hook.timeout, HTTP_SECONDS)
        with anyio.move_on_after(limit):
            return await self._ask(hook, encode(hook_input))
        return timed_out(limit)

    async def _ask(self, hook: HookDefinition, body: bytes) -> HookResult:
        from robota.http.address import PUBLIC_ONLY  # noqa: PLC0415 - see above
        from robota.http.client import HttpClient  # noqa: PLC0415 - see above

        failure = ""
        try:
            request = _build_request(hook)
            async with HttpClient(policy=self._policy or PUBLIC_ONLY, tls=self._tls) as client:
                return await _read_reply(await client.send(request, body))
        except HttpError as error:
            failure = _describe(error, request.url.host)
        except ValueError as error:  # a URL or a header that is refused
            failure = str(error)
        return HookResult(exit_code=1, stderr=failure, failure=f"could not be asked: {failure}")


def _build_request(hook: HookDefinition) -> Request:
    headers = {name: _interpolate(value, hook.allowed_env_vars) for name, value in hook.headers.items()}
    names = {name.lower(): name for name in headers}
    for ours in ("host", "connection", "accept-encoding"):
        if ours in names:
            raise HeaderError(names[ours])
    if "content-type" not in names:
        headers["Content-Type"] = "application/json"
    fixed = {"Connection": "close", "Accept-Encoding": "identity"}
    return build_request(hook.method.upper(), parse_url(hook.url), {**headers, **fixed})


def _describe(error: HttpError, host: str) -> str:
    match error.kind:
        case "closed":
            return f"{host} closed the connection before its answer was complete."
        case "protocol":
            return f"{host} did not answer in HTTP/1.1: {error}."
        case _:
            return f"{host} could not be reached: {error}."


def _interpolate(value: str, allowed: Collection[str]) -> str:
    """Replace `$NAME` and `${NAME}` for variables that are allowed and set; the rest stays as written."""

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return os.environ.get(name, found[0]) if name in allowed else found[0]

    return _VARIABLE.sub(replace, value)


async def _read_reply(reply: Reply) -> HookResult:
    body = await reply.read(MAX_ANSWER_BYTES)
    if not 200 <= reply.status < 300:
        said = f"HTTP {reply.status} {reply.reason}".strip()
        return HookResult(exit_code=1, stderr=to_plain_text(said.encode("latin-1", "replace")))
    if not reply.whole:
        return HookResult(exit_code=1, failure="answered with more than 10 MB")
    text = to_plain_text(body)
    return read_ok_answer(text) or HookResult(stdout=text)


def read_ok_answer(text: str, default_reason: str = DEFAULT_REASON) -> HookResult | None:
    """The short answer `{"ok": true}` or `{"ok": false, "reason": …}` of servers and models, if it is one."""
    try:
        answer = decode(text)
    except ValueError:
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        return None
    if answer["ok"]:
        return HookResult(stdout=text)
    return HookResult(exit_code=2, stdout=text, stderr=str(answer.get("reason") or default_reason))


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
