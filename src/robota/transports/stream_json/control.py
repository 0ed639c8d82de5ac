"""What the host may ask for at any time, also while a turn runs."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from robota.core.errors import RobotaError, ValidationError
from robota.core.messages import JsonObject
from robota.transports.result_frame import describe_failure

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.transports.stream_json.driver import Driver

Handler: TypeAlias = Callable[["Driver", JsonObject], Awaitable[JsonObject]]

CHECKPOINTING = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"


async def answer_request(driver: Driver, frame: JsonObject) -> None:
    """Answer one request of the host; what fails is an answer too."""
    id, request = frame.get("request_id"), frame.get("request")
    try:
        if not isinstance(request, dict):
            raise ValidationError("A control request needs `request`, an object with a `subtype`.")
        handler = _HANDLERS.get(str(request.get("subtype")))
        if handler is None:
            known = ", ".join(_HANDLERS)
            raise ValidationError(
                f"There is no control request {request.get('subtype')!r}; robota knows {known}."
            )
        body = await handler(driver, request)
        response: JsonObject = {"subtype": "success", "request_id": id, "response": body}
    except Exception as error:
        if not isinstance(error, RobotaError):
            import logging  # noqa: PLC0415 - only when something is wrong

            logging.getLogger("robota.stream_json").debug("A control request failed.", exc_info=error)
        response = {"subtype": "error", "request_id": id, "error": describe_failure(error)}
    driver.send_plain({"type": "control_response", "response": response})


async def _initialize(driver: Driver, request: JsonObject) -> JsonObject:
    return driver.initialize(request)


async def _interrupt(driver: Driver, request: JsonObject) -> JsonObject:
    return {"still_queued": driver.interrupt()}


async def _take_back(driver: Driver, request: JsonObject) -> JsonObject:
    return {"cancelled": driver.prompts.take_back(_text(request, "message_uuid"))}


async def _set_mode(driver: Driver, request: JsonObject) -> JsonObject:
    return {"mode": await driver.set_mode(_text(request, "mode"))}


async def _set_model(driver: Driver, request: JsonObject) -> JsonObject:
    wanted = request.get("model")
    if wanted is not None and not isinstance(wanted, str):
        raise ValidationError("`model` is the id of a model, or null for the one at the start.")
    return {"model": await driver.set_model(wanted or "")}


async def _set_thinking(driver: Driver, request: JsonObject) -> JsonObject:
    if request.get("max_thinking_tokens") is not None:
        await driver.tell("set_max_thinking_tokens takes no effect: use --effort.")
    return {}


async def _context(driver: Driver, request: JsonObject) -> JsonObject:
    from robota.transports.stream_json.context_usage import context_usage  # noqa: PLC0415 - few ask

    return context_usage(await driver.session())


async def _servers(driver: Driver, request: JsonObject) -> JsonObject:
    from robota.sdk.mcp.status import list_states  # noqa: PLC0415 - few ask

    return {"mcpServers": list_states((await driver.session()).kit.servers)}


async def _reconnect(driver: Driver, request: JsonObject) -> JsonObject:
    name, session = _text(request, "serverName"), await driver.session()
    session.kit.servers.reconnect(name)
    await session.kit.servers.get(name).settle()
    return {}


async def _toggle(driver: Driver, request: JsonObject) -> JsonObject:
    name, session = _text(request, "serverName"), await driver.session()
    session.kit.servers.toggle(name, enabled=request.get("enabled") is not False)
    return {}


async def _take_message(driver: Driver, request: JsonObject) -> JsonObject:
    await driver.host_servers.take(_text(request, "server_name"), request.get("message"))
    return {}


async def _stop_task(driver: Driver, request: JsonObject) -> JsonObject:
    id, session = _text(request, "task_id"), await driver.session()
    if any(task.task_id == id for task in session.kit.background.list()):
        await session.kit.background.cancel(id)
    return {}


async def _rewind(driver: Driver, request: JsonObject) -> JsonObject:
    id, session = _text(request, "user_message_id"), await driver.session()
    saves = session.project.settings.get("fileCheckpointingEnabled")
    if os.environ.get(CHECKPOINTING, "").lower() not in ("1", "true") or not saves:
        raise ValidationError("File checkpointing is not enabled: enable it before the session begins.")
    checkpoints, number = session.kit.checkpoints, await _find_checkpoint(driver, session, id)
    if request.get("dry_run"):
        paths = (await checkpoints.inspect(number)).paths
        changed = [each.path for each in paths if not each.conflict]
        return _told_files(changed, [each.path for each in paths if each.conflict])
    restored = await checkpoints.restore(number, "code")
    return _told_files(restored.restored, [each.path for each in restored.kept])


def _told_files(changed: Sequence[str], kept: Sequence[str]) -> JsonObject:
    return {"canRewind": True, "filesChanged": list(changed), "kept": list(kept)}


async def _find_checkpoint(driver: Driver, session: InteractiveSession, id: str) -> int:
    """The checkpoint before a prompt, by the id that its frame or its transcript had."""
    message = driver.prompt_ids.get(id, id)
    messages = session.session.messages
    for checkpoint in await session.kit.checkpoints.all():
        if messages[checkpoint.place].id == message:
            return checkpoint.number
    raise ValidationError(f"There is no checkpoint {id!r}: no prompt of this session has that id.")


def _text(request: JsonObject, name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise ValidationError(f"The control request {request.get('subtype')} needs `{name}`, a text.")
    return value


_HANDLERS: dict[str, Handler] = {
    "initialize": _initialize,
    "interrupt": _interrupt,
    "cancel_async_message": _take_back,
    "set_permission_mode": _set_mode,
    "set_model": _set_model,
    "set_max_thinking_tokens": _set_thinking,
    "mcp_status": _servers,
    "get_context_usage": _context,
    "mcp_reconnect": _reconnect,
    "mcp_toggle": _toggle,
    "mcp_message": _take_message,
    "stop_task": _stop_task,
    "rewind_files": _rewind,
}
