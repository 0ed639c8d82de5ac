"""Who works when: one after the other, all at once, whoever is asked next, in turns, or under a leader.

Each function takes members and a task, asks them within common limits, and tells what everybody said. When a
member is stopped, or the caller is cancelled, all are.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.messages import TokenUsage
from robota.sdk.team.members import Answer, Member, ask

Ending: TypeAlias = Literal["done", "limit", "interrupted", "error"]


class TeamLimits(Struct, frozen=True, kw_only=True):
    """What all members together may use; 0 for no limit."""

    max_turns: int = 0
    max_tokens: int = 0


class TeamTurn(Struct, frozen=True):
    """What one member was asked and said."""

    member: str
    prompt: str
    text: str
    error: Exception | None = None
    interrupted: bool = False
    usage: TokenUsage = TokenUsage()


class TeamResult(Struct, frozen=True):
    """What came of it: the last word, who said what, and why it ended."""

    text: str
    turns: tuple[TeamTurn, ...]
    ending: Ending = "done"
    error: Exception | None = None

    @property
    def success(self) -> bool:
        return self.ending == "done"

    @property
    def tokens(self) -> int:
        return sum(turn.usage.input_tokens + turn.usage.output_tokens for turn in self.turns)


Members: TypeAlias = Mapping[str, Member] | Sequence[Member]


class _Stopped(Exception):
    """No further turn."""

    def __init__(self, ending: Ending, error: Exception | None = None) -> None:
        super().__init__(ending)
        self.ending: Ending = ending
        self.error = error


class _Table:
    """What has been said so far, and what may still be used."""

    def __init__(self, members: Members, limits: TeamLimits) -> None:
        if isinstance(members, Mapping):
            self.members = dict(members)
        else:
            self.members = {f"agent-{number}": each for number, each in enumerate(members, 1)}
        if not self.members:
            raise ConfigurationError("A team needs at least one member.")
        self._limits = limits
        self.turns: list[TeamTurn] = []
        self._begun = 0

    async def ask(self, name: str, prompt: str) -> str:
        """One turn; raises `_Stopped` when it cannot be taken, fails or is stopped."""
        limits = self._limits
        used = sum(turn.usage.input_tokens + turn.usage.output_tokens for turn in self.turns)
        if limits.max_turns and self._begun >= limits.max_turns:
            raise _Stopped("limit")
        if limits.max_tokens and used >= limits.max_tokens:
            raise _Stopped("limit")
        self._begun += 1
        answer: Answer = await ask(self.members[name], prompt)
        self.turns.append(TeamTurn(name, prompt, answer.text, answer.error, answer.interrupted, answer.usage))
        if answer.interrupted:
            raise _Stopped("interrupted")
        if answer.error is not None:
            raise _Stopped("error", answer.error)
        return answer.text

    async def ask_all(self, prompts: Mapping[str, str]) -> dict[str, str]:
        """Turns at the same time. One that is stopped or fails stops the others."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {name: group.create_task(self.ask(name, prompt)) for name, prompt in prompts.items()}
        except* _Stopped as stops:
            raise _first(stops) from None
        return {name: task.result() for name, task in tasks.items()}

    def result(self, text: str, stop: _Stopped | None = None) -> TeamResult:
        if stop is None:
            return TeamResult(text, tuple(self.turns))
        return TeamResult(text, tuple(self.turns), stop.ending, stop.error)

    @property
    def last(self) -> str:
        return self.turns[-1].text if self.turns else ""


def _first(group: BaseExceptionGroup[_Stopped]) -> _Stopped:
    """One stop of several; that somebody stopped it counts more than what failed thereby."""
    stops = [each for each in group.exceptions if isinstance(each, _Stopped)]
    return next((each for each in stops if each.ending == "interrupted"), stops[0])


NO_LIMITS = TeamLimits()


async def run_sequential(members: Members, task: str, *, limits: TeamLimits = NO_LIMITS) -> TeamResult:
    """One after the other, each with the task and what the one before made of it."""
    table = _Table(members, limits)
    before = ""
    try:
        for name in table.members:
            prompt = f"{task}\n\nThis is what the one before you made of it:\n\n{before}" if before else task
            before = await table.ask(name, prompt)
    except _Stopped as stop:
        return table.result(table.last, stop)
    return table.result(before)


async def run_parallel(
    members: Members, task: str, *, combine: Member | None = None, limits: TeamLimits = NO_LIMITS
) -> TeamResult:
    """All at once on the same task; `combine` makes one answer of theirs, else they are listed."""
    table = _Table(members, limits)
    try:
        answers = await table.ask_all(dict.fromkeys(table.members, task))
        joined = "\n\n".join(f"{name}:\n{text}" for name, text in answers.items())
        if combine is None:
            return table.result(joined)
        table.members["combine"] = combine
        prompt = f"{task}\n\nThese are the answers of several agents. Make one of them.\n\n{joined}"
        return table.result(await table.ask("combine", prompt))
    except _Stopped as stop:
        return table.result(table.last, stop)


_HAND_OFF = re.compile(r"\A\s*HANDOFF[ \t]+([^\s:]+)[ \t]*:?(.*)\Z", re.DOTALL)


async def run_hand_off(
    members: Mapping[str, Member],
    task: str,
    *,
    start: str = "",
    max_hops: int = 10,
    limits: TeamLimits = NO_LIMITS,
) -> TeamResult:
    """One works until it answers `HANDOFF name: words`; then the named one goes on with these words."""
    table = _Table(members, limits)
    name = start or next(iter(table.members))
    if name not in table.members:
        raise ConfigurationError(f"There is no member {name!r}; there are {', '.join(table.members)}.")
    words = task
    try:
        for _ in range(max_hops + 1):
            others = ", ".join(each for each in table.members if each != name)
            rule = f"If somebody else should do this, answer only: HANDOFF name: words. There are {others}."
            said = await table.ask(name, f"{words}\n\n{rule}" if others else words)
            found = _HAND_OFF.match(said)
            if found is None or found[1] not in table.members:
                return table.result(said)
            name, words = found[1], f"{task}\n\n{found[2].strip()}".strip()
    except _Stopped as stop:
        return table.result(table.last, stop)
    return table.result(table.last, _Stopped("limit"))


Choose: TypeAlias = Callable[[Sequence[TeamTurn], Sequence[str]], str | None]
"""Who speaks next, by what was said and who is there; `None` ends the conversation."""


def in_turns(rounds: int) -> Choose:
    """Everybody speaks so many times, in order."""

    def choose(turns: Sequence[TeamTurn], names: Sequence[str]) -> str | None:
        return None if len(turns) >= rounds * len(names) else names[len(turns) % len(names)]

    return choose


async def run_group_chat(
    members: Mapping[str, Member],
    task: str,
    *,
    rounds: int = 1,
    choose: Choose | None = None,
    limits: TeamLimits = NO_LIMITS,
) -> TeamResult:
    """They speak in turns, or as `choose` says; each hears what was said since it spoke last."""
    table = _Table(members, limits)
    chooser = choose or in_turns(rounds)
    names, heard = tuple(table.members), dict.fromkeys(table.members, 0)
    try:
        while (name := chooser(tuple(table.turns), names)) is not None:
            if name not in table.members:
                raise ConfigurationError(f"There is no member {name!r}; there are {', '.join(names)}.")
            news = table.turns[heard[name] :]
            said = "\n\n".join(f"{turn.member}: {turn.text}" for turn in news if turn.member != name)
            first = not any(turn.member == name for turn in table.turns)
            parts = [task if first else "", said, f"You are {name}. Say what you have to say."]
            await table.ask(name, "\n\n".join(part for part in parts if part))
            heard[name] = len(table.turns)
    except _Stopped as stop:
        return table.result(table.last, stop)
    return table.result(table.last)


async def run_hierarchical(
    leader: Member, workers: Mapping[str, Member], task: str, *, limits: TeamLimits = NO_LIMITS
) -> TeamResult:
    """The leader says who does what, one line `name: task` each; they do it at once, and it sums up."""
    table = _Table({"leader": leader, **workers}, limits)
    names = ", ".join(workers)
    try:
        plan = await table.ask(
            "leader", f"{task}\n\nSay who does what, one line each: `name: task`. There are {names}."
        )
        parts = {name.strip(" -*`"): words.strip() for name, _, words in _lines(plan)}
        chosen = {name: words for name, words in parts.items() if name in workers and words}
        if not chosen:
            return table.result(plan)  # it has answered by itself
        answers = await table.ask_all(chosen)
        joined = "\n\n".join(f"{name}:\n{text}" for name, text in answers.items())
        return table.result(await table.ask("leader", f"These are the results. Sum up.\n\n{joined}"))
    except _Stopped as stop:
        return table.result(table.last, stop)


def _lines(text: str) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in text.splitlines()]
