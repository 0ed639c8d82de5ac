"""Agents written down once and made many times: a template holds keyword arguments for `Robota`.

templates = AgentTemplates()
templates.register(AgentTemplate(id="reviewer", name="Reviewer", config={"system_message": "Review code."}))
agent = Robota(provider, **templates.apply("reviewer", max_rounds=20).config)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from robota.core.errors import ConfigurationError


class AgentTemplate(Struct, frozen=True, kw_only=True):
    """A named starting point for agents: a system message, a model and its settings."""

    id: str
    name: str
    description: str = ""
    category: str = "general"
    tags: tuple[str, ...] = ()
    provider: str | None = None
    """Name of the provider the template was written for; any other works, with a warning."""
    model: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments for `Robota`, without the provider."""


class AppliedTemplate(Struct, frozen=True):
    """A template with the caller's own values, and what to mind about them."""

    config: dict[str, Any]
    template: AgentTemplate
    warnings: tuple[str, ...] = ()
    modified: bool = False
    """An override changed something the template had said."""


class AgentTemplates:
    """The templates of one program, by id."""

    def __init__(self, templates: Iterable[AgentTemplate] = ()) -> None:
        self._templates = {template.id: template for template in templates}

    def register(self, template: AgentTemplate) -> str | None:
        """Add the template. One of the same id is replaced, and the returned warning says so."""
        if not template.id:
            raise ConfigurationError(f"Template {template.name!r} has no id; give it one to register it.")
        replaced = self._templates.get(template.id)
        self._templates[template.id] = template
        if replaced is None:
            return None
        return f"Template {template.id!r} ({replaced.name}) was replaced by {template.name!r}."

    def unregister(self, template_id: str) -> bool:
        """Forget the template; false when there was none."""
        return self._templates.pop(template_id, None) is not None

    def get(self, template_id: str) -> AgentTemplate | None:
        return self._templates.get(template_id)

    def list(self) -> tuple[AgentTemplate, ...]:
        return tuple(self._templates.values())

    def find(
        self,
        *,
        category: str | None = None,
        tags: Iterable[str] = (),
        provider: str | None = None,
        model: str | None = None,
    ) -> tuple[AgentTemplate, ...]:
        """The templates that meet every condition given; one common tag is enough."""
        wanted = set(tags)
        return tuple(
            template
            for template in self._templates.values()
            if category in (None, template.category)
            and (not wanted or not wanted.isdisjoint(template.tags))
            and provider in (None, template.provider)
            and model in (None, template.model)
        )

    def apply(self, template: AgentTemplate | str, /, **overrides: Any) -> AppliedTemplate:
        """Arguments for `Robota`: the template's, and `overrides` above them."""
        chosen = self._templates.get(template) if isinstance(template, str) else template
        if chosen is None:
            known = ", ".join(sorted(self._templates)) or "none"
            raise ConfigurationError(f"There is no template {template!r}; registered: {known}.")
        config = dict(chosen.config)
        if chosen.model is not None:
            config.setdefault("model", chosen.model)
        modified = any(name in config and config[name] != value for name, value in overrides.items())
        given, meant = getattr(overrides.get("provider"), "name", None), chosen.provider
        warning = f"Template {chosen.id!r} was written for provider {meant!r}, not for {given!r}."
        warnings = (warning,) if given is not None and meant not in (None, given) else ()
        return AppliedTemplate({**config, **overrides}, chosen, warnings, modified)
