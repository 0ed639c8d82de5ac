"""Sessions: one agent with permissions, a bounded context, and a journal from which nothing is lost.

Names are loaded when they are first used.
"""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.sessions.permissions.approval": "ApprovalRequest PermissionAnswer PermissionHandler",
    "robota.sessions.compaction.compaction_orchestrator": "CompactionOrchestrator",
    "robota.sessions.context_window_tracker": "ContextWindowTracker",
    "robota.sessions.permissions.permission_enforcer": "PermissionEnforcer",
    "robota.sessions.redaction": "Redactor redact",
    "robota.sessions.permissions.rule_book": "PermissionRules",
    "robota.sessions.session": "Session",
    "robota.sessions.session_log": "load_session_log_entries",
    "robota.sessions.session_logger": "FileSessionLogger",
    "robota.sessions.session_options": "SessionOptions",
    "robota.sessions.store.session_record": "SessionRecord",
    "robota.sessions.store.session_store": "SessionStore SessionStorePort",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
