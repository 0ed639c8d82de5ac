"""Which model a subagent works with: the one it names, if the provider of its session has it."""

from __future__ import annotations

from robota.core.models import shipped_models
from robota.sessions.session import Session
from robota.sessions.usage.meter import find_default_model


def expand_shortcut(model: str) -> str:
    """`sonnet`, `haiku` or `opus` as the newest model of that kind; everything else as it is."""
    if not model.isalpha():
        return model
    named = (
        id for id, facts in shipped_models().models.items() if facts.family and f"-{model.lower()}-" in id
    )
    return next(named, model)


def choose_model(wanted: str, parent: Session) -> tuple[str, str]:
    """The model to ask for, and a sentence if that is not the one that was wanted.

    What is known of models is the table that is shipped. A model that it does not list may be one of the
    provider's own, so it is asked for: whoever is told that there is none takes the parent's then.
    """
    own, model = parent.model, expand_shortcut(wanted)
    if not wanted or model == own:
        return own, ""
    table, name = shipped_models(), own or find_default_model(parent.agent.provider)
    facts, here = table.find(model), table.find(name)
    if facts is None:
        return model, ""
    native = here is not None and name.startswith(here.id)  # hosts spell the names in ways of their own
    if here is not None and native and facts.family == here.family:
        return model, ""
    return own, describe_fallback(wanted, parent)


def describe_fallback(wanted: str, parent: Session) -> str:
    name = parent.model or find_default_model(parent.agent.provider)
    used = f"{name} is used instead" if name else "its own model is used instead"
    return f"The provider {parent.agent.provider.name} does not have the model {wanted!r}: {used}."
