"""The skills of one session at work: what a call of one is made of, and what it changes for a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from robota.core.errors import AbortError, ConfigurationError
from robota.core.events import Event, RunCompleted, RunFailed, RunInterrupted
from robota.core.messages import HistoryEntry, JsonObject, Prompt
from robota.core.tool import CallRules
from robota.sdk.commands.effects import CommandResult, SubmitPrompt
from robota.sdk.problems import Problem
from robota.sdk.skills.grants import read_grants
from robota.sdk.skills.loader import load_skills
from robota.sdk.skills.render import NO_SHELL, Surroundings, make_prompt, render_skill
from robota.sdk.skills.shell import SkillShell
from robota.sdk.skills.skill import Skill, SkillError, Skills, stamp_of
from robota.sessions.hooks import LiveHooks
from robota.sessions.options import SubmitOptions
from robota.sessions.permissions.live_rules import NO_LOAN, Loan

if TYPE_CHECKING:
    from robota.sdk.places import Places
    from robota.sessions.session import Session

INVOCATION = "skill-invocation"
MAX_STACKED = 6
"""Skills that one line may call."""
Fork: TypeAlias = Callable[[Skill, str], Awaitable[str]]
"""Has a subagent carry out the instructions of a skill, and gives its report."""
NO_SKILL: AbstractContextManager[None] = nullcontext()
_ENDS = (RunCompleted, RunInterrupted, RunFailed)


class PreparedSkill(Struct, frozen=True, kw_only=True):
    """A skill whose prompt is made and not submitted yet."""

    skill: Skill
    shown: str
    loan: Loan
    commands: tuple[JsonObject, ...] = ()
    """What its inline commands were, and who let them run."""


class SkillCalls:
    """Belongs to one session, and is given it by `attach` when that is made: its tools come first."""

    def __init__(self, skills: Skills, places: Places, *, fork: Fork | None = None) -> None:
        """`fork` runs skills with `context: fork`."""
        self.skills = skills
        """May be replaced at any time."""
        self.reload: Callable[[], Awaitable[None]] = self._reload
        """Reads the files again; whoever knows more of the project puts its own here."""
        self._places = places
        self.runs_commands = True
        """Whether the commands in skills are run at all."""
        self._fork = fork
        self._session: Session | None = None
        self._prepared: dict[str, tuple[PreparedSkill, ...]] = {}
        self._hooked: set[str] = set()

    def attach(self, session: Session) -> None:
        self._session = session
        for end in _ENDS:
            session.events.on(end, self._end_turn)

    @property
    def session(self) -> Session:
        assert self._session is not None, "attach() comes before the first call"
        return self._session

    async def _reload(self) -> None:
        self.skills = await to_thread.run_sync(load_skills, self._places)

    def _end_turn(self, event: Event) -> None:
        self.session.rules.lent = NO_LOAN

    # --- a person calls -------------------------------------------------------------------------------

    async def call(self, skill: Skill, args: str) -> CommandResult:
        """What a skill comes to when a person calls it: a prompt, or the report of a subagent. Others may
        follow its name (`/review /brief src`): then the model gets all of them."""
        agent, answers = self.session.agent, list[tuple[str, PreparedSkill]]()
        stacked, args = self._unstack(skill, args)
        shown = " ".join(filter(None, (*(f"/{each.name}" for each in stacked), args)))

        async def work() -> None:
            for each in stacked:
                answers.append(await self._answer(each, args, shown))

        if agent.is_running:  # a turn is under way, and `abort` means that one
            await work()
        elif await agent.perform(work()):
            raise AbortError(f"The skill {skill.name!r} was stopped; nothing was sent.")
        text, prepared = answers[0]
        if not prepared.skill.forks:
            text = "\n\n".join(words for words, _ in answers)
            self._prepared[text] = tuple(each for _, each in answers)
            return CommandResult("", effect=SubmitPrompt(text, display_input=shown, raw_input=shown))
        self._note(prepared)
        self.session.inject_message("user", shown)
        self.session.inject_message("assistant", text)
        return CommandResult(text)

    def _unstack(self, skill: Skill, args: str) -> tuple[list[Skill], str]:
        """The skills at the start of a line, and what stands behind them."""
        found = [skill]
        while len(found) < MAX_STACKED and args.startswith("/") and not skill.forks:
            word, _, rest = args.partition(" ")
            other = self.skills.find(word)
            if other is None or other.forks or not other.for_user or other in found:
                break
            found.append(other)
            args = rest.strip()
        return found, args

    async def _answer(self, skill: Skill, args: str, shown: str) -> tuple[str, PreparedSkill]:
        """The prompt, or the report of a subagent."""
        skill = await self._look_again(skill)
        await self.session.open()
        text, prepared = await self._render(skill, args, shown)
        if not skill.forks:
            return make_prompt(skill, text, args), prepared
        self._lend(skill, prepared.loan)
        try:
            return await self._run_fork(skill, text or skill.description), prepared
        finally:
            self.session.rules.lent = NO_LOAN

    def turn(self, prompt: Prompt, options: SubmitOptions) -> AbstractContextManager[Skill | None]:
        """Around the turn of a prompt: what its skill wants for that turn, if it came from one."""
        prepared = self._prepared.pop(prompt, ()) if isinstance(prompt, str) else ()
        return self._take_turn(prepared, options) if prepared else NO_SKILL

    @contextmanager
    def _take_turn(
        self, prepared: Sequence[PreparedSkill], options: SubmitOptions
    ) -> Generator[Skill, None, None]:
        session, skill, before = self.session, prepared[0].skill, self.session.model
        for each in prepared:
            self._note(each)
            self._lend(each.skill, each.loan)
        skills = [each.skill for each in prepared]
        chosen = self._choose_model(next((each for each in skills if each.model), skill))
        if chosen != before:
            session.set_model(chosen)
        if effort := next((each.effort for each in skills if each.effort), ""):
            settings = options.get("settings") or session.options.settings
            options["settings"] = replace(settings, effort=effort)
        if turns := max(each.max_turns for each in skills):
            options["max_rounds"] = options.get("max_rounds") or turns
        try:
            yield skill
        finally:
            session.rules.lent = NO_LOAN
            if chosen != before and session.model == chosen:
                session.set_model(before)

    def _note(self, prepared: PreparedSkill) -> None:
        data: JsonObject = {"skillName": prepared.skill.name, "displayInput": prepared.shown}
        if prepared.commands:
            data["commands"] = list(prepared.commands)
        self.session.add_history_entry(HistoryEntry(category="event", type=INVOCATION, data=data))

    # --- a model calls --------------------------------------------------------------------------------

    async def use(self, name: str, args: str, rules: CallRules | None = None) -> str:
        """The instructions of a skill for the model that asked, or what a subagent made of them. `rules` are
        those of whoever calls, by which a subagent is known: it has less than the session, in all of this."""
        caller = self._find_caller(rules)
        skill = await self._look_again(self.skills.require(name))
        if not skill.for_model:
            raise SkillError(
                f"The skill {skill.name!r} is for the user to call: ask them to type /{skill.name}."
            )
        if skill.forks and caller is not self.session:
            raise SkillError(f"The skill {skill.name!r} needs a subagent, and subagents start none.")
        text, prepared = await self._render(skill, args, "", caller)
        self._lend(skill, prepared.loan, caller)
        if skill.forks:
            return await self._run_fork(skill, text or skill.description)
        return make_prompt(skill, text, args)

    def _find_caller(self, rules: CallRules | None) -> Session:
        session = self.session
        known: list[Session] = [session, *session.resources.children.values()]  # type: ignore[list-item]
        for each in known:
            if rules is None or each.rules is rules:
                return each
        raise SkillError("Only the session and its subagents can use skills.")

    def preload(self, names: Iterable[str], plugin: str = "") -> str:
        """Skills that an agent, maybe of a plugin, has from the start: their texts as they are written,
        nothing is run."""
        texts = []
        for name in names:
            try:
                skill = self.skills.require(name, plugin)
                texts.append(make_prompt(skill, skill.read_body().strip(), "when it fits the task"))
            except SkillError as error:
                self.session.log.notice(str(error))
        return "\n\n".join(texts)

    # --- both -----------------------------------------------------------------------------------------

    async def _look_again(self, skill: Skill) -> Skill:
        """The skill as its file is now: what it may do, and whether it is trusted, may have changed."""
        if skill.stamp == stamp_of(skill.path):
            return skill
        await self.reload()
        return self.skills.require(skill.name)

    async def _render(
        self, skill: Skill, args: str, shown: str, caller: Session | None = None
    ) -> tuple[str, PreparedSkill]:
        """`caller` is the session whose model asked; without it a person did."""
        session = caller or self.session
        surroundings = Surroundings(
            session_id=session.session_id,
            project=self._places.cwd,
            home=self._places.home,
            model=session.model,
            effort=skill.effort or session.options.settings.effort or "",
        )
        loan, problems = read_grants(skill, self._root(skill), surroundings.variables(skill))
        self._tell(problems)
        shell = SkillShell(session, skill, loan, asks=caller is None)
        text = await render_skill(skill, args, surroundings, shell.run if self.runs_commands else _refuse)
        prepared = PreparedSkill(skill=skill, shown=shown, loan=loan, commands=tuple(shell.decisions))
        return text, prepared

    def _root(self, skill: Skill) -> str:
        of_project = skill.in_project or skill.plugin
        return self._places.cwd if of_project else self._places.claude_home

    def _lend(self, skill: Skill, loan: Loan, caller: Session | None = None) -> None:
        (caller or self.session).rules.lend(*loan)
        if skill.hooks and skill.path not in self._hooked:
            self._hooked.add(skill.path)
            self._add_hooks(skill)

    def _add_hooks(self, skill: Skill) -> None:
        """From now on, till the end of the session."""
        from robota.core.hooks.definition import (  # noqa: PLC0415 - few skills have hooks
            DEFAULT_TIMEOUT,
            claude_timeout,
            read_hooks,
        )
        from robota.sdk.settings.hooks import HANDLERS  # noqa: PLC0415 - likewise

        hooks = self.session.hooks
        timeout = DEFAULT_TIMEOUT if skill.dialect == "robota" else claude_timeout
        config, _ = read_hooks(  # what is wrong with others was told when the skill was found
            dict(skill.hooks), source=skill.path, default_timeout=timeout, types=HANDLERS
        )
        if isinstance(hooks, LiveHooks) and config:
            try:
                hooks.add(config)
            except ConfigurationError as error:
                self._tell([Problem(skill.path, f"Its hooks were left out: {error}", subject=skill.name)])

    async def _run_fork(self, skill: Skill, text: str) -> str:
        if self._fork is None:
            raise SkillError(f"The skill {skill.name!r} needs a subagent, and this session has none.")
        return await self._fork(skill, text)

    def _choose_model(self, skill: Skill) -> str:
        from robota.sdk.agents.model_choice import choose_model  # noqa: PLC0415 - few skills name a model

        chosen, notice = choose_model(skill.model, self.session)
        self.session.log.notice(notice and f"Skill {skill.name}: {notice}")
        return chosen

    def _tell(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.session.log.notice(str(problem))


async def _refuse(command: str) -> str:
    return NO_SHELL
