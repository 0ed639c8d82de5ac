"""Plugins that come with robota: they watch, count, keep, limit and report what agents do.

Give instances to `Robota(plugins=[…])`, `SessionOptions(plugins=[…])` or `InteractiveSession(plugins=[…])`.
"""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.plugins.conversation_history": "ConversationHistoryPlugin",
    "robota.plugins.error_handling": "ErrorHandlingPlugin",
    "robota.plugins.execution_analytics": "ExecutionAnalyticsPlugin",
    "robota.plugins.limits": "LimitsPlugin",
    "robota.plugins.logging": "LoggingPlugin",
    "robota.plugins.performance": "PerformancePlugin",
    "robota.plugins.storage.port": "Entry Storage",
    "robota.plugins.telemetry.plugin": "TelemetryPlugin",
    "robota.plugins.usage": "UsagePlugin UsageSum",
    "robota.plugins.webhook": "WebhookEndpoint WebhookPlugin",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
