"""What is done to a session from outside: going back in its conversation, messages put into it, other rules,
another model.

Going back deletes nothing; it can be taken back until something else is said. The journal keeps what was set
aside and a record of the rewind, so that a session that is resumed or replayed goes the same way.

Another model, or another provider, answers from the next request on, also in a run that is under way. The
history stays as it is; what the new model gets of it in another form, or not at all, is told in sentences.
The journal has the change, so that a replay makes it at the same point and a resumed session begins with the
new model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeGuard

from msgspec import to_builtins
from msgspec.structs import replace

from robota.core.errors import ConfigurationError, SessionBusyError, ValidationError
from robota.core.events import ModelChanged, SettingsChanged
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Json,
    Message,
    UserMessage,
    add_to_system,
    make_message,
)
from robota.core.models import describe_unknown_model, is_known_model
from robota.core.ports import timestamp
from robota.core.provider import Provider, check_provider, get_provider_capabilities
from robota.sessions.description import choose_web_tools
from robota.sessions.hooks import GivenHooks, LiveHooks
from robota.sessions.journal.records import HistoryRewound
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.usage.budget import BudgetedProvider
from robota.sessions.usage.meter import find_default_model

if TYPE_CHECKING:
    from robota.core.conversation import ConversationStore
    from robota.sessions.session import Session


def is_prompt(message: object) -> TypeGuard[UserMessage]:
    """Whether a user said it, not robota in the middle of a run."""
    return isinstance(message, UserMessage) and "origin" not in message.metadata


def rewind(session: Session, messages: int) -> None:
    """Let the conversation go on from its first `messages`, which end before a prompt."""
    conversation = _require_idle(session)
    said: list[Message] = conversation.messages
    if not 0 <= messages < len(said) or not isinstance(said[messages], UserMessage):
        raise ValidationError(f"Message {messages + 1} is not a prompt to go back to.", field="messages")
    conversation.rewind(messages)
    _go_on(session, messages, back=False)


def take_back_rewind(session: Session) -> bool:
    """Have the conversation as it was before the last rewind; false when it went on since."""
    conversation = _require_idle(session)
    if not conversation.take_back_rewind():
        return False
    _go_on(session, len(conversation), back=True)
    return True


def _require_idle(session: Session) -> ConversationStore:
    session.log.require_open()
    if session.is_running or session.agent.is_running:
        raise SessionBusyError("The conversation cannot be rewound while a prompt runs: abort it first.")
    return session.agent.conversation


def _go_on(session: Session, messages: int, *, back: bool) -> None:
    session.past.cut = None
    session.log.record_restart(HistoryRewound(messages=messages, back=back))
    session.steps.tell_context()


InjectedRole = Literal["user", "assistant", "system", "tool"]


def make_injected(
    session: Session, role: InjectedRole, content: str, *, tool_call_id: str = "", name: str = ""
) -> Message:
    """The message; words of the system stand behind those that the model has from it already."""
    ports, agent = session.options.ports, session.agent
    identity: Any = {"id": ports.new_id(), "timestamp": timestamp(ports.now())}
    if role == "system":
        return add_to_system(agent.conversation.system, agent.system_message, content, **identity)
    return make_message(role, content, tool_call_id=tool_call_id, name=name, **identity)


def inject(session: Session, message: Message) -> Message:
    """Put it at the end of the conversation, in mid-run at the end of the round."""
    session.past.cut = None
    return session.log.record(message, in_run=session.agent.is_running)


class Changes(TypedDict, total=False):
    """What may be given to `Session.reload`."""

    rules: PermissionRules
    hooks: GivenHooks
    additional_dirs: Iterable[str]


def reload(
    session: Session,
    *,
    rules: PermissionRules | None = None,
    hooks: GivenHooks = None,
    additional_dirs: Iterable[str] | None = None,
) -> None:
    changed: dict[str, Json] = {}
    if rules is not None:
        session.rules.check(rules)  # before anything has changed
    if hooks is not None:
        if not isinstance(session.hooks, LiveHooks):
            raise ConfigurationError("This session was given somebody who runs its hooks; ask them.")
        session.hooks.replace(hooks)
        changed["hooks"] = sorted(hooks)
    session.rules.replace(rules, additional_dirs=additional_dirs)
    if rules is not None:
        changed["permissions"] = to_builtins(rules)
    if additional_dirs is not None:
        changed["directories"] = list(session.rules.additional_dirs)
    if session.log.opened:  # before that its first record says so, and no number may be given
        session.log.tell(SettingsChanged, keys=tuple(changed), values=changed)


# --- another model -------------------------------------------------------------------------------------


class Authors:
    """Which provider wrote which part of a conversation, as far as this process has seen it."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, str]] = []
        """From which message on it was who."""

    def change(self, length: int, before: str, after: str) -> None:
        """Somebody else answers after so many messages."""
        if not self._spans or self._spans[-1][0] > length:  # the conversation was cleared since
            self._spans = [(0, before)]
        self._spans.append((length, after))

    def find(self, place: int) -> str:
        return next((name for start, name in reversed(self._spans) if start <= place), "")


def list_losses(session: Session, before: Provider, after: Provider) -> Iterator[str]:
    """What `after` gets in another form or not at all of what was said to or by others."""
    conversation = session.agent.conversation
    authors = session.authors = session.authors or Authors()
    in_flight = int(conversation.has_pending_assistant)
    authors.change(len(conversation) + in_flight, before.name, after.name)
    seen = _Seen(conversation.timeline, authors, after.name)
    can, name = get_provider_capabilities(after), after.name
    if seen.images and not can.vision:
        yield f"{_count(seen.images, 'image')} of the history will be a note: {name} takes no images."
    if seen.files and not can.files:
        yield f"{_count(seen.files, 'file')} of the history will be a note: {name} takes no files."
    if seen.thoughts:
        whose = " and ".join(sorted(seen.thinkers))
        yield f"{_count(seen.thoughts, 'piece')} of thinking by {whose} will not be sent to {name}."
    if seen.calls:
        yield f"{_count(seen.calls, 'tool call')} will be sent under ids that {name} accepts."
    if session.agent.tools and not can.function_calling:
        yield f"{name} cannot call tools, so those of this session are of no use with it."
    if extra := session.agent.settings.extra:
        yield f"The extra settings {', '.join(sorted(extra))} will be sent to {name} as they are."
    yield from _list_missing_web_tools(session, after)


def list_limits(session: Session) -> Iterator[str]:
    """Where the new model's window or price stands in the way."""
    agent, tracker, model = session.agent, session.tracker, session.agent.model
    known = not model or agent.using.context_window is not None or is_known_model(model)
    if not known:
        agent.noticed = model  # so that the next run need not say it again
        yield describe_unknown_model(model)
    state = tracker.state
    if state.used_tokens >= tracker.limit_tokens:
        yield (
            f"The conversation has about {state.used_tokens:,} tokens, the window {state.max_tokens:,}: it "
            f"{'must' if tracker.threshold is False else 'will'} be summarised before it goes on."
        )
    provider = agent.provider
    paid = isinstance(provider, BudgetedProvider) and provider.budget.max_cost_usd is not None
    if paid and session.usage.rates(model) is None:
        yield (
            f"No price is known for the model {model!r}, so the budget in dollars will refuse its requests: "
            "give its price or limit tokens instead."
        )


def _list_missing_web_tools(session: Session, after: Provider) -> Iterator[str]:
    wanted, left = session.options.native_web_tools, choose_web_tools(session)
    if wanted is None:
        return
    for label in ("search", "fetch"):
        if getattr(wanted, f"web_{label}") and not getattr(left, f"web_{label}", False):
            yield f"{after.name} has no web {label} of its own; requests will go without it."


class _Seen:
    """What there is in the model's view of a conversation: the messages since the last compaction."""

    def __init__(self, timeline: Sequence[Message], authors: Authors, reader: str) -> None:
        self.calls = self.files = self.images = self.thoughts = 0
        self.thinkers: set[str] = set()
        for at in range(len(timeline) - 1, -1, -1):
            message = timeline[at]
            if isinstance(message, AssistantMessage):
                author = authors.find(at)
                if author != reader:
                    self.calls += len(message.tool_calls)
                if author != reader and message.reasoning:
                    self.thoughts += len(message.reasoning)
                    self.thinkers.add(author)
                if message.metadata.get("compaction"):
                    break
            for part in getattr(message, "parts", ()):
                self.images += isinstance(part, ImagePart | ImageUriPart)
                self.files += isinstance(part, FilePart)


def _count(number: int, thing: str) -> str:
    return f"One {thing}" if number == 1 else f"{number} {thing}s"


def swap_model(session: Session, provider: Provider, model: str | None) -> ModelChanged:
    """Make the change and tell what it means. Without a model it is the provider's own one."""
    agent, admit = session.agent, session.admission.admit
    before = admit(agent.provider)
    check_provider(provider)
    chosen = _choose_model(session, provider, model)
    after = admit(provider)
    session.log.secrets.learn(after)
    moved = after is not before
    if moved or chosen != agent.model:  # a window that was said is that of the model it was said of
        agent.using = replace(agent.using, context_window=None)
    agent.using = replace(agent.using, provider=after, model=chosen)
    session.tracker.max_tokens = agent.using.window
    notes: list[str] = []
    if moved:
        agent.conversation.encoded.forget()
        notes += list_losses(session, before, after)
    notes += list_limits(session)
    agent.using = replace(agent.using, native_web_tools=choose_web_tools(session))
    # What a replay must know of a provider that it does not have.
    known = {"provider": after.name, "capabilities": to_builtins(get_provider_capabilities(after))}
    session.log.note_change("model", chosen, **(known if moved else {}))
    told = ModelChanged(
        provider=after.name, model=chosen, context_window=agent.using.window, notes=tuple(notes)
    )
    if session.log.opened:  # before that there is no session to tell of it, nor a journal that has it
        told = replace(told, seq=session.events.next_seq())
        session.events.emit(told)
        session.steps.tell_context()
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
