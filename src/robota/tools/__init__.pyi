"""What type checkers see; written by `python -m robota._stubs`."""

from robota.tools.builtins.ask_user import ask_user_tool as ask_user_tool
from robota.tools.builtins.background import bash_output_tool as bash_output_tool
from robota.tools.builtins.background import kill_bash_tool as kill_bash_tool
from robota.tools.builtins.bash import bash_tool as bash_tool
from robota.tools.builtins.edit import edit_tool as edit_tool
from robota.tools.builtins.glob import glob_tool as glob_tool
from robota.tools.builtins.grep import grep_tool as grep_tool
from robota.tools.builtins.plan import PlanState as PlanState
from robota.tools.builtins.plan import plan_tools as plan_tools
from robota.tools.builtins.read import read_tool as read_tool
from robota.tools.builtins.todo import TodoList as TodoList
from robota.tools.builtins.todo import todo_tool as todo_tool
from robota.tools.builtins.web_fetch import web_fetch_tool as web_fetch_tool
from robota.tools.builtins.web_search import web_search_tool as web_search_tool
from robota.tools.builtins.write import write_tool as write_tool
from robota.tools.function_tool import FunctionTool as FunctionTool
from robota.tools.function_tool import create_function_tool as create_function_tool
from robota.tools.function_tool import tool as tool
from robota.tools.openapi.tool import OpenAPITool as OpenAPITool
from robota.tools.openapi.tool import load_openapi as load_openapi
from robota.tools.processes import ProcessTable as ProcessTable
from robota.tools.registry import ToolRegistry as ToolRegistry
from robota.tools.undo.guard import guarded as guarded
from robota.tools.undo.store import UndoStore as UndoStore
