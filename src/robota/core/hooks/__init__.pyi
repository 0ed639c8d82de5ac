"""What type checkers see; written by `python -m robota._stubs`."""

from robota.core.hooks.definition import DEFAULT_TIMEOUT as DEFAULT_TIMEOUT
from robota.core.hooks.definition import HOOK_EVENTS as HOOK_EVENTS
from robota.core.hooks.definition import HOOK_TYPES as HOOK_TYPES
from robota.core.hooks.definition import HookDefinition as HookDefinition
from robota.core.hooks.definition import HookGroup as HookGroup
from robota.core.hooks.definition import HooksConfig as HooksConfig
from robota.core.hooks.definition import check_hooks as check_hooks
from robota.core.hooks.definition import claude_timeout as claude_timeout
from robota.core.hooks.definition import describe_unsupported as describe_unsupported
from robota.core.hooks.definition import merge_hooks as merge_hooks
from robota.core.hooks.definition import parse_hooks as parse_hooks
from robota.core.hooks.executors import CommandExecutor as CommandExecutor
from robota.core.hooks.executors import HookExecutor as HookExecutor
from robota.core.hooks.executors import HttpExecutor as HttpExecutor
from robota.core.hooks.executors import hook as hook
from robota.core.hooks.executors import read_ok_answer as read_ok_answer
from robota.core.hooks.outcome import HookOutcome as HookOutcome
from robota.core.hooks.outcome import HookResult as HookResult
from robota.core.hooks.outcome import HookRun as HookRun
from robota.core.hooks.outcome import as_context as as_context
from robota.core.hooks.runner import complete_input as complete_input
from robota.core.hooks.runner import run_hooks as run_hooks
