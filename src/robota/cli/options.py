"""What a command line asks for, read and checked: everything that is wrong is said before anything starts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.cli.flags import FOR_PROGRAMS, Parsed, UsageError
from robota.core.messages import Json, JsonObject

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
InputFormat: TypeAlias = Literal["text", "stream-json"]

PIPED_BYTES = 8 << 20
"""What is piped in at most; the largest windows hold less."""
FILE_BYTES = 1 << 20
"""Of a file that an option names."""
LEAST_WINDOW = 1000
SOURCES = ("user", "project", "local")
_MODE_OPTIONS = {
    "dry_run": ("--dry-run", "plan"),
    "bypass": ("--dangerously-skip-permissions", "bypassPermissions"),
}


class Options(Struct, frozen=True, kw_only=True):
    """One call of the command. What nobody asked for is `None`, or empty."""

    prompt: str = ""
    print_mode: bool = False
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"
    partial_messages: bool = False
    hook_events: bool = False
    replay_user_messages: bool = False
    verbose: bool = False
    json_schema: JsonObject | None = None
    max_turns: int = 0
    max_budget_usd: float | None = None
    no_tui: bool = False

    continue_last: bool = False
    resume: str | None = None
    """An id or a name; empty for the picker."""
    fork: bool = False
    name: str | None = None
    session_id: str | None = None
    no_save: bool = False
    worktree: str | None = None
    """What to call a worktree of its own; empty for any name."""
    attach: str | None = None
    """The address of a host of sessions; empty for the one on this machine."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    effort: str | None = None
    language: str | None = None
    context_window: int | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None

    mode: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    permission_prompt_tool: str | None = None
    trust: bool = False
    add_dirs: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    sandbox: str | None = None
    auto_allow: bool = False

    settings: str = ""
    """JSON, or the path of a file."""
    setting_sources: tuple[str, ...] | None = None
    agents: Mapping[str, JsonObject] = {}
    agent: str | None = None
    servers: Mapping[str, Json] = {}
    """MCP servers, as `.mcp.json` has them."""
    strict_mcp: bool = False
    session_mirror: bool = False
    resume_at: str | None = None
    resume_drops: str | None = None
    without_effect: tuple[str, ...] = ()
    """Options of a program that change nothing, each in a sentence."""
    reset: bool = False
    yes: bool = False
    debug: bool | str = False
    """Or the file to write to."""

    typed: frozenset[str] = frozenset()
    """Names of options that stand on the command line, so that they are not from the environment."""

    @property
    def is_driven(self) -> bool:
        """Whether a program speaks to us on standard input."""
        return self.input_format == "stream-json"

    @property
    def may_ask_who_answers(self) -> bool:
        """Whether somebody is there who could be asked, and has not said."""
        said = self.provider or self.model or self.base_url or self.continue_last or self.resume is not None
        said = said or self.attach is not None
        return not (self.print_mode or self.is_driven or said) and sys.stdin.isatty()


def read_options(parsed: Parsed, environment: Mapping[str, str]) -> Options:
    """The options of a command line and of the variables that stand for some of them."""
    values = dict(parsed.values)
    typed = frozenset(values)
    for name in ("provider", "model", "base_url"):
        if variable := environment.get(f"ROBOTA_{name.upper()}"):
            values.setdefault(name, variable)
    reading = Reading(values)
    _check_together(reading)
    return Options(
        **{name: value for name, value in values.items() if name in _AS_THEY_ARE},  # type: ignore[arg-type]
        debug=reading.text("debug_file") or "debug" in values or "debug_to_stderr" in values,
        permission_prompt_tool=None
        if values.get("permission_prompts") == "none"
        else reading.text("permission_prompt_tool"),
        name=" ".join((reading.text("name") or "").split()) or None,  # in one line, as /rename has it
        max_turns=reading.whole_number("max_turns", 0) or 0,
        context_window=reading.whole_number("context_window", LEAST_WINDOW),
        max_budget_usd=reading.number("max_budget_usd"),
        json_schema=reading.schema(),
        session_id=reading.uuid("session_id"),
        system_prompt=reading.text_or_file("system_prompt"),
        append_system_prompt=reading.text_or_file("append_system_prompt"),
        mode=reading.mode(),
        allow=reading.rules("allow"),
        deny=reading.rules("deny"),
        tools=reading.tools(),
        add_dirs=reading.directories("add_dirs", "--add-dir"),
        plugin_dirs=reading.directories("plugin_dirs", "--plugin-dir"),
        pass_env=reading.variables(),
        settings=reading.settings(),
        setting_sources=reading.sources(),
        agents=reading.agents(),
        servers=reading.servers(),
        without_effect=tuple(
            f"{flag.name} takes no effect: {flag.refusal}."
            for flag in FOR_PROGRAMS
            if flag.refusal and flag.key in values
        ),
        typed=typed,
    )


_AS_THEY_ARE = frozenset((
    "print_mode", "output_format", "input_format", "partial_messages", "hook_events", "replay_user_messages",
    "verbose", "no_tui", "continue_last", "resume", "fork", "no_save", "worktree", "attach",
    "provider",
    "model", "base_url", "effort", "language", "trust", "sandbox", "auto_allow",
    "session_mirror", "resume_at", "resume_drops", "reset", "yes", "agent",
))  # fmt: skip


def add_prompt(options: Options, words: list[str]) -> str:
    """The prompt: what is piped in comes before the words of the command line."""
    if options.is_driven:
        if "".join(words).strip():  # some hosts give a switch an empty value, which is a word of its own
            raise UsageError("With --input-format stream-json prompts come on standard input: leave it out.")
        return ""
    prompt = "".join(words)
    if options.no_tui and not options.print_mode:
        return prompt  # line mode takes prompts from a pipe one by one, as it does from a terminal
    if not sys.stdin.isatty():
        piped = _read_bounded()
        prompt = f"{piped.rstrip()}\n\n{prompt}" if piped.strip() and prompt else prompt or piped
    if options.print_mode and not prompt.strip():
        raise UsageError('Nothing to do: give a prompt, as in robota -p "list the python files".')
    if not options.print_mode and not sys.stdin.isatty():
        raise UsageError("This is not a terminal: use robota -p PROMPT to run one prompt.")
    return prompt


def _read_bounded() -> str:
    data = sys.stdin.buffer.read(PIPED_BYTES + 1)
    if len(data) > PIPED_BYTES:
        raise UsageError(
            f"More than {PIPED_BYTES >> 20} MB were piped in, which no model can read: pass a part of it, or "
            "name the file in the prompt."
        )
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


class Reading:
    """Values as they were typed, made into what they mean."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, bool | str | tuple[str, ...]]) -> None:
        self.values = values

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, ())
        return value if isinstance(value, tuple) else ()

    def whole_number(self, key: str, least: int) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise UsageError(f"{_option(key)} takes a whole number of at least {least}, not {text!r}.")
        return number

    def number(self, key: str) -> float | None:
        text = self.text(key)
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise UsageError(f"{_option(key)} takes a number of at least 0, such as 2.50, not {text!r}.")
        return number

    def uuid(self, key: str) -> str | None:
        text = self.text(key)
        if text is None:
            return None
        from uuid import UUID  # noqa: PLC0415 - few name their sessions

        try:
            return str(UUID(text))
        except ValueError as error:
            raise UsageError(
                f"{_option(key)} takes a UUID, such as 0b7e1c9a-55d1-4f6e-9a53-2f0c1f7d8e11, not {text!r}."
            ) from error

    def text_or_file(self, key: str) -> str | None:
        path = self.text(f"{key}_file")
        if path is None:
            return self.text(key)
        if key in self.values:
            raise UsageError(f"{_option(key)} and {_option(key)}-file say the same: leave one of them out.")
        return _read_file(path, f"{_option(key)}-file")

    def rules(self, kind: Literal["allow", "deny"]) -> tuple[str, ...]:
        """Those of the repeatable option and those of lists; wrong ones are wrong before anything starts."""
        rules = self.texts(kind)
        if listed := self.texts(f"{kind}_list"):
            from robota.sdk.frontmatter import split_words  # noqa: PLC0415 - for programs

            rules = (*rules, *(word for text in listed for word in split_words(text)))
        if rules:
            check_rule_texts(rules, kind, whole=not self.is_driven)
        return rules

    @property
    def is_driven(self) -> bool:
        return self.values.get("input_format") == "stream-json"

    def mode(self) -> str | None:
        """By its name, or by an option that stands for one."""
        named = self.text("mode")
        for key, (option, mode) in _MODE_OPTIONS.items():
            if key in self.values and named not in (None, mode):
                raise UsageError(
                    f"{option} is the mode {mode}, and --permission-mode says {named}: leave one out."
                )
            named = mode if key in self.values else named
        return named

    def tools(self) -> tuple[str, ...] | None:
        text = self.text("tools")
        if text is None or text.strip() == "default":
            return None
        return tuple(name for name in text.replace(",", " ").split())

    def sources(self) -> tuple[str, ...] | None:
        text = self.text("setting_sources")
        if text is None:
            return () if "bare" in self.values else None
        sources = tuple(text.replace(",", " ").split())
        for source in sources:
            if source not in SOURCES:
                raise UsageError(f"--setting-sources takes some of {', '.join(SOURCES)}, not {source!r}.")
        return sources

    def directories(self, key: str, flag: str) -> tuple[str, ...]:
        found = tuple(os.path.abspath(os.path.expanduser(path)) for path in self.texts(key))
        for given, path in zip(self.texts(key), found, strict=True):
            if not os.path.isdir(path):
                raise UsageError(f"{flag} {given} is no directory: create it or name another.")
        return found

    def variables(self) -> tuple[str, ...]:
        for name in self.texts("pass_env"):
            if "=" in name:  # what stands behind it is a secret
                meant = name.partition("=")[0] or "GITHUB_TOKEN"
                raise UsageError(
                    f"--pass-env takes the name of a variable, such as {meant}, without a value."
                )
        return self.texts("pass_env")

    def settings(self) -> str:
        """The text, if it is JSON or the name of a file with some. A session may work in another directory
        than the one where this was written."""
        text = self.text("settings") or ""
        if text:
            from robota.core.errors import ConfigurationError  # noqa: PLC0415 - for those who give some
            from robota.sdk.settings.layers import is_json, read_given  # noqa: PLC0415

            try:
                read_given(text, os.getcwd())
            except ConfigurationError as error:
                raise UsageError(str(error)) from error
            if not is_json(text):
                return os.path.abspath(os.path.expanduser(text))
        return text

    def schema(self) -> JsonObject | None:
        schema = self.json("json_schema")
        if schema is not None:
            from robota.core.structured import find_schema_problem  # noqa: PLC0415 - likewise

            if why := find_schema_problem(schema):
                raise UsageError(f"--json-schema is not a JSON schema: {why}.")
        return schema

    def agents(self) -> Mapping[str, JsonObject]:
        agents = self.json("agents") or {}
        for name, agent in agents.items():
            if not isinstance(agent, dict) or not agent.get("description") or not agent.get("prompt"):
                raise UsageError(
                    f"--agents takes objects with description and prompt, which {name!r} is not: "
                    '{"reviewer": {"description": "Reviews code", "prompt": "You …"}}.'
                )
        return agents

    def servers(self) -> Mapping[str, Json]:
        """MCP servers by name; where two have the same, the later counts."""
        found: dict[str, Json] = {}
        for text in self.texts("mcp_config"):
            config = read_object(text, "--mcp-config")
            servers = config.get("mcpServers", config)
            if not isinstance(servers, dict) or not all(isinstance(each, dict) for each in servers.values()):
                raise UsageError(
                    '--mcp-config takes {"mcpServers": {"name": {"command": "…"}}} or a file that has it.'
                )
            found |= servers
        return found

    def json(self, key: str) -> JsonObject | None:
        text = self.text(key)
        return None if text is None else read_object(text, _option(key))


def read_object(text: str, option: str) -> JsonObject:
    """A JSON object, or the one in the file that is named."""
    import msgspec  # noqa: PLC0415 - its JSON reader

    source = ""
    if not text.lstrip().startswith(("{", "[", '"')):
        source, text = f" in {text}", _read_file(text, option)
    try:
        value: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{option} is not JSON{source}: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{option} takes a JSON object, such as {{…}}, not {text.strip()[:40]!r}.")
    return value


def check_rule_texts(rules: tuple[str, ...], kind: Literal["allow", "deny"], *, whole: bool = True) -> None:
    """The `whole` of a rule has to be right, with the name of a tool there is; programs, which bring lists
    from elsewhere, are told of names by the session."""
    from robota.core.permissions import check_rules  # noqa: PLC0415 - for those who have rules
    from robota.core.permissions.rules import find_unknown_tool  # noqa: PLC0415

    for wrong in check_rules(rules, kind=kind):
        raise UsageError(f"--{kind} {wrong.text!r}: {wrong.reason}")
    for rule in rules if whole else ():
        if problem := find_unknown_tool(rule.partition("(")[0].strip(), ()):
            raise UsageError(f"--{kind} {rule!r}: {problem}")


def _read_file(path: str, option: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{option} cannot read {path}: {error.strerror}.") from error
    if len(data) > FILE_BYTES:
        raise UsageError(f"{option} takes files up to {FILE_BYTES >> 20} MB, and {path} is larger.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{option} takes UTF-8 text, which {path} is not: name another file.") from error


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _check_together(reading: Reading) -> None:
    """Options that contradict each other, or say nothing without another."""
    values = reading.values
    prints, output = "print_mode" in values, values.get("output_format", "text")
    driven, resumes = reading.is_driven, "resume" in values
    goes_on = resumes or "continue_last" in values
    asked = reading.text("permission_prompt_tool")
    for wrong, sentence in (
        (resumes and "continue_last" in values,
         "-c continues the last session and -r another one: leave one of them out."),
        ("worktree" in values and goes_on,
         "--worktree begins a session, and -c and -r go on with one: leave one of them out."),
        (any(map(str.isspace, reading.text("worktree") or "")),
         "--worktree takes a name without blanks: put a prompt in front, as in robota PROMPT --worktree."),
        ("attach" in values and (prints or driven), "--attach is for a terminal: leave -p out."),
        ("attach" in values and ("worktree" in values or "fork" in values),
         "--attach shows a session that runs elsewhere: leave --worktree and --fork-session out."),
        ("fork" in values and not goes_on, "--fork-session needs a session to begin from: add -c or -r."),
        (goes_on and "no_save" in values,
         "A session cannot be resumed with --no-save: leave one of the two out."),
        (values.get("resume") == "" and (prints or driven),
         "-r needs the id or the name of a session here: a list to choose from needs a terminal."),
        (driven and output != "stream-json",
         "--input-format stream-json goes with --output-format stream-json: add it."),
        (output != "text" and not (prints or driven), f"--output-format {output} is for -p: add it."),
        ("json_schema" in values and not (prints or driven), "--json-schema is for -p: add it."),
        (asked == "stdio" and not driven,
         "--permission-prompt-tool stdio needs --input-format stream-json: add it."),
        (asked not in (None, "stdio") and not asked.startswith("mcp__"),
         "--permission-prompt-tool takes stdio or a tool of an MCP server, mcp__server__tool."),
        (asked is not None and not (prints or driven), "--permission-prompt-tool is for -p: add it."),
        ("yes" in values and "reset" not in values, "--yes answers the question of --reset: add it."),
        ("replay_user_messages" in values and not driven,
         "--replay-user-messages needs --input-format stream-json: add it."),
    ):  # fmt: skip
        if wrong:
            raise UsageError(sentence)
    for flag in FOR_PROGRAMS:
        if flag.key in values and not driven:
            why = flag.refusal or "it is for programs that drive robota with --input-format stream-json"
            raise UsageError(f"{flag.name} cannot be used here: {why}.")
    for key in ("partial_messages", "hook_events"):
        if key in values and output != "stream-json":
            raise UsageError(f"--include-{key.replace('_', '-')} needs --output-format stream-json: add it.")
