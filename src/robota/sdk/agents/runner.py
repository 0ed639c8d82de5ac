"""The subagents of one session: which there are, what they cost, and the way of a task to its end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field, to_builtins

from robota.core.errors import ModelNotAvailableError, RobotaError
from robota.core.messages import Json, JsonObject
from robota.core.models import find_model_price
from robota.core.run import RunResult
from robota.sdk.agents.definition import BUILT_IN_AGENTS, DEFAULT_AGENT, AgentDefinition, Isolation
from robota.sdk.agents.model_choice import choose_model, describe_fallback
from robota.sdk.agents.subagent import ProjectInstructions, create_subagent_session
from robota.sdk.agents.worktree import Worktree, WorktreeOptions, create_worktree, settle_worktree
from robota.sessions.session import Session

if TYPE_CHECKING:
    from robota.sdk.settings.settings import Settings

SubagentPolicy: TypeAlias = Literal["never", "ask", "auto"]
"""Whether a model may start subagents: not at all, when the user says so, by itself."""
BringServers: TypeAlias = Callable[[AgentDefinition, Session], Awaitable[Sequence[str]]]
"""Gives a subagent's session the servers of its definition; what could not be had, a sentence each."""
MAX_PARALLEL = 4
"""Subagents of one session that work at the same time, unless settings say otherwise; others wait."""


class AgentTask(Struct, frozen=True, kw_only=True):
    """What a subagent is to do."""

    prompt: str
    agent: str = DEFAULT_AGENT
    description: str = ""
    """In a few words, for people."""
    model: str = ""
    isolation: Isolation | None = None
    """`None`: as the definition says."""
    is_fork_worker: bool = False


class SubagentOptions(Struct, frozen=True, kw_only=True):
    """What settings say about subagents."""

    policy: SubagentPolicy = "ask"
    max_parallel: int = MAX_PARALLEL
    worktrees: WorktreeOptions = WorktreeOptions()

    @classmethod
    def of(cls, settings: Settings) -> SubagentOptions:
        base: str = settings.get("worktree.baseRef") or "HEAD"
        worktrees = WorktreeOptions(
            base_ref={"head": "HEAD", "fresh": "origin/HEAD"}.get(base, base),  # another program's words
            symlink_directories=tuple(settings.get("worktree.symlinkDirectories") or ()),
            sparse_paths=tuple(settings.get("worktree.sparsePaths") or ()),
        )
        policy, limit = settings.get("subagents.policy"), settings.get("subagents.maxConcurrent")
        return cls(policy=policy, max_parallel=limit, worktrees=worktrees)


class AgentOutcome(Struct, frozen=True, kw_only=True):
    """How a subagent's work ended."""

    agent_id: str
    success: bool
    output: str = ""
    error: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)


class UnknownAgentError(RobotaError, code="UNKNOWN_AGENT", category="user"):
    """There is no agent of that name."""


class Subagents:
    """Belongs to one session, and is given it by `attach` when that is made: its tools come first."""

    def __init__(
        self,
        agents: Mapping[str, AgentDefinition] = BUILT_IN_AGENTS,
        *,
        instructions: ProjectInstructions = ProjectInstructions(),  # noqa: B008 - frozen
        options: SubagentOptions = SubagentOptions(),  # noqa: B008 - frozen
        read_skills: Callable[[AgentDefinition], str] | None = None,
        read_notes: Callable[[AgentDefinition], str] | None = None,
        bring_servers: BringServers | None = None,
    ) -> None:
        """`read_skills` gives the text of skills that an agent has from the start, `read_notes` what it wrote
        down for itself, `bring_servers` connects its MCP servers to its session."""
        self.agents = agents
        self._instructions = instructions
        self.options = options
        self._read_skills = read_skills
        self._read_notes = read_notes
        self._bring_servers = bring_servers
        self._turn = asyncio.Semaphore(options.max_parallel)
        self._missing: set[str] = set()
        """Models that the provider turned out not to have."""
        self._told: set[str] = set()
        self._session: Session | None = None

    def attach(self, session: Session) -> None:
        self._session = session

    def take(
        self,
        agents: Mapping[str, AgentDefinition],
        instructions: ProjectInstructions,
        options: SubagentOptions,
    ) -> None:
        """Other agents and settings, from the next task on."""
        if options.max_parallel != self.options.max_parallel:
            self._turn = asyncio.Semaphore(options.max_parallel)
        known, self.agents = self.agents, agents
        self._instructions, self.options = instructions, options
        if self._session is not None and known != agents:  # the tool lists them for the model
            agent = self._session.agent
            agent.toolset = agent.toolset.renew(agent.toolset.tools.values())

    @property
    def session(self) -> Session:
        assert self._session is not None, "attach() comes before the first task"
        return self._session

    def find(self, name: str) -> AgentDefinition:
        agent = self.agents.get(name)
        if agent is None:
            raise UnknownAgentError(f"Unknown agent type: {name}. There are {', '.join(self.agents)}.")
        return agent

    async def run(self, task: AgentTask, *, agent_id: str = "") -> AgentOutcome:
        """Take one task to its end. What goes wrong is in the outcome; only an unknown agent raises, and a
        cancellation passes through."""
        agent = self.find(task.agent)
        agent_id = agent_id or self.new_id(agent)
        async with self._turn:
            try:
                return await self._work(agent, task, agent_id)
            except RobotaError as error:
                return AgentOutcome(agent_id=agent_id, success=False, error=str(error))

    def new_id(self, agent: AgentDefinition) -> str:
        """A name for one subagent, which is also that of its journal."""
        slug = re.sub(r"[^A-Za-z0-9_-]+", "-", agent.name).strip("-_")[:40] or "agent"
        return f"{slug}-{self.session.options.ports.new_id().replace('-', '')[:8]}"

    async def _work(self, agent: AgentDefinition, task: AgentTask, agent_id: str) -> AgentOutcome:
        parent, tree = self.session, None
        if (task.isolation or agent.isolation) == "worktree":
            new_id, name = parent.options.ports.new_id, task.description or agent.name
            tree = await create_worktree(parent.cwd, name, parent.hooks, new_id, self.options.worktrees)
        child = self._create(agent, task, agent_id, tree)
        facts: JsonObject = {}
        try:
            async with child:
                if self._bring_servers is not None and (agent.servers or agent.own_servers):
                    for sentence in await self._bring_servers(agent, child):
                        self._tell_once(sentence)
                result = await self._submit(child, task)
                transcript = child.log.path
        finally:
            if tree is not None:
                facts = await settle_worktree(tree, parent.hooks)
        usage: JsonObject = {"usage": to_builtins(result.usage), "rounds": result.rounds}
        return AgentOutcome(
            agent_id=agent_id,
            success=result.success,
            output=result.text,
            error=_explain(result),
            metadata=facts | usage | ({"transcriptPath": transcript} if transcript else {}),
        )

    def _create(
        self, agent: AgentDefinition, task: AgentTask, agent_id: str, tree: Worktree | None
    ) -> Session:
        skills = "" if self._read_skills is None or not agent.skills else self._read_skills(agent)
        notes = "" if self._read_notes is None else self._read_notes(agent)
        wanted = task.model or agent.model
        return create_subagent_session(
            self.session,
            agent,
            agent_id=agent_id,
            instructions=self._instructions,
            skills=f"{skills}\n\n{notes}",
            model=self.session.model if wanted in self._missing else task.model,
            cwd=None if tree is None else tree.cwd,
            is_fork_worker=task.is_fork_worker,
            notice=self._tell_once,
        )

    def _tell_once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.session.log.notice(sentence)

    async def _submit(self, child: Session, task: AgentTask) -> RunResult:
        result = await child.submit(task.prompt)
        own = self.session.model
        if not isinstance(result.error, ModelNotAvailableError) or child.model == own or result.rounds > 1:
            return result
        self._missing.add(task.model or self.find(task.agent).model)
        self.session.log.notice(f"Subagent {task.agent}: {describe_fallback(child.model, self.session)}")
        child.clear_history()
        child.set_model(own)
        return await child.submit(task.prompt)

    # --- what it costs --------------------------------------------------------------------------------

    def describe_cost(self, task: AgentTask) -> str:
        """What whoever is asked about a subagent should know: its model, its price, what was spent so far."""
        agent = self.find(task.agent)
        wanted = task.model or agent.model
        model, _ = choose_model("" if wanted in self._missing else wanted, self.session)
        price = find_model_price(model) if model else None
        costs = f" (${price.input:g} and ${price.output:g} per million tokens in and out)" if price else ""
        spent = self.session.usage.book.report().agents
        if not spent:
            before = "No subagent has worked in this session yet."
        else:
            tokens = sum(each.input_tokens + each.output_tokens for each in spent)
            dollars = sum(each.cost_usd or 0 for each in spent)
            money = f", ${dollars:.2f}" if dollars else ""
            before = f"Subagents used so far in this session: {len(spent)}, with {tokens:,} tokens{money}."
        return f"Subagent {agent.name} would work with {model or 'the default model'}{costs}. {before}"


def _explain(result: RunResult) -> str:
    if result.success:
        return ""
    return "it was stopped before it was done" if result.error is None else str(result.error)
