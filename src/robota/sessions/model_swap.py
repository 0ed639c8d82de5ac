"""Another model, or another provider, for a session that goes on with its history.

It answers from the next request on, also in a run that is under way. The history stays as it is; what the new
model gets of it in another form, or not at all, is told in sentences. The journal has the change, so that a
replay makes it at the same point and a resumed session begins with the new model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.events import ModelChanged
from robota.core.messages import JsonObject
from robota.core.provider import Provider, get_provider_capabilities
from robota.core.robota import check_provider
from robota.sessions.description import choose_web_tools
from robota.sessions.swap_notes import list_limits, list_losses
from robota.sessions.usage.meter import find_default_model

if TYPE_CHECKING:
    from robota.sessions.session import Session


def swap_model(session: Session, provider: Provider, model: str | None) -> ModelChanged:
    """Make the change and tell what it means. Without a model it is the provider's own one."""
    agent, admit = session.agent, session.admission.admit
    before = admit(agent.provider)
    check_provider(provider)
    chosen = _choose_model(session, provider, model)
    after = admit(provider)
    moved = after is not before
    window = session.options.context_window
    agent.using = replace(agent.using, provider=after, model=chosen, context_window=window)
    session.tracker.max_tokens = agent.using.window
    notes: list[str] = []
    if moved:
        agent.conversation.encoded.forget()
        notes += list_losses(session, before, after)
    notes += list_limits(session)
    agent.using = replace(agent.using, native_web_tools=choose_web_tools(session))
    session.log.note_change("model", chosen, **(_describe(after) if moved else {}))
    told = ModelChanged(
        provider=after.name, model=chosen, context_window=agent.using.window, notes=tuple(notes)
    )
    if session.log.opened:  # before that there is no session to tell of it, nor a journal that has it
        told = replace(told, seq=session.events.next_seq())
        session.events.emit(told)
    return told


def _choose_model(session: Session, provider: Provider, model: str | None) -> str:
    if model is None:
        model = find_default_model(provider)
        if not model and session.model:
            raise ConfigurationError(
                f"Provider {provider.name!r} has no model of its own: say which one it is to use."
            )
    if not isinstance(model, str):
        raise ConfigurationError(f"model must be text, not {model!r:.80}.")
    return model


def _describe(provider: Provider) -> JsonObject:
    """What a replay must know of a provider that it does not have."""
    return {"provider": provider.name, "capabilities": to_builtins(get_provider_capabilities(provider))}
