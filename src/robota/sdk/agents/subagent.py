"""A session for a subagent: below the one that calls it, with the tools and instructions of its definition;
and the tools of a session that works as an agent itself.

Nothing here reads a file: whoever calls has loaded definitions, instructions and skills before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from robota.core.errors import ConfigurationError, UnknownNameError
from robota.core.given import suggest
from robota.core.permissions.rules import Rule, RuleProblem, check_rules, find_unknown_tool, parse_rule
from robota.core.tool import Tool
from robota.sdk.agents.definition import OTHER_NAMES, AgentDefinition
from robota.sdk.agents.model_choice import choose_model
from robota.sdk.context.instructions import InstructionFile
from robota.sdk.workspace import Workspace
from robota.sessions.journal.event_log import FileSessionLogger
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.store.session_record import check_session_id
from robota.tools.builtins.plan import todo_tool

NOTE_TOOLS = ("Read", "Write", "Edit")
"""Without which nobody keeps notes."""
NEVER = frozenset({"Agent", "robota_command_agent", "EnterPlanMode", "ExitPlanMode"})
"""Subagents start none of their own, and do not change the mode of the session that called them."""

SUFFIX = """\
You are a subagent: another agent gave you this task, and your last message is all that it gets to see. Work
on your own and finish the task. Then report briefly what you did and what you found. Give file paths as
absolute paths, quote code only where the exact text matters, and use no emojis."""

FORK_WORKER_SUFFIX = """\
You are a fork worker: you carry out one task that was split off from a conversation, and your last message
is all that gets back to it. Start no other agents and ask no questions. Do the task with your tools, stay
within what was asked, and answer in under 500 words, in this form and with no emojis:

Scope: what you were asked to do, in one sentence
Result: the answer, or what you did
Key files: absolute paths of the files that matter
Files changed: absolute paths, or none
Issues: what is left open or went wrong, or none"""


class ProjectInstructions(Struct, frozen=True, kw_only=True):
    """What the project says to every agent, as the session that calls has loaded it."""

    claude_md: str = ""
    agents_md: str = ""

    @classmethod
    def of(cls, files: Iterable[InstructionFile]) -> ProjectInstructions:
        texts: dict[bool, list[str]] = {True: [], False: []}
        for file in files:
            texts[file.kind == "agents"].append(file.text)
        return cls(claude_md="\n\n".join(texts[False]), agents_md="\n\n".join(texts[True]))


def assemble_subagent_prompt(
    agent_body: str, *, claude_md: str = "", agents_md: str = "", is_fork_worker: bool = False
) -> str:
    """The system message of a subagent: its own instructions, the project's, and how it is to report."""
    suffix = FORK_WORKER_SUFFIX if is_fork_worker else SUFFIX
    parts = (agent_body, claude_md, agents_md, suffix)
    return "\n\n".join(part.strip() for part in parts if part.strip())


def select_tools(agent: AgentDefinition, tools: Iterable[Tool]) -> list[Tool]:
    """What is denied goes, then only what is allowed stays, then goes what no subagent may have."""
    denied = [rule for rule in _named(agent.disallowed_tools) if rule.pattern is None]
    kept = [tool for tool in tools if not any(rule.names(tool.name) for rule in denied)]
    if agent.tools is not None and "*" not in agent.tools:
        allowed = _named((*agent.tools, *(NOTE_TOOLS if agent.memory else ())))
        kept = [tool for tool in kept if any(rule.names(tool.name) for rule in allowed)]
    return [
        todo_tool() if tool.name == "TodoWrite" else tool  # the list of whoever called is not its own
        for tool in kept
        if tool.name not in NEVER
    ]


def has_server_tool(agent: AgentDefinition, name: str) -> bool:
    """Whether an agent has this tool of a server that it names or brings along: if it lists some of that
    server's tools, only those."""
    if any(rule.names(name) for rule in _named(agent.disallowed_tools) if rule.pattern is None):
        return False
    prefix = "__".join(name.split("__")[:2]) + "__"
    listed = [rule for rule in _named(agent.tools or ()) if rule.tool.startswith(prefix)]
    return not listed or any(rule.names(name) for rule in listed)


def find_main_agent(agents: Mapping[str, AgentDefinition], name: str | None) -> AgentDefinition | None:
    """The agent that the session itself works as."""
    if name is None:
        return None
    if name not in agents:
        raise ConfigurationError(f"There is no agent {name!r}; {suggest(name, agents)}")
    return agents[name]


class ToolChoice:
    """The tools of a session: `names` of built-in tools that were asked for, as far as the agent that it
    works as has them. Those that `deny` rules take away as a whole are not offered."""

    __slots__ = ("_agent", "_denied", "_names")

    def __init__(
        self, names: Collection[str] | None, deny: Iterable[str], agent: AgentDefinition | None
    ) -> None:
        self._names = names
        self._denied = [Rule(rule, rule.strip(), None) for rule in deny if "(" not in rule]
        self._agent = agent

    def pick(self, built_in: list[Tool], others: Iterable[Tool] = ()) -> list[Tool]:
        """Those that there are."""
        tools = [*self._pick_named(built_in), *others]
        return tools if self._agent is None else select_tools(self._agent, tools)

    def hide(self, tools: Iterable[Tool]) -> frozenset[str]:
        """The names of those that are not offered."""
        return frozenset(tool.name for tool in tools if self._denies(tool.name))

    def _pick_named(self, tools: list[Tool]) -> list[Tool]:
        if self._names is None:
            return tools
        known = [tool.name for tool in tools]
        for name in self._names:
            if name not in known and find_unknown_tool(name, ()) is not None:
                raise UnknownNameError(f"There is no built-in tool {name!r}; {suggest(name, known)}")
        wanted = {OTHER_NAMES.get(name, name) for name in self._names}
        return [tool for tool in tools if tool.name in wanted]

    def accepts(self, name: str) -> bool:
        """Whether a tool of a server is offered."""
        return not self._denies(name) and (self._agent is None or has_server_tool(self._agent, name))

    def _denies(self, name: str) -> bool:
        names = (name, "Task") if name == "Agent" else (name,)
        return any(rule.names(each) for rule in self._denied for each in names)


def _named(words: Iterable[str]) -> list[Rule]:
    rules = [parse_rule(word) for word in words]
    return [
        replace(rule, tool=name, text=name + rule.text.strip()[len(rule.tool) :])
        for rule in rules
        if not isinstance(rule, RuleProblem)
        for name in [OTHER_NAMES.get(rule.tool, rule.tool)]
    ]


def restrict(
    agent: AgentDefinition, tools: Sequence[Tool], all_tools: Sequence[Tool]
) -> PermissionRules | None:
    """The rules that the definition adds to those of the session. They can only take away: calls are judged
    by both. A tool that is allowed for some calls only asks about the others. What it denies to a tool that
    it does not have counts too: a file that must not be read must not be searched either."""
    names, known = {tool.name for tool in tools}, {tool.name for tool in all_tools}
    denied = [rule for rule in _named(agent.disallowed_tools) if rule.pattern is not None]
    deny, ask = (
        tuple(rule.text for rule in rules if find_unknown_tool(rule.tool, known) is None)
        for rules in (denied, _named(agent.asked_tools))
    )
    some = [rule for rule in _named(agent.tools or ()) if rule.pattern is not None]
    limited = {name for name in names if any(rule.names(name) for rule in some)}
    if not limited:
        if agent.permission_mode is None and not deny and not ask:
            return None
        return PermissionRules(mode=agent.permission_mode or "bypassPermissions", deny=deny, ask=ask)
    others = () if agent.permission_mode else sorted(names - limited)
    granted = [
        rule.text
        for rule in some
        if any(map(rule.names, names)) and not check_rules((rule.text,), kind="allow")
    ]
    return PermissionRules(
        mode=agent.permission_mode or "default", allow=(*others, *granted), deny=deny, ask=ask
    )


def create_subagent_session(
    parent: Session,
    agent: AgentDefinition,
    *,
    agent_id: str,
    instructions: ProjectInstructions = ProjectInstructions(),  # noqa: B008 - frozen
    skills: str = "",
    model: str = "",
    cwd: str | None = None,
    is_fork_worker: bool = False,
    notice: Callable[[str], object] | None = None,
) -> Session:
    """A child of `parent` that is this agent. It may do at most what its parent may, spends its budget, and
    has a journal of its own. `skills` is the text of those that it has from the start, `model` another one
    than its definition says, `cwd` another working directory, which is then all of its workspace. `notice`
    is told, in the place of the parent's user, when the model is not the one that was wanted."""
    offered = parent.agent.toolset
    tools = select_tools(agent, (tool for name, tool in offered.tools.items() if name not in offered.hidden))
    chosen, problem = choose_model(model or agent.model, parent)
    if problem:
        (notice or parent.log.notice)(f"Subagent {agent.name}: {problem}")
    where = parent.cwd if cwd is None else cwd
    body = f"{agent.system_prompt}\n\nThe working directory is {where}."
    settings = parent.options.settings
    return parent.child(
        agent_id,
        tools=tools,
        system_message=assemble_subagent_prompt(
            f"{body}\n\n{skills}",
            claude_md=instructions.claude_md,
            agents_md=instructions.agents_md,
            is_fork_worker=is_fork_worker,
        ),
        model=chosen if chosen != parent.model else "",
        max_rounds=agent.max_turns or parent.options.max_rounds,
        settings=replace(settings, effort=agent.effort) if agent.effort else settings,
        hooks=agent.hooks,
        agent_type=agent.name,
        cwd=where,
        rules=restrict(agent, tools, parent.agent.tools),
        guard=None if cwd is None else Workspace(cwd, parent.rules),
    )


def create_subagent_logger(parent_session_id: str, agent_id: str, base_logs_dir: str) -> FileSessionLogger:
    """The log of a subagent, in `{base_logs_dir}/{parent_session_id}/subagents/{agent_id}.jsonl`."""
    return FileSessionLogger(f"{base_logs_dir}/{check_session_id(parent_session_id)}/subagents", agent_id)
