"""A session in plain values: for the first record of its journal, for its hooks, for its snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from msgspec import to_builtins
from msgspec.structs import replace

from robota.core.hooks.definition import HOOK_EVENTS
from robota.core.jsontext import decode
from robota.core.messages import JsonObject
from robota.core.provider import NativeWebTools, get_provider_capabilities
from robota.core.tool import tool_schema
from robota.sessions.permissions.live_rules import permit_web_tools

if TYPE_CHECKING:
    from robota.core.provider import ModelSettings
    from robota.core.structured import OutputType
    from robota.sessions.session import Session
    from robota.sessions.snapshots import RedactedHistory
    from robota.sessions.store.session_record import SessionRecord


_END_EVENTS = ("Stop", "SubagentStop")
_USAGE_EVENTS = (*_END_EVENTS, "StopFailure", "SessionEnd", "PostCompact")


def describe_session(session: Session) -> JsonObject:
    """The fields of `session_init`."""
    agent, options, rules = session.agent, session.options, session.rules.rules
    prompt, hidden = agent.system_message or "", agent.toolset.hidden
    tools = sorted(agent.tools, key=lambda tool: tool.name in hidden)
    return {
        "systemPrompt": prompt,
        "systemPromptLength": len(prompt),
        "provider": agent.provider.name,
        "model": agent.model,
        "cwd": session.cwd,
        "toolSchemas": agent.toolset.schemas,
        "name": session.name,
        "permissionMode": rules.mode,
        "permissions": {"allow": rules.allow, "deny": rules.deny, "ask": rules.ask},
        "contextWindow": options.context_window,
        "autoCompactThreshold": session.tracker.threshold,
        "compactInstructions": options.compaction.instructions or None,
        "budget": describe_budget(session),
        "maxTurns": options.max_rounds,
        "options": None if options.settings == type(options.settings)() else options.settings,
        "webTools": describe_web_tools(session),
        "selfChecking": [tool.name for tool in tools if getattr(tool, "validates_arguments", False)],
        "hiddenTools": [tool_schema(tool) for tool in tools if tool.name in hidden] or None,
        "hookEvents": [event for event in HOOK_EVENTS if session.hooks.has(event)] or None,
        "canAsk": session.questions.attended,
        "agentId": options.agent_id or None,
    }


def describe_budget(session: Session) -> JsonObject | None:
    """Nothing where others may spend out of the same ledger: what is left is then not for this one to say."""
    budget = session.admission.budget
    return None if budget is None or session.options.ledger is not None else to_builtins(budget)


def describe_web_tools(session: Session) -> JsonObject:
    offered, wanted = get_provider_capabilities(session.agent.provider), choose_web_tools(session)
    search, fetch = bool(wanted and wanted.web_search), bool(wanted and wanted.web_fetch)
    return {
        "webSearch": {"supported": offered.web_search.supported, "enabled": search},
        "webFetch": {"supported": offered.web_fetch.supported, "enabled": fetch},
    }


def choose_web_tools(session: Session) -> NativeWebTools | None:
    """The web tools of the model's service that are asked for: wanted, and restricted by no rule. A provider
    that came later may lack them; the first one may not."""
    wanted = session.options.native_web_tools
    if wanted is None:
        return None
    exchanged = None if session.authors is None else session.agent.provider
    return permit_web_tools(wanted, session.rules.rules, exchanged)


def update_web_tools(session: Session) -> None:
    if session.options.native_web_tools is not None:
        session.agent.using = replace(session.agent.using, native_web_tools=choose_web_tools(session))


def describe_to_hooks(session: Session, event: str) -> JsonObject:
    """What every hook is told, and those about the end of a run of what goes on beside it."""
    common: JsonObject = {
        "session_id": session.session_id,
        "transcript_path": session.log.path,
        "cwd": session.cwd,
        "permission_mode": session.permission_mode,
    }
    if session.options.agent_id:
        common["agent_id"] = session.options.agent_id
    if event in _END_EVENTS:
        common |= session.background.describe_to_hooks()
    if event in _USAGE_EVENTS:
        total = session.usage.total
        common["usage"] = {name: getattr(total, name) for name in total.__struct_fields__}
    return common


def describe_snapshot(
    session: Session, redacted: RedactedHistory
) -> Callable[[], SessionRecord | JsonObject]:
    """What the store keeps, without the secrets that only this process knows: as it is now, but made when it
    is called, in any thread, because a long conversation takes its time."""
    from robota.sessions.store.session_record import SessionRecord  # noqa: PLC0415 - not before the first save
    from robota.sessions.store.session_store import SessionStore  # noqa: PLC0415 - likewise
    from robota.sessions.store.snapshot_file import format_time  # noqa: PLC0415 - likewise

    agent, journal, redactor = session.agent, session.log.journal, session.log.secrets.redactor
    said, happened = agent.messages, agent.history  # nothing said: it is not saved
    record = SessionRecord(
        id=session.session_id,
        cwd=session.cwd,
        created_at=session.past.created_at or (format_time(said[0].timestamp) if said else ""),
        name=session.name,
        model=agent.model or None,
        system_prompt=agent.system_message,
        tool_schemas=[to_builtins(tool_schema(tool)) for tool in agent.tools],
        journal_seq=None if journal is None else journal.saved,
        messages=[],
    )
    record.keep(session.kept.values)
    session.background.write_into(record)

    def make() -> SessionRecord | JsonObject:
        known: JsonObject = redactor.value(record.to_mapping()) if redactor.own else record.to_mapping()
        messages, history = redacted.encode(said, happened, redactor)
        if isinstance(session.store, SessionStore):
            return {**known, "messages": messages, "history": history}
        if redactor.own:
            return {**known, "messages": decode(messages), "history": decode(history)}
        record.messages, record.history = decode(messages), decode(history)
        return record

    return make


class Wishes(TypedDict):
    """What a prompt asks for beside its words, for the journal."""

    wanted: JsonObject | None
    settings: JsonObject | None


def describe_wishes(wanted: OutputType | None, settings: ModelSettings | None) -> Wishes:
    return {
        "wanted": None if wanted is None else wanted.schema,
        "settings": None if settings is None else to_builtins(settings),
    }
