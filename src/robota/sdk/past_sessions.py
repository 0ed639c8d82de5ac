"""What can be done with sessions that are over: shown to others, run again, begun anew from the middle, and
judged by other rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from robota.core.errors import StorageError
from robota.core.messages import JsonObject
from robota.core.permissions.evaluate import PermissionExplanation, explain_permission
from robota.core.permissions.subjects import subjects
from robota.core.ports import new_uuid
from robota.sdk.kept_sessions import require_session
from robota.sdk.kit import add_own_rules
from robota.sdk.workspace import find_outside
from robota.sessions.options import permission_options
from robota.sessions.permissions.judgement import Judgement, describe_outside
from robota.sessions.store.session_store import SessionStore

if TYPE_CHECKING:
    from robota.core.events import TurnEvent
    from robota.core.tool_call import PreparedCall
    from robota.sdk.places import Places
    from robota.sdk.settings.settings import Settings
    from robota.sessions.export.source import OnStep
    from robota.sessions.options import SessionOptions
    from robota.sessions.permissions.judgement import DecidedBy, Terms
    from robota.sessions.permissions.judgement import Judge as SessionJudge
    from robota.sessions.replay.session_replay import ReplayReport
    from robota.sessions.store.session_record import SessionRecord

ExportFormat: TypeAlias = Literal["markdown", "html", "json"]
FORMATS: tuple[str, ...] = get_args(ExportFormat)


def load_record(store: SessionStore, session_id: str) -> SessionRecord:
    record = require_session(store, session_id).load(session_id)
    if record is None:
        raise StorageError(f"There is no session {session_id} in {store.base_dir}.")
    return record


def export_session(
    store: SessionStore,
    session_id: str,
    format: ExportFormat = "markdown",
    *,
    redact: bool = True,
    on_step: OnStep | None = None,
) -> str:
    """A session as a text for others, without secrets."""
    from robota.sessions.export.artifact import export_json  # noqa: PLC0415 - for those who export
    from robota.sessions.export.html import export_html  # noqa: PLC0415
    from robota.sessions.export.markdown import export_markdown  # noqa: PLC0415

    write = {"markdown": export_markdown, "html": export_html, "json": export_json}[format]
    return write(load_record(store, session_id), redact=redact, on_step=on_step)


def fork_at(store: SessionStore, session_id: str, step: int) -> str:
    """A new session that begins as another one was after so many messages; its id."""
    from robota.sessions.start import restore  # noqa: PLC0415 - for those who go on
    from robota.sessions.store.message_codec import (  # noqa: PLC0415
        history_entry_to_record,
        message_to_record,
    )

    require_session(store, session_id)
    start = restore(store, session_id, step=step)
    id = new_uuid()
    record: JsonObject = {
        "id": id,
        "cwd": start.cwd or load_record(store, session_id).cwd,
        "messages": [message_to_record(message) for message in start.messages],
        "history": [history_entry_to_record(entry) for entry in start.history],
        "forkedFrom": {"id": session_id, "step": step},
        **({"model": start.model} if start.model else {}),
    }
    store.save(record)
    return id


def step_of_event(store: SessionStore, session_id: str, event: int) -> int:
    """How many messages a session had when the event of that number was told, for `fork_at`."""
    from robota.sessions.journal.decoding import split_record  # noqa: PLC0415 - for those who look back
    from robota.sessions.journal.port import JournalProblem  # noqa: PLC0415
    from robota.sessions.journal.records import MarkRecord, MessageRecord, ToolMessageRecord  # noqa: PLC0415

    steps = 0
    journal = require_session(store, session_id).open_journal(session_id)
    for item in () if journal is None else journal.read():
        if isinstance(item, JournalProblem):
            continue
        if item.ev > event:
            break
        counted = (MessageRecord, ToolMessageRecord, MarkRecord)
        steps += sum(isinstance(part, counted) for part in split_record(item))
    return steps


def past_events(store: SessionStore, session_id: str, after: int = 0) -> Iterator[TurnEvent]:
    """The events of a session behind number `after`, from its journal: nobody needs to have it open, and
    somebody else may."""
    from robota.sessions.follow import read_events  # noqa: PLC0415 - for those who look back

    journal = require_session(store, session_id).open_journal(session_id)
    return iter(()) if journal is None else read_events(journal, after)


def last_event(store: SessionStore, session_id: str) -> int:
    """The number of the last event that the journal of a session tells of; 0 if it tells of none."""
    from robota.sessions.files import REAL_FILES  # noqa: PLC0415 - for those who look back
    from robota.sessions.journal.file.line import parse_line  # noqa: PLC0415
    from robota.sessions.store.snapshot_file import read_tail  # noqa: PLC0415

    path = require_session(store, session_id).journal_path(session_id)
    if not os.path.exists(path):
        return 0
    lines = (parse_line(line) for line in reversed(read_tail(REAL_FILES, path)[0]))
    return next((line.ev for line in lines if line is not None and line.ev), 0)


async def replay_kept(
    store: SessionStore,
    session_id: str,
    *,
    until: int | None = None,
    real_tools: bool = False,
    judge: Judge | None = None,
    on_event: Callable[[TurnEvent], object] | None = None,
    on_step: Callable[[int], object] | None = None,
) -> ReplayReport:
    """Run a session again through the same code, without a network. With `real_tools` those that only look
    look at the files as they are now; with a `judge`, calls are judged by what it knows."""
    from robota.sessions.replay.session_replay import UNCHANGED, Changes, replay_session  # noqa: PLC0415
    from robota.tools.builtins.files import read_tool  # noqa: PLC0415 - for those who replay
    from robota.tools.builtins.search import glob_tool, grep_tool  # noqa: PLC0415

    path = require_session(store, session_id).journal_path(session_id)
    changes = Changes(tools=(read_tool(), glob_tool(), grep_tool())) if real_tools else UNCHANGED
    changed: list[_Changed] = []
    if judge is not None:
        changes = replace(changes, options=partial(_judge_by, judge, changed.append))
    report = await replay_session(path, until=until, changes=changes, on_event=on_event, on_step=on_step)
    if changed and report.divergence is not None and report.divergence.event == "permission_decided":
        then, now = (_OUTCOMES[decision] for decision in changed[0])
        shown = replace(report.divergence, field="decision", recorded=then, replayed=now)
        report = replace(report, divergence=shown)
    return report


_Changed: TypeAlias = tuple[str, str]
"""What was decided about a call then, and what is now."""
_OUTCOMES = {"auto": "allow", "approve": "ask", "deny": "deny"}


def _judge_by(judge: Judge, report: Callable[[_Changed], object], options: SessionOptions) -> SessionOptions:
    permissions = permission_options(options.permissions)
    assert permissions.judge is not None, "a replay repeats what was decided"
    today = _JudgeOfToday(permissions.judge, judge, report)
    return replace(options, permissions=replace(permissions, judge=today))


class _JudgeOfToday:
    """Says what was said then, unless the rules of today say something else."""

    def __init__(self, recorded: SessionJudge, judge: Judge, report: Callable[[_Changed], object]) -> None:
        self._recorded = recorded
        self._judge = judge
        self._report = report
        self.offer, self.remember = recorded.offer, recorded.remember

    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement:
        then = await self._recorded.judge(call, terms)
        now = self._judge.explain(call.request.name, call.arguments, terms.cwd)
        if is_unchanged(then.decision, then.by, now):
            return then
        self._report((then.decision, now.decision))
        by: DecidedBy = "mode" if now.rule is None else "rule"
        # Nobody was asked then, so there is no answer to go on with: a question of today ends the call.
        decision = "deny" if now.decision == "approve" else now.decision
        return Judgement(decision=decision, by=by, rule=now.rule, part=now.part, reason=now.reason)


def is_unchanged(then: str, by: str, now: PermissionExplanation) -> bool:
    """Whether the rules of today leave a decision as it was. What the workspace and the sandbox decided
    depends on no rule; a refusal of today counts there too."""
    return now.decision == then or (by in ("guard", "sandbox") and now.decision != "deny")


class PastCall(Struct, frozen=True, kw_only=True):
    """A call that was decided once."""

    session_id: str
    tool_name: str
    arguments: JsonObject
    cwd: str
    decided: str
    """What was decided about it then: `auto`, `approve` (it was asked about) or `deny`."""
    by: str
    """What decided: a rule, the mode, the guard of the workspace, the sandbox."""


def past_calls(store: SessionStore, session_id: str) -> Iterator[PastCall]:
    """The calls of a session with what was decided about them."""
    from robota.sessions.journal.entries import load_session_log_entries  # noqa: PLC0415 - long to read

    calls: dict[str, JsonObject] = {}
    cwd = ""
    for entry in load_session_log_entries(store.journal_path(session_id)):
        if entry["event"] == "session_init":
            cwd = str(entry.get("cwd") or cwd)
        elif entry["event"] == "tool_execution_request":
            calls[entry["callId"]] = to_builtins(entry["parameters"])
        elif entry["event"] == "permission_decided" and (judged := entry.get("judged")):
            yield PastCall(
                session_id=session_id,
                tool_name=entry["toolName"],
                arguments=calls.get(entry["callId"], {}),
                cwd=cwd,
                decided=judged[0]["decision"],
                by=judged[0].get("by", "mode"),
            )


LOOKING = frozenset(
    (
        "AskUserQuestion",
        "BashOutput",
        "EnterPlanMode",
        "ExitPlanMode",
        "KillBash",
        "Skill",
        "TodoWrite",
        "ToolSearch",
    )
)
"""Built-in tools that say of themselves that they only look; the evaluator knows the others by name."""


class Judge(Struct, frozen=True):
    """Judges calls by the settings of a directory, as a session that is started there would."""

    settings: Settings
    places: Places

    def foresee(self, tool_name: str, tool_input: JsonObject) -> PermissionExplanation:
        """What a session would do with the call at first: by the rules, and by the guard of its workspace."""
        found = self.explain(tool_name, tool_input)
        mode = self.settings.rules.mode
        if found.decision != "auto" or found.rule is not None or mode == "bypassPermissions":
            return found
        root = self.places.cwd
        own = (root, *self.settings.additional_dirs)
        outside = find_outside(subjects(tool_name, tool_input), root, own)
        if outside is None:
            return found
        return PermissionExplanation("approve", part=outside, reason=describe_outside(outside))

    def explain(self, tool_name: str, tool_input: JsonObject, cwd: str = "") -> PermissionExplanation:
        """What the rules alone say."""
        rules = add_own_rules(self.settings, self.settings.rules.mode)
        return explain_permission(
            tool_name,
            tool_input,
            tool_class="inspect" if tool_name in LOOKING else None,
            mode=rules.mode,
            allow=rules.allow,
            deny=rules.deny,
            ask=rules.ask,
            cwd=cwd or self.places.cwd,
            home=self.places.home,
            additional_dirs=self.settings.additional_dirs,
        )

    def find_origin(self, rule: str) -> str:
        """Where a rule is written."""
        for kind in ("deny", "ask", "allow"):
            for layer in self.settings.layers:
                permissions = layer.values.get("permissions")
                listed = permissions.get(kind) if isinstance(permissions, dict) else None
                if isinstance(listed, list) and rule in listed:
                    line = layer.line("permissions", kind, listed.index(rule))
                    return f"{self.places.shown(layer.path)}{f':{line}' if line else ''}"
        return ""
