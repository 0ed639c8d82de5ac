"""What type checkers see; written by `python -m robota._stubs`."""

from robota.core.history import HistoryEntry as HistoryEntry
from robota.core.history import chat_entry_to_message as chat_entry_to_message
from robota.core.history import get_messages_for_api as get_messages_for_api
from robota.core.history import is_chat_entry as is_chat_entry
from robota.core.history import message_to_history_entry as message_to_history_entry
from robota.providers.choice import ChosenProvider as ChosenProvider
from robota.providers.choice import choose_provider as choose_provider
from robota.sdk.assembly import MoreOptions as MoreOptions
from robota.sdk.assembly import create_default_tools as create_default_tools
from robota.sdk.assembly import create_session as create_session
from robota.sdk.execution import ExecutionResult as ExecutionResult
from robota.sdk.interactive import InteractiveSession as InteractiveSession
from robota.sdk.problems import Problem as Problem
from robota.sdk.query import create_query as create_query
from robota.sdk.tool_states import DiffLine as DiffLine
from robota.sdk.tool_states import ToolState as ToolState
from robota.sdk.tool_states import ToolSummary as ToolSummary
from robota.tools.builtins.bash import bash_tool as bash_tool
from robota.tools.builtins.edit import edit_tool as edit_tool
from robota.tools.builtins.glob import glob_tool as glob_tool
from robota.tools.builtins.grep import grep_tool as grep_tool
from robota.tools.builtins.read import read_tool as read_tool
from robota.tools.builtins.write import write_tool as write_tool
