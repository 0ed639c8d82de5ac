"""What goes on beside the conversation, as frames: subagents, background tasks, hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import uuid4

from robota.core.background import TaskSnapshot
from robota.core.events import BackgroundTaskChanged, RunCompleted, ToolEnded, ToolStarted, TurnEvent
from robota.core.messages import Json, JsonObject, TokenUsage
from robota.transports.blocks import usage_fields

_TASK_TYPES = {"agent": "local_agent", "process": "local_bash", "scheduled": "local_workflow"}
_STATUSES = {"completed": "completed", "failed": "failed", "cancelled": "stopped"}
_PATCHES = {"completed": "completed", "failed": "failed", "cancelled": "killed"}


def nested_frame(event: TurnEvent, model: str, *, text: bool) -> JsonObject | None:
    """What a subagent does: its calls and their results; with `text` what it says at the end, too."""
    match event:
        case ToolStarted(tool_call_id=call, tool_name=name, arguments=arguments):
            block: JsonObject = {"type": "tool_use", "id": call, "name": name, "input": dict(arguments)}
            return _assistant(block, model)
        case ToolEnded(tool_call_id=call, outcome=outcome, content=content, error=error):
            block = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": content if outcome == "success" else error or content,
                "is_error": outcome != "success",
            }
            return {"type": "user", "message": {"role": "user", "content": [block]}}
        case RunCompleted(text=said) if text and said:
            return _assistant({"type": "text", "text": said}, model)
        case _:
            return None


def _assistant(block: JsonObject, model: str) -> JsonObject:
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": model}
    more = {"stop_reason": None, "stop_sequence": None, "usage": usage_fields(TokenUsage())}
    return {"type": "assistant", "message": {**message, "content": [block], **more}}


def describe_task(event: BackgroundTaskChanged) -> Iterator[JsonObject]:
    """The fields of `system` frames about a change of a background task."""
    task = event.task
    told: JsonObject = {"task_id": task.task_id}
    if event.change == "created":
        kind = _TASK_TYPES[task.kind]
        yield told | {"subtype": "task_started", "description": _words(task), "task_type": kind}
    elif event.change in ("tool_start", "tool_end"):
        usage = {"total_tokens": 0, "tool_uses": 1, "duration_ms": _milliseconds(task)}
        yield told | {
            "subtype": "task_progress",
            "description": _words(task),
            "usage": usage,
            "last_tool_name": event.text,
        }
    elif event.change in _STATUSES:
        yield told | {"subtype": "task_updated", "patch": {"status": _PATCHES[event.change]}}
        failure = "" if task.error is None else task.error.message
        yield told | {
            "subtype": "task_notification",
            "status": _STATUSES[event.change],
            "output_file": "",
            "summary": failure or task.result or f"{_words(task)}: {event.change}",
        }


def _words(task: TaskSnapshot) -> str:
    return task.label or task.command or task.prompt[:80] or task.task_id


def _milliseconds(task: TaskSnapshot) -> int:
    if task.started_at is None:
        return 0
    return round((datetime.now(task.started_at.tzinfo) - task.started_at).total_seconds() * 1000)


def describe_hook(data: Mapping[str, Json]) -> Iterator[JsonObject]:
    """The fields of `system` frames about hooks that ran."""
    event = data.get("hook")
    for place, run in enumerate((data.get("outcome") or {}).get("runs") or ()):
        result = run.get("result") or {}
        told = {"hook_id": f"{data.get('callId') or event}-{place}", "hook_event": event}
        told["hook_name"] = f"{event}:{run.get('label')}"
        yield {"subtype": "hook_started", **told}
        yield {
            "subtype": "hook_response",
            **told,
            "output": result.get("stdout", ""),
            "stdout": result.get("stdout", ""),
            "stderr": result.get("failure") or result.get("stderr", ""),
            "exit_code": result.get("exitCode", 0),
            "outcome": "error" if result.get("failure") or result.get("exitCode") else "success",
        }
