"""What type checkers see; written by `python -m robota._stubs`."""

from robota.transports.headless import HeadlessRunner as HeadlessRunner
from robota.transports.headless import HeadlessTransport as HeadlessTransport
from robota.transports.headless import PrintOptions as PrintOptions
from robota.transports.headless import create_headless_runner as create_headless_runner
from robota.transports.headless import create_headless_transport as create_headless_transport
from robota.transports.headless import run_print as run_print
from robota.transports.host import SessionHost as SessionHost
from robota.transports.http.transport import HttpTransport as HttpTransport
from robota.transports.http.transport import create_agent_routes as create_agent_routes
from robota.transports.http.transport import create_http_transport as create_http_transport
from robota.transports.mcp_server.server import create_agent_mcp_server as create_agent_mcp_server
from robota.transports.programmatic import ProgrammaticAgent as ProgrammaticAgent
from robota.transports.programmatic import create_programmatic_agent as create_programmatic_agent
from robota.transports.session_maker import SessionWish as SessionWish
from robota.transports.ws import WsHandler as WsHandler
from robota.transports.ws import create_ws_handler as create_ws_handler
