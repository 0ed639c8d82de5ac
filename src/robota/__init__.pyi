"""What type checkers see; written by `python -m robota._stubs`."""

from robota._version import __version__ as __version__
from robota.core.permissions import evaluate_permission as evaluate_permission
from robota.core.permissions import explain_permission as explain_permission
from robota.core.plugin import Plugin as Plugin
from robota.core.provider import ModelSettings as ModelSettings
from robota.core.robota import AgentConfig as AgentConfig
from robota.core.robota import Robota as Robota
from robota.core.robota import RunLimits as RunLimits
from robota.core.run import RunResult as RunResult
from robota.core.sync import run_sync as run_sync
from robota.core.tool import ToolContext as ToolContext
from robota.core.tool import ToolResult as ToolResult
from robota.providers.choice import choose_provider as choose_provider
from robota.sdk.interactive import InteractiveSession as InteractiveSession
from robota.sdk.kept_sessions import create_project_session_store as create_project_session_store
from robota.sdk.query import create_query as create_query
from robota.sessions.options import SessionOptions as SessionOptions
from robota.sessions.session import Session as Session
from robota.tools.function_tool import tool as tool
