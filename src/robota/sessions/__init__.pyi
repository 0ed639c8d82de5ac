"""What type checkers see; written by `python -m robota._stubs`."""

from robota.sessions.compaction.compaction_orchestrator import CompactionOrchestrator as CompactionOrchestrator
from robota.sessions.context_window_tracker import ContextWindowTracker as ContextWindowTracker
from robota.sessions.permissions.approval import ApprovalRequest as ApprovalRequest
from robota.sessions.permissions.approval import PermissionAnswer as PermissionAnswer
from robota.sessions.permissions.approval import PermissionHandler as PermissionHandler
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer as PermissionEnforcer
from robota.sessions.permissions.rule_book import PermissionRules as PermissionRules
from robota.sessions.redaction import Redactor as Redactor
from robota.sessions.redaction import redact as redact
from robota.sessions.session import Session as Session
from robota.sessions.session_log import load_session_log_entries as load_session_log_entries
from robota.sessions.session_logger import FileSessionLogger as FileSessionLogger
from robota.sessions.session_options import SessionOptions as SessionOptions
from robota.sessions.store.session_record import SessionRecord as SessionRecord
from robota.sessions.store.session_store import SessionStore as SessionStore
from robota.sessions.store.session_store import SessionStorePort as SessionStorePort
