"""What type checkers see; written by `python -m robota._stubs`."""

from robota.transports.headless import HeadlessRunner as HeadlessRunner
from robota.transports.headless import HeadlessTransport as HeadlessTransport
from robota.transports.headless import PrintOptions as PrintOptions
from robota.transports.headless import create_headless_runner as create_headless_runner
from robota.transports.headless import create_headless_transport as create_headless_transport
from robota.transports.headless import run_print as run_print
