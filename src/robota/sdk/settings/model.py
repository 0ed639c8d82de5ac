"""The model that settings name, for the provider that there is."""

from __future__ import annotations

from robota.core.models import shipped_models
from robota.core.provider import Provider
from robota.sdk.agents.model_choice import expand_shortcut
from robota.sdk.problems import Problem
from robota.sdk.settings.settings import Settings
from robota.sessions.usage.meter import find_default_model


def choose_model(settings: Settings, provider: Provider) -> tuple[str, Problem | None]:
    """The model to ask for, empty for the provider's own, and what is wrong with the one that was named.

    A model of a `.claude` file is one of that program's service: it counts only where that family is served.
    """
    wanted = settings.model
    source = settings.find_layer("model")
    if wanted is None or source is None or source.dialect == "robota" or wanted == "default":
        return "" if wanted == "default" else wanted or "", None
    table, model = shipped_models(), expand_shortcut(wanted)
    facts, own = table.find(model), table.find(find_default_model(provider))
    if facts is not None and own is not None and facts.family == own.family:
        return model, None
    message = f"the provider {provider.name} does not have the model {wanted}; its own is used."
    return "", Problem(source.path, message, line=source.line("model"), subject="model")
