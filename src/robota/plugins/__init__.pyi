"""What type checkers see; written by `python -m robota._stubs`."""

from robota.plugins.logging import LoggingPlugin as LoggingPlugin
from robota.plugins.storage.port import Entry as Entry
from robota.plugins.storage.port import Storage as Storage
from robota.plugins.usage import UsagePlugin as UsagePlugin
from robota.plugins.usage import UsageSum as UsageSum
