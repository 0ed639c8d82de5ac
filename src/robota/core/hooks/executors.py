"""The two kinds of handlers that need nothing but the operating system: commands and HTTP requests.

An executor has a `type` and `execute(hook, hook_input)`; others are added from outside. It reports failure as
a result, never by raising.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

import anyio

from robota.core.errors import RobotaError
from robota.core.hooks.definition import HookDefinition
from robota.core.hooks.outcome import DEFAULT_REASON, HookResult
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.core.plain_text import clip, to_plain_text
from robota.core.process import ProcessResult, clean_environment, run_process

if TYPE_CHECKING:  # the network modules are loaded with the first http hook
    from ssl import SSLContext

    from robota.core.http1 import HttpResponse
    from robota.core.net import AddressPolicy

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of a command's output that are read: enough for a JSON answer that carries a file."""
HTTP_SECONDS = 30.0
"""A request never takes longer, whatever the handler asks for."""

_PLACEHOLDER = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)\}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


class HookExecutor(Protocol):
    @property
    def type(self) -> str:
        """The handler type it executes."""
        ...

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult: ...


class CommandExecutor:
    """Runs a shell line, or a program with arguments, with the input as JSON on standard input."""

    type = "command"

    def __init__(self, *, keep_variables: Collection[str] = ()) -> None:
        self._keep = keep_variables

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        cwd = str(hook_input.get("cwd") or os.getcwd())
        given = hook_input.get("env") or {}
        extra = {"CLAUDE_PROJECT_DIR": cwd, **{name: str(value) for name, value in given.items()}, **hook.env}
        result = await run_process(
            _command_line(hook, extra),
            cwd=cwd,
            env=clean_environment(keep=self._keep, extra=extra),
            stdin=encode(hook_input) + b"\n",
            timeout=hook.timeout,
            output_limit=OUTPUT_LIMIT // 2,
        )
        return _read_process(result, hook)


def _command_line(hook: HookDefinition, variables: Mapping[str, str]) -> list[str]:
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
            try:
                return _read_response(await self._send(hook, encode(hook_input)))
            except RobotaError as error:
                return HookResult(exit_code=1, stderr=str(error), failure=f"could not be asked: {error}")
        return timed_out(limit)

    async def _send(self, hook: HookDefinition, body: bytes) -> HttpResponse:
        from robota.core.http1 import send_request  # noqa: PLC0415 - see above
        from robota.core.net import PUBLIC_ONLY, parse_url, resolve_checked  # noqa: PLC0415 - see above

        url = parse_url(hook.url)
        headers = {name: _interpolate(value, hook.allowed_env_vars) for name, value in hook.headers.items()}
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
        addresses = await resolve_checked(url, self._policy or PUBLIC_ONLY)
        return await send_request(
            url, addresses, method=hook.method.upper(), headers=headers, body=body, tls=self._tls
        )


def _interpolate(value: str, allowed: Collection[str]) -> str:
    """Replace `$NAME` and `${NAME}` for variables that are allowed and set; the rest stays as written."""

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return os.environ.get(name, found[0]) if name in allowed else found[0]

    return _VARIABLE.sub(replace, value)


def _read_response(response: HttpResponse) -> HookResult:
    if not 200 <= response.status < 300:
        said = f"HTTP {response.status} {response.reason}".strip()
        return HookResult(exit_code=1, stderr=to_plain_text(said.encode("latin-1", "replace")))
    if response.truncated:
        return HookResult(exit_code=1, failure="answered with more than 10 MB")
    text = to_plain_text(response.body)
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
