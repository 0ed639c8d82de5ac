"""What a host says first: how it wants the session, and what it hears in return.

The answer is made from tables alone: nothing is loaded and nobody is asked for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from robota.core.errors import ValidationError
from robota.core.messages import Json, JsonObject
from robota.core.structured import find_schema_problem
from robota.sdk.commands.table import ROWS
from robota.transports.init_frame import PROTOCOL_LEVEL

if TYPE_CHECKING:
    from robota.sdk.assembly import MoreOptions

T = TypeVar("T")
DEFAULT_MODEL = "default"
"""What hosts call the model at the start."""


def read_wishes(request: JsonObject) -> MoreOptions:
    """What an `initialize` wants of the session that is then made. A field that is not there wants nothing;
    what only a newer host says is passed over."""
    wishes: MoreOptions = {}
    if agents := _read_objects(request, "agents", "each with a description and a prompt"):
        wishes["agents"] = agents
    if isinstance(skills := request.get("skills"), list):
        wishes["skills"] = tuple(map(str, skills))
    if (prompt := _read_text(request.get("systemPrompt"))) is not None:
        wishes["system_prompt"] = prompt
    if append := _read_text(request.get("appendSystemPrompt")):
        wishes["append_system_prompt"] = append
    servers = {**_read_objects(request, "mcpServers", "as .mcp.json has them"), **_read_own_servers(request)}
    if servers:
        wishes["mcp_servers"] = servers
    if plugins := _read_list(request, "plugins", dict, 'objects such as {"type": "local", "path": "DIR"}'):
        local = [each.get("path", "") for each in plugins if each.get("type") == "local"]
        if not all(isinstance(path, str) and path for path in local):
            raise ValidationError("A local plugin of initialize needs a `path`: the directory it is in.")
        wishes["plugin_dirs"] = local
    return wishes


def read_schema(request: JsonObject) -> JsonObject | None:
    """What the answers of all turns are to fit."""
    schema = request.get("jsonSchema")
    if schema is None:
        return None
    if not isinstance(schema, dict):
        raise ValidationError("`jsonSchema` of initialize is a JSON schema: an object.")
    if why := find_schema_problem(schema):
        raise ValidationError(f"`jsonSchema` of initialize is not a JSON schema: {why}.")
    return schema


def _read_list(request: JsonObject, name: str, kind: type[T], what: str) -> list[T]:
    given = request.get(name) or []
    if isinstance(given, list) and all(isinstance(each, kind) for each in given):
        return given
    raise ValidationError(f"`{name}` of initialize is a list of {what}.")


def _read_objects(request: JsonObject, name: str, what: str) -> dict[str, JsonObject]:
    given = request.get(name) or {}
    if not (isinstance(given, dict) and all(isinstance(each, dict) for each in given.values())):
        raise ValidationError(f"`{name}` of initialize is an object of objects, {what}.")
    return given


def _read_own_servers(request: JsonObject) -> dict[str, JsonObject]:
    """The servers inside the host, of which some hosts tell here and not on the command line."""
    configs = _read_objects(request, "sdkMcpServerConfigs", "one for each server")
    found: dict[str, JsonObject] = {}
    for name in _read_list(request, "sdkMcpServers", str, "names"):
        limit = configs.get(name, {}).get("timeout")
        found[name] = {"type": "sdk"} if limit is None else {"type": "sdk", "timeout": limit}
    return found


def _read_text(value: Json) -> str | None:
    """A text, or several as one."""
    if isinstance(value, list):
        return "\n\n".join(map(str, value))
    return value if isinstance(value, str) else None


def greet(request: JsonObject, model: str, *, applied: bool) -> JsonObject:
    """What the process can do. `model` is the one that the command line names, `applied` whether the session
    is made as the request wants it: a later one changes nothing."""
    agents = request.get("agents") or {}
    own = [{"name": name, "description": str(agent.get("description", ""))} for name, agent in agents.items()]
    asked = {"hooks": "hooks_applied", "mcpServers": "mcp_servers_applied", "plugins": "plugins_applied"}
    return {
        "commands": [
            {"name": row.name, "description": row.description, "argumentHint": row.hint} for row in ROWS
        ],
        "agents": own,
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": _list_models(model),
        "account": {},
        "pid": os.getpid(),
        "claude_code_version": PROTOCOL_LEVEL,
        "hook_on_failure_supported": True,
        **{told: applied for name, told in asked.items() if request.get(name)},
    }


def _list_models(model: str) -> list[JsonObject]:
    """Hosts take the first for the one in use."""
    words = model or "The model that the settings or the provider choose"
    known: JsonObject = {"value": DEFAULT_MODEL, "displayName": "Default", "description": words}
    if not model:
        return [known]
    named = {"value": model, "displayName": model, "description": ""}
    return [known | {"resolvedModel": model}, named]
