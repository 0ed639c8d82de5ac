"""The tools by which an agent finds templates and gives tasks to agents made of them.

In a session each such agent is a child session: at most the rights of its parent, out of its budget, with a
journal of its own. Without one its events go through those of the agent that asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from robota.core.errors import ConfigurationError, RobotaError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.permissions.modes import ToolClass
from robota.core.provider import ModelSettings, Provider, check_provider
from robota.core.robota import Robota
from robota.core.run import RunResult
from robota.core.templates import AgentTemplate, AgentTemplates
from robota.core.tool import Tool, ToolContext, ToolResult
from robota.sdk.team.templates import TASK_COORDINATOR, make_templates

_TEXT: JsonObject = {"type": "string"}
_TEMPLATE: JsonObject = {**_TEXT, "description": "The id of a template, as listTemplates gives it."}


def team_tools(
    provider: Provider,
    *,
    templates: AgentTemplates | None = None,
    providers: Mapping[str, Provider] | None = None,
    model: str = "",
    tools: Iterable[Tool] = (),
    max_rounds: int = 10,
    depth: int = 1,
) -> list[Tool]:
    """`listTemplateCategories`, `listTemplates`, `getTemplateDetail` and `assignTask`.

    Agents of a task have `tools`, and the model and `provider` of the task or these. `providers` are others
    that a task may name. A task coordinator may give tasks itself, `depth` levels deep.
    """
    check_provider(provider)
    if not isinstance(depth, int) or depth < 0:
        raise ConfigurationError(f"depth must be a whole number of at least 0, not {depth!r}.")
    team = _Team(
        provider,
        make_templates() if templates is None else templates,
        dict(providers or {}),
        model,
        tuple(tools),
        max_rounds,
    )
    return team.make_tools(depth)


class TeamTool:
    """One of the four."""

    def __init__(self, name: str, description: str, properties: JsonObject, required: list[str], work: Any):
        self.name = name
        self.description = description
        self.parameters: JsonObject = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        self.tool_class: ToolClass | None = None if name == "assignTask" else "inspect"
        self._work = work

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        result: ToolResult = await self._work(arguments, context)
        return result


class _Team:
    """What the four tools share."""

    def __init__(
        self,
        provider: Provider,
        templates: AgentTemplates,
        providers: dict[str, Provider],
        model: str,
        tools: tuple[Tool, ...],
        max_rounds: int,
    ) -> None:
        self._provider = provider
        self._templates = templates
        self._providers = providers
        self._model = model
        self._tools = tools
        self._max_rounds = max_rounds

    def make_tools(self, depth: int) -> list[Tool]:
        task: JsonObject = {
            "templateId": _TEMPLATE,
            "jobDescription": {
                **_TEXT,
                "description": "What to do, with everything there is to know: the agent sees nothing else.",
            },
            "context": {**_TEXT, "description": "What else the agent should know."},
            "provider": {**_TEXT, "description": "The provider to ask, if not the usual one."},
            "model": {**_TEXT, "description": "The model to ask, if not the usual one."},
            "temperature": {"type": "number", "minimum": 0},
            "maxTokens": {"type": "integer", "minimum": 1},
        }
        category: JsonObject = {"categoryId": {**_TEXT, "description": "Only those of this category."}}
        return [
            TeamTool(
                "listTemplateCategories", "List the kinds of agents that can be given tasks.", {}, [],
                self.list_categories,
            ),
            TeamTool(
                "listTemplates", "List the templates of agents that can be given tasks.", category, [],
                self.list_templates,
            ),
            TeamTool(
                "getTemplateDetail", "Show everything about a template.", {"templateId": _TEMPLATE},
                ["templateId"], self.show_template,
            ),
            TeamTool(
                "assignTask",
                "Give a task to a new agent made of a template, and get its result. Tasks that do not depend "
                "on each other can be assigned at the same time.",
                task, ["templateId", "jobDescription"], partial(self.assign, depth=depth),
            ),
        ]  # fmt: skip

    async def list_categories(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        counts: dict[str, int] = {}
        for template in self._templates.list():
            counts[template.category] = counts.get(template.category, 0) + 1
        return _give([{"id": category, "templates": number} for category, number in counts.items()])

    async def list_templates(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        category = arguments.get("categoryId")
        found = self._templates.list() if not category else self._templates.find(category=category)
        if category and not found:
            known = ", ".join(sorted({each.category for each in self._templates.list()}))
            return ToolResult.failure(f"There is no category {category!r}; there are {known}.")
        return _give([_outline(template) for template in found])

    async def show_template(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        template = self._templates.get(arguments["templateId"])
        if template is None:
            return self._refuse(arguments["templateId"])
        shown = {"provider": template.provider, "model": template.model, "tags": list(template.tags)}
        system = template.config.get("system_message", "")
        return _give(_outline(template) | shown | {"systemMessage": system})

    async def assign(self, arguments: JsonObject, context: ToolContext, *, depth: int) -> ToolResult:
        template = self._templates.get(arguments["templateId"])
        if template is None:
            return self._refuse(arguments["templateId"])
        try:
            worker = self._make_worker(template, arguments, depth)
        except (RobotaError, TypeError) as error:
            return ToolResult.failure(f"No agent can be made of the template {template.id!r}: {error}")
        agent_id = f"{template.id}-{context.call_id}"
        task = arguments["jobDescription"]
        if arguments.get("context"):
            task = f"{task}\n\nWhat you should know:\n{arguments['context']}"
        if context.delegate is None:
            async with worker:
                result = await worker.run(task)
        else:
            result = await context.delegate(worker, agent_id, task)
        return _report(template, agent_id, result)

    def _make_worker(self, template: AgentTemplate, arguments: JsonObject, depth: int) -> Robota:
        config = dict(self._templates.apply(template).config)
        wanted = arguments.get("provider")
        if wanted and wanted not in self._providers:
            known = ", ".join(sorted(self._providers)) or "none besides the usual one"
            raise ConfigurationError(f"There is no provider {wanted!r}; there are {known}.")
        settings: ModelSettings = config.get("settings", ModelSettings())
        if "temperature" in arguments:
            settings = replace(settings, temperature=arguments["temperature"])
        if "maxTokens" in arguments:
            settings = replace(settings, max_tokens=arguments["maxTokens"])
        leads = template.id == TASK_COORDINATOR.id and depth > 0
        own = config.pop("tools", self._tools)
        config |= {
            "tools": [*own, *(self.make_tools(depth - 1) if leads else ())],
            "settings": settings,
            "model": arguments.get("model") or config.get("model") or self._model,
            "max_rounds": config.get("max_rounds", self._max_rounds),
        }
        return Robota(self._providers[wanted] if wanted else self._provider, **config)

    def _refuse(self, template_id: Json) -> ToolResult:
        known = ", ".join(template.id for template in self._templates.list()) or "none"
        return ToolResult.failure(f"There is no template {template_id!r}; there are {known}.")


def _outline(template: AgentTemplate) -> JsonObject:
    return {
        "id": template.id,
        "name": template.name,
        "description": template.description,
        "categoryId": template.category,
    }


def _give(value: Json) -> ToolResult:
    return ToolResult(content=encode(value).decode())


def _report(template: AgentTemplate, agent_id: str, result: RunResult) -> ToolResult:
    facts: JsonObject = {
        "agentId": agent_id,
        "templateId": template.id,
        "rounds": result.rounds,
        "usage": to_builtins(result.usage),
    }
    if result.success:
        return ToolResult(content=result.text, metadata=facts)
    reason = "it was stopped" if result.error is None else str(result.error)
    return ToolResult(ok=False, error=f"The task of {template.id} failed: {reason}", metadata=facts)
