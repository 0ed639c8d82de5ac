"""What type checkers see; written by `python -m robota._stubs`."""

from robota.providers.choice import ChosenProvider as ChosenProvider
from robota.providers.choice import choose_provider as choose_provider
from robota.sdk.assembly import create_default_tools as create_default_tools
from robota.sdk.assembly import create_session as create_session
from robota.tools.builtins.bash import bash_tool as bash_tool
from robota.tools.builtins.edit import edit_tool as edit_tool
from robota.tools.builtins.glob import glob_tool as glob_tool
from robota.tools.builtins.grep import grep_tool as grep_tool
from robota.tools.builtins.read import read_tool as read_tool
from robota.tools.builtins.write import write_tool as write_tool
