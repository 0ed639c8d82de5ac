"""What type checkers see; written by `python -m robota._stubs`."""

from robota.plugins.conversation_history import ConversationHistoryPlugin as ConversationHistoryPlugin
from robota.plugins.error_handling import ErrorHandlingPlugin as ErrorHandlingPlugin
from robota.plugins.execution_analytics import ExecutionAnalyticsPlugin as ExecutionAnalyticsPlugin
from robota.plugins.limits import LimitsPlugin as LimitsPlugin
from robota.plugins.logging import LoggingPlugin as LoggingPlugin
from robota.plugins.performance import PerformancePlugin as PerformancePlugin
from robota.plugins.storage.port import Entry as Entry
from robota.plugins.storage.port import Storage as Storage
from robota.plugins.telemetry.plugin import TelemetryPlugin as TelemetryPlugin
from robota.plugins.usage import UsagePlugin as UsagePlugin
from robota.plugins.usage import UsageSum as UsageSum
from robota.plugins.webhook import WebhookEndpoint as WebhookEndpoint
from robota.plugins.webhook import WebhookPlugin as WebhookPlugin
