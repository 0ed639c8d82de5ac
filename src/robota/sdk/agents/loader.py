"""Finds the agents that users and projects define, each in a Markdown file whose body is its instructions.

What can be used is used, everything else is named in a `Problem`. An agent that cannot be guarded as its file
says is not offered at all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import get_args

from msgspec import Struct, field
from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.given import nearest
from robota.core.hooks.definition import (
    DEFAULT_TIMEOUT,
    HooksConfig,
    claude_timeout,
    parse_hooks,
    read_hooks,
)
from robota.core.messages import Json
from robota.core.permissions.modes import PermissionMode
from robota.core.permissions.rules import KNOWN_ELSEWHERE, Rule, RuleKind, RuleProblem, parse_rule
from robota.core.plain_text import strip_controls
from robota.sdk.agents.definition import BUILT_IN_AGENTS, OTHER_NAMES, AgentDefinition, AgentScope, Memory
from robota.sdk.frontmatter import (
    Document,
    find_key,
    fold_key,
    list_markdown,
    read_document,
    split_words,
)
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.settings.claude_rules import translate_rule
from robota.sdk.settings.hooks import HANDLERS, take_apart
from robota.sdk.skills.skill import Skills

_MODES: Mapping[str, PermissionMode] = {mode: mode for mode in get_args(PermissionMode)}
_MEMORIES: Mapping[str, Memory] = {kind: kind for kind in get_args(Memory) if kind}
_READ = (
    "name", "description", "model", "maxTurns", "tools", "disallowedTools", "permissionMode", "skills",
    "background", "isolation", "effort", "hooks", "memory", "mcpServers",
)  # fmt: skip
_NOT_HERE = {
    "initialPrompt": "it is for an agent that leads a session, and here agents are given tasks",
    "allowedTools": "that is a key of skills, the list of an agent is called `tools`",
}
_SPELLINGS = {fold_key(name): name for name in (*_READ, *_NOT_HERE)}

INLINE = "the agents of this session"
NONE: Mapping[str, Mapping[str, Json]] = {}


class Agents(Struct, frozen=True, kw_only=True):
    """The agents of a session, by name."""

    definitions: Mapping[str, AgentDefinition] = field(default_factory=lambda: dict(BUILT_IN_AGENTS))
    problems: tuple[Problem, ...] = ()


def load_agents(
    places: Places,
    *,
    trusted: bool,
    sources: Collection[str] | None = None,
    inline: Mapping[str, Mapping[str, Json]] = NONE,
    more: Iterable[AgentDefinition] = (),
) -> Agents:
    """The agents that were given `inline`, those of the project, if it is `trusted`, of the user, and the
    built-in ones; the first of a name counts. `sources` are the layers that may be read, as for settings.
    `more` are those of plugins, whose names are nobody else's."""
    problems: list[Problem] = []
    found = _read_inline(inline, places.cwd, problems)
    for home, scope in find_homes(places):
        if (scope == "project" and not trusted) or (sources is not None and scope not in sources):
            continue
        here: dict[str, AgentDefinition] = {}
        for path in list_markdown(home):
            agent = _read_agent(path, scope, places.cwd, problems)
            if agent is None:
                continue
            if agent.name in here:
                first = here[agent.name].source
                what = f"Another file, {first}, has an agent of this name, which counts: rename one of them."
                problems.append(Problem(path, what, find_key(path, "name"), agent.name))
            else:
                here[agent.name] = agent
        found = here | found
    known = {**BUILT_IN_AGENTS, **found, **{agent.name: agent for agent in more}}
    return Agents(definitions=known, problems=tuple(problems))


def _read_inline(
    inline: Mapping[str, Mapping[str, Json]], root: str, problems: list[Problem]
) -> dict[str, AgentDefinition]:
    """Agents of a command line or a program: name to what a file's head would say, and `prompt`."""
    found: dict[str, AgentDefinition] = {}
    for name, given in inline.items():
        fields = {"name": name, **{key: value for key, value in given.items() if key != "prompt"}}
        document = Document(path=INLINE, fields=fields, body=str(given.get("prompt") or ""))
        agent = _Reader(INLINE, root, _with_known_spellings(document), problems).read("user")
        if agent is not None:
            found[agent.name] = agent
    return found


def find_homes(places: Places) -> Iterator[tuple[str, AgentScope]]:
    """Where agents are looked for, in the order in which they count."""
    yield places.project(".robota", "agents"), "project"
    yield places.project(".claude", "agents"), "project"
    yield places.user("agents"), "user"
    yield places.project(".agents", "agents"), "project"
    yield places.claude("agents"), "user"


def _read_agent(path: str, scope: AgentScope, root: str, problems: list[Problem]) -> AgentDefinition | None:
    """The agent of a file; `None` with a problem if it cannot be offered."""
    try:
        document = read_document(path)
    except OSError as error:
        problems.append(Problem(path, f"The file cannot be read ({error.strerror}): the agent is missing."))
        return None
    if document.problem is not None:
        problems.append(tell_unreadable(document.problem))
        return None
    return _Reader(path, root, _with_known_spellings(document), problems).read(scope)


def tell_unreadable(problem: Problem) -> Problem:
    """What cannot be read may have been a guard."""
    name = os.path.splitext(os.path.basename(problem.source))[0]
    return replace(problem, message=f"{problem.message} The agent is not offered.", subject=name)


def _with_known_spellings(document: Document) -> Document:
    """`max-turns` and `max_turns` are `maxTurns`."""
    fields = {_SPELLINGS.get(fold_key(str(key)), str(key)): value for key, value in document.fields.items()}
    return replace(document, fields=fields)


def read_agent_servers(document: Document) -> tuple[tuple[str, ...], dict[str, Json], list[Json]]:
    """The MCP servers that an agent's file names, those that it defines, and what is neither."""
    given = _with_known_spellings(document).fields.get("mcpServers")
    names, own, odd = list[str](), dict[str, Json](), list[Json]()
    for each in given if isinstance(given, list) else [] if given is None else [given]:
        if isinstance(each, str):
            names += split_words(each)
        elif isinstance(each, dict):
            own |= {str(name): value for name, value in each.items()}
        else:
            odd.append(each)
    return tuple(names), own, odd


_NOT_OF_PLUGINS = ("hooks", "mcpServers", "permissionMode")
"""What the agents of plugins cannot have: the plugin itself may, where everybody sees it."""


def read_plugin_agent(
    document: Document, name: str, prefix: str, root: str, problems: list[Problem]
) -> AgentDefinition | None:
    """The agent of a plugin's file, whose name begins with `prefix`; `name` if its file has none."""
    document = _with_known_spellings(document)
    ignored = [key for key in _NOT_OF_PLUGINS if key in document.fields]
    fields = {key: value for key, value in document.fields.items() if key not in ignored}
    known = len(problems)
    document = replace(document, fields={"name": name, **fields})
    agent = _Reader(document.path, root, document, problems, is_plugin=True).read("plugin")
    if agent is None:
        return None
    if ignored:
        listed = " and ".join(f"`{key}`" for key in ignored)
        problems.insert(
            known, Problem(document.path, f"{listed}: agents of plugins have none.", subject=name)
        )
    return replace(agent, name=f"{prefix}{agent.name}")


class _Reader(Struct):
    path: str
    root: str
    """What a leading `/` stands for in the patterns of `.claude` files."""
    document: Document
    problems: list[Problem]
    is_plugin: bool = False

    @property
    def is_claude(self) -> bool:
        return self.is_plugin or f"{os.sep}.claude{os.sep}" in self.path

    def read(self, scope: AgentScope) -> AgentDefinition | None:
        document = self.document
        name = document.text("name") or os.path.splitext(os.path.basename(self.path))[0]
        name = strip_controls(name).strip()
        if reason := self._find_obstacle(name):
            self._tell(f"{reason} The agent is not offered.", name, "name" if ":" in name else "")
            return None
        hooks = self._read_hooks(name)
        if hooks is None:
            return None
        self._check_keys(name)
        model = document.text("model")
        tools, _ = self._read_tools("tools", "allow", name)
        denied, asked = self._read_tools("disallowedTools", "deny", name)
        servers, own_servers, odd = read_agent_servers(document)
        for each in odd:
            self._tell(
                f"`mcpServers` has {each!r}, neither a name nor a definition; it was left out.",
                name,
                "mcpServers",
            )
        return AgentDefinition(
            name=name,
            description=document.text("description"),
            system_prompt=document.body.strip(),
            model="" if model.casefold() == "inherit" else model,
            max_turns=self._read_turns(name),
            tools=tools,
            disallowed_tools=denied or (),
            asked_tools=asked,
            permission_mode=self._read_mode(name),
            skills=document.words("skills") or (),
            background=document.flag("background"),
            isolation="worktree"
            if self._choice("isolation", ("worktree", "none"), name) == "worktree"
            else "none",
            effort=document.text("effort"),
            memory=_MEMORIES.get(self._choice("memory", tuple(_MEMORIES), name), ""),
            hooks=hooks,
            servers=servers,
            own_servers=own_servers,
            source=self.path,
            scope=scope,
        )

    def _tell(self, message: str, subject: str, key: str = "") -> None:
        """`key` of the head is to blame."""
        line = find_key(self.path, key) if key else 0
        self.problems.append(Problem(self.path, message, line, subject))

    def _find_obstacle(self, name: str) -> str:
        is_file = self.path != INLINE
        if not self.document.text("description"):
            where = "`description:` in the head of the file" if is_file else "`description`"
            return f"There is no {where}, by which a model could choose it{self._find_meant('description')}"
        if ":" in name:
            return "Its name has a colon, which belongs to the agents of plugins."
        if self.document.body.strip():
            return ""
        if is_file:
            return "There are no instructions below the head of the file."
        return f"There is no `prompt`, which would be its instructions{self._find_meant('prompt')}"

    def _find_meant(self, key: str) -> str:
        """The end of a sentence about a key that is missing: where it may be misspelt."""
        unknown = (each for each in self.document.fields if each not in (*_READ, *_NOT_HERE))
        misspelt = next((each for each in unknown if nearest(each, (key,), 0.8)), None)
        return f"; did you mean it by `{misspelt}`?" if misspelt else "."

    def _read_hooks(self, name: str) -> HooksConfig | None:
        """`None` if what is written there cannot be used: hooks may be what guards the agent."""
        raw = self.document.fields.get("hooks")
        if raw is None:
            return {}
        timeout = claude_timeout if self.is_claude else DEFAULT_TIMEOUT
        try:
            parse_hooks(raw, source=self.path, default_timeout=timeout)
        except ConfigurationError as error:
            self._tell(f"{error} The agent is not offered.", name, "hooks")
            return None
        hooks, futile = read_hooks(raw, source=self.path, default_timeout=timeout, types=HANDLERS)
        for place, reason in map(take_apart, futile):
            self._tell(f"{place}: {reason}", name, "hooks")
        return hooks

    def _check_keys(self, name: str) -> None:
        fields = self.document.fields
        for key, reason in _NOT_HERE.items():
            if key in fields:
                self._tell(f"`{key}` takes no effect: {reason}.", name, key)
        for key in fields:
            if key not in (*_READ, *_NOT_HERE) and (near := nearest(key, _READ, 0.85)):
                self._tell(f"`{key}` is not known; did you mean `{near}`?", name, key)

    def _read_turns(self, name: str) -> int:
        text = self.document.text("maxTurns")
        if text and not (text.isdecimal() and int(text)):
            self._tell(
                f"`maxTurns` is {text!r}, not a number of at least 1; there is no limit.", name, "maxTurns"
            )
            return 0
        return int(text or 0)

    def _choice(self, key: str, choices: Collection[str], name: str) -> str:
        text = self.document.text(key)
        if text and text not in choices:
            self._tell(
                f"`{key}` is {text!r}, which is not one of {', '.join(choices)}; it was left out.", name, key
            )
            return ""
        return text

    def _read_mode(self, name: str) -> PermissionMode | None:
        """A mode that there is not here may have been meant as a guard: whatever it was, `default` asks."""
        text = self.document.text("permissionMode")
        if not text or text in _MODES:
            return _MODES.get(text)
        self._tell(
            f"`permissionMode` is {text!r}, which is not one of {', '.join(_MODES)}; it is read as default.",
            name,
            "permissionMode",
        )
        return "default"

    def _read_tools(
        self, key: str, kind: RuleKind, name: str
    ) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """Names of tools, with patterns in our words, and the tools to ask about: what cannot be read grants
        nothing, and what it was meant to deny is not allowed unasked."""
        words = self.document.words(key)
        if words is None:
            return None, ()
        read, asked = list[str](), list[str]()
        for word in words:
            rule = parse_rule(word)
            problem = rule.reason if isinstance(rule, RuleProblem) else ""
            if isinstance(rule, Rule) and rule.pattern is not None and self.is_claude:
                translated = translate_rule(rule, kind, self.root)
                problem, given = translated.problem, translated.rules
            else:
                given = () if problem else (word,)
            read += given
            outcome = ""
            if problem and kind == "deny" and not given:
                asked.append(rule.tool or "*")
                outcome = f" Every call{f' of {rule.tool}' if rule.tool else ''} is asked about."
            if problem:
                self._tell(f"`{key}` has {word!r}: {problem.rstrip('.')}.{outcome}", name, key)
        return tuple(read), tuple(asked)


def find_unknown_names(agents: Agents, tools: Collection[str], skills: Skills) -> tuple[Problem, ...]:
    """The tools and skills that agents name and a session with these does not have. Tools of servers may come
    later."""
    return tuple(
        Problem(agent.source, what, find_key(agent.source, key), agent.name)
        for agent in agents.definitions.values()
        if agent.source
        for key, what in _find_unknown_names(agent, tools, skills)
    )


def _find_unknown_names(
    agent: AgentDefinition, tools: Collection[str], skills: Skills
) -> Iterator[tuple[str, str]]:
    for key, words in (("tools", agent.tools or ()), ("disallowedTools", agent.disallowed_tools)):
        for name in dict.fromkeys(word.partition("(")[0] for word in words):
            if wrong := _find_unknown(name, tools):
                yield key, f"It names the tool {name!r}, which has no effect: {wrong}."
    for name in agent.skills:
        if skills.find(name, agent.plugin) is None:
            yield "skills", f"It names the skill {name!r}, which has no effect: there is no such skill here."


def _find_unknown(tool: str, tools: Collection[str]) -> str | None:
    if "__" in tool or "*" in tool or OTHER_NAMES.get(tool, tool) in {*tools, "Agent"}:
        return None
    near = None if tool in KNOWN_ELSEWHERE else nearest(tool, tools)
    return f"there is no such tool, but {near!r}" if near else "there is no such tool here"
