"""A slip in an option that guards something raises where it is made, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from robota.core.errors import ConfigurationError
from robota.core.events import Noticed
from robota.core.hooks import CommandExecutor, HookDefinition, HookGroup
from robota.core.provider import ModelSettings
from robota.core.retry import RetryPolicy
from robota.core.robota import AgentConfig, RunLimits
from robota.sessions.hooks import LiveHooks
from robota.sessions.options import (
    CompactionOptions,
    HookOptions,
    PermissionOptions,
    SessionOptions,
)
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.sessions.redaction import Redactor
from robota.sessions.session import Session
from robota.sessions.usage.budget import Budget
from robota.testing import ScriptedProvider
from robota.tools import tool
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.web import web_fetch_tool
from robota.tools.sandbox.sandbox import Sandbox


@tool
def deploy(target: str) -> str:
    """Put a version where users are."""
    return target


def make_session(options: Any, *answers: str) -> Session:
    return Session(provider=ScriptedProvider(*answers), tools=[deploy, bash_tool()], options=options)


HOOK = {"hooks": [{"type": "command", "command": "exit 2"}]}
GROUP = HookGroup(matcher="bash", hooks=(HookDefinition(type="command", command="exit 2"),))

Rules: Any = PermissionRules  # what is given wrongly, a type checker would refuse
Options: Any = SessionOptions


def with_rules(**rules: Any) -> Session:
    return make_session(Options(permissions=Rules(**rules)))


def with_hooks(hooks: Any) -> Session:
    return make_session(Options(hooks=hooks))


SLIPS: dict[str, tuple[Callable[[], object], str]] = {
    "one string for allow": (
        lambda: Rules(allow="Read"),
        "PermissionRules.allow is a list of strings, not one string: write allow=('Read',).",
    ),
    "one string for deny": (lambda: Rules(deny="Bash(rm *)"), "write deny=('Bash(rm *)',)."),
    "a number among rules": (lambda: Rules(ask=(3,)), "PermissionRules.ask[0] is a value of type int"),
    "a dict of rules": (
        lambda: Rules(deny={"Bash": True}),
        "PermissionRules.deny is a list of strings, not a dict",
    ),
    "an open parenthesis": (
        lambda: Rules(deny=("Bash(rm",)),
        "The deny rule 'Bash(rm' cannot work: the closing parenthesis",
    ),
    "a wildcard that allows": (lambda: Rules(allow=("*",)), "The allow rule '*' cannot work:"),
    "a mode": (
        lambda: Rules(mode="acceptedits"),
        "no permission mode 'acceptedits'; did you mean 'acceptEdits'?",
    ),
    "one directory": (
        lambda: LiveRules(additional_dirs="/srv"),
        "additional_dirs is a list of strings, not one string",
    ),
    "a dict for rules": (
        lambda: Options(permissions={"deny": ["Bash"]}),
        "SessionOptions.permissions takes PermissionOptions or PermissionRules or LiveRules, not a d",
    ),
    "a dict for inner rules": (
        lambda: PermissionOptions(rules=cast(Any, {})),
        "PermissionOptions.rules takes PermissionRules or LiveRules, not a dict.",
    ),
    "a list for hooks": (
        lambda: Options(hooks=[HOOK]),
        "SessionOptions.hooks takes HookOptions or Mapping, not a list.",
    ),
    "one executor": (
        lambda: HookOptions(executors=cast(Any, CommandExecutor())),
        "HookOptions.executors takes Iterable, not a value of type CommandExecutor.",
    ),
    "a dict for compaction": (
        lambda: Options(compaction={}),
        "SessionOptions.compaction takes CompactionOptions, not a dict.",
    ),
    "options of a part": (
        lambda: make_session(CompactionOptions()),
        "takes SessionOptions, not a value of type CompactionOptions.",
    ),
    "a dict for all": (
        lambda: make_session({"permissions": PermissionRules()}),
        "takes SessionOptions, not a dict.",
    ),
    "a tool in a rule": (
        lambda: with_rules(deny=("bash",)),
        "The deny rule 'bash' cannot work: there is no tool 'bash'; did you mean 'Bash'?",
    ),
    "a tool of the user's": (
        lambda: with_rules(ask=("Deploi(prod)",)),
        "there is no tool 'Deploi'; did you mean 'deploy'?",
    ),
    "no tool at all": (
        lambda: with_rules(deny=("Zzyzx",)),
        "there is no tool 'Zzyzx'; there are Bash, deploy.",
    ),
    "an event": (
        lambda: make_session(SessionOptions(hooks={"PreToolUSE": [HOOK]})),
        "there is no event 'PreToolUSE'; did you mean 'PreToolUse'?",
    ),
    "an event of parsed hooks": (
        lambda: make_session(SessionOptions(hooks={"PreToolUSE": (GROUP,)})),
        "there is no event 'PreToolUSE'; did you mean 'PreToolUse'?",
    ),
    "a tool in a matcher": (
        lambda: make_session(SessionOptions(hooks={"PreToolUse": (GROUP,)})),
        "The PreToolUse hooks for 'bash' would never run: there is no tool 'bash'; did you mean 'Bash'?",
    ),
    "groups that are not a list": (
        lambda: make_session(SessionOptions(hooks={"PreToolUse": HOOK})),
        "PreToolUse: expected a list of groups, got a dict",
    ),
    "one secret": (lambda: Redactor("correct horse"), "secrets is a list of strings, not one string"),
    "one variable for commands": (
        lambda: bash_tool(keep_variables="PGPASSWORD"),
        "keep_variables is a list of strings",
    ),
    "one variable for hooks": (
        lambda: CommandExecutor(keep_variables="PGPASSWORD"),
        "keep_variables is a list of strings",
    ),
    "one host": (lambda: web_fetch_tool(allowed_hosts="example.org"), "allowed_hosts is a list of strings"),
    "one file not to read": (lambda: Sandbox("auto", deny_read="~/.ssh"), "deny_read is a list of strings"),
    "a network": (
        lambda: Sandbox("auto", network=cast(Any, "none")),
        "The network of a sandbox is 'off' or 'on', not 'none'.",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_refused_where_it_is_made(slip: str) -> None:
    make, sentence = SLIPS[slip]
    with pytest.raises(ConfigurationError) as refusal:
        make()
    assert sentence in str(refusal.value)


def test_rules_and_hooks_of_other_sessions_and_programs_stay_usable() -> None:
    rules = PermissionRules(
        deny=("mcp__github", "mcp__db__drop_*", "NotebookEdit", "Skill(deploy *)", "*"), ask=("Task(writer)",)
    )
    hooks = {
        "PreToolUse": [{"matcher": "Task|KillShell, mcp__memory__write", **HOOK}, {"matcher": "^b.*", **HOOK}]
    }
    assert make_session(SessionOptions(permissions=rules, hooks=hooks)).rules.rules == rules


def test_a_reload_is_held_to_the_same_and_changes_nothing_when_refused() -> None:
    session = make_session(SessionOptions(permissions=PermissionRules(deny=("deploy",))))
    for changes in (
        {"rules": PermissionRules(deny=("Deplyo",))},
        {"rules": PermissionRules(), "hooks": {"PreToolUse": [{"matcher": "Deplyo", **HOOK}]}},
        {"rules": {"deny": ["deploy"]}},
        {"additional_dirs": "/srv"},
    ):
        with pytest.raises(ConfigurationError):
            session.reload(**changes)  # type: ignore[typeddict-item]
    assert session.rules.rules == PermissionRules(deny=("deploy",))
    assert session.rules.additional_dirs == ()


def test_a_child_may_have_rules_about_its_parents_tools_and_its_own() -> None:
    @tool
    def publish(text: str) -> str:
        """Show it to the world."""
        return text

    parent = make_session(SessionOptions())
    rules = PermissionRules(deny=("deploy", "publish"))
    assert parent.child("writer", tools=[publish], rules=rules).rules.rules == rules
    with pytest.raises(ConfigurationError, match="did you mean 'publish'"):
        parent.child("reader", tools=[publish], rules=PermissionRules(deny=("Publis",)))


@pytest.mark.anyio
async def test_what_takes_no_effect_is_told_when_the_session_begins() -> None:
    foreign = {
        "FileChanged": [HOOK],
        "Stop": [{"hooks": [{"type": "mcp_tool", "server": "s", "tool": "t"}]}],
    }
    told: list[str] = []
    session = make_session(SessionOptions(hooks=foreign), "Hello.")
    session.events.on(Noticed, lambda event: told.append(event.message))
    async with session:
        await session.run("hi")
    assert told[:2] == [
        "Hooks for 'FileChanged' never run: this program does not have that event.",
        "The Stop hook 'mcp_tool' (the options) never runs: nothing here can execute the type 'mcp_tool'.",
    ]
    again: list[str] = []
    live = LiveHooks(foreign, common=dict, report=lambda outcome, call_id: None, notice=again.append)
    assert again == told[:2]
    assert live.has("Stop")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (ModelSettings, "ModelSettings has no option 'temprature'; did you mean 'temperature'?"),
        (RunLimits, "RunLimits has no option 'idle_timout'; did you mean 'idle_timeout'?"),
        (AgentConfig, "AgentConfig has no option 'dep'; did you mean 'deps'?"),
        (SessionOptions, "SessionOptions has no option 'permission'; did you mean 'permissions'?"),
        (PermissionRules, "PermissionRules has no option 'alow'; did you mean 'allow'?"),
        (Budget, "Budget has no option 'max_cost'; did you mean 'max_cost_usd'?"),
        (RetryPolicy, "RetryPolicy has no option 'attempt'; did you mean 'max_attempts'?"),
    ],
)
def test_a_misspelt_option_is_named_with_the_one_that_was_meant(make: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        make(**{words.split("'")[1]: 1})
    assert str(caught.value) == words


def test_the_timeout_of_a_tool_is_a_number() -> None:
    mistyped: Any = "5"
    make = tool(timeout=mistyped)
    with pytest.raises(
        ConfigurationError, match="The timeout of tool 'slow' is a number of seconds, not '5'"
    ):
        make(slow)


def slow() -> None:
    """Take a while."""
