"""What type checkers see; written by `python -m robota._stubs`."""

from robota.core.permissions.evaluate import PermissionExplanation as PermissionExplanation
from robota.core.permissions.evaluate import evaluate_permission as evaluate_permission
from robota.core.permissions.evaluate import explain_permission as explain_permission
from robota.core.permissions.evaluate import narrowest_rules as narrowest_rules
from robota.core.permissions.modes import MODE_POLICY as MODE_POLICY
from robota.core.permissions.modes import PermissionDecision as PermissionDecision
from robota.core.permissions.modes import PermissionMode as PermissionMode
from robota.core.permissions.modes import TRUST_TO_MODE as TRUST_TO_MODE
from robota.core.permissions.modes import ToolClass as ToolClass
from robota.core.permissions.modes import TrustLevel as TrustLevel
from robota.core.permissions.modes import UNKNOWN_TOOL_FALLBACK as UNKNOWN_TOOL_FALLBACK
from robota.core.permissions.rules import Rule as Rule
from robota.core.permissions.rules import RuleProblem as RuleProblem
from robota.core.permissions.rules import check_rules as check_rules
from robota.core.permissions.rules import parse_rule as parse_rule
from robota.core.permissions.subjects import Touches as Touches
