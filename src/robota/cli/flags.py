"""The options of `robota`: one table, from which arguments are read, help is written and shells complete.

Nothing is imported to read or describe them, so that `--help` and a mistake are answered at once. What the
values mean is in `options`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Value: TypeAlias = bool | str | tuple[str, ...]


class UsageError(Exception):
    """The command line is wrong; the sentence says what, and what would be right."""


class Flag:
    """One option. Its `form` is its spellings and then what follows: nothing, a value, a value that may be
    missing (`[ID]`), or a value in an option that may be repeated (`RULE...`)."""

    __slots__ = ("choices", "form", "help", "is_list", "key", "metavar", "names", "optional", "refusal")

    def __init__(
        self, form: str, key: str, help: str, choices: tuple[str, ...] = (), refusal: str = ""
    ) -> None:
        words = form.split()
        self.form = form
        self.names = tuple(word for word in words if word.startswith("-"))
        last = words[-1] if not words[-1].startswith("-") else ""
        self.optional = last.startswith("[")
        self.is_list = last.endswith("...")
        self.metavar = last.strip("[].")
        self.key = key
        self.help = help
        self.choices = choices
        self.refusal = refusal
        """Why it cannot be had, for options that other programs pass; such an option is not shown."""

    @property
    def name(self) -> str:
        """As it is called in sentences."""
        return self.names[-1] if len(self.names[0]) < 3 else self.names[0]

    def check(self, value: str) -> str:
        if not value.strip() and not self.optional and self.metavar not in _MAY_BE_EMPTY:
            raise UsageError(f"{self.name} needs a value that is not empty: {self.name} {self.metavar}.")
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.name} takes one of {', '.join(self.choices)}, not {value!r}.")
        return value


_MAY_BE_EMPTY = ("LIST", "RULES", "TEXT")
MODES = ("default", "acceptEdits", "plan", "bypassPermissions", "manual", "auto", "dontAsk")
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")

GROUPS: tuple[tuple[str, tuple[Flag, ...]], ...] = (
    (
        "Running",
        (
            Flag("-p --print", "print_mode", "Run one prompt, print the answer, exit."),
            Flag("--output-format FORMAT", "output_format", "How the answer of -p is printed: text, json or "
                 "stream-json.", ("text", "json", "stream-json")),
            Flag("--input-format FORMAT", "input_format", "What is read from standard input: text, or "
                 "stream-json for a program that drives robota.", ("text", "stream-json")),
            Flag("--include-partial-messages", "partial_messages", "With stream-json: also print the "
                 "answer piece by piece, as it arrives."),
            Flag("--include-hook-events", "hook_events", "With stream-json: also print what hooks do."),
            Flag("--replay-user-messages", "replay_user_messages", "With stream-json in and out: echo the "
                 "messages that were read."),
            Flag("--verbose", "verbose", "Show tool calls in full, with their results."),
            Flag("--json-schema SCHEMA", "json_schema", "Require an answer that is JSON of this schema, "
                 "given as JSON or a file."),
            Flag("--max-turns N", "max_turns", "The most model calls a prompt may take; 0 for no limit."),
            Flag("--max-budget-usd X", "max_budget_usd", "The most the session may cost, in dollars."),
            Flag("--no-tui", "no_tui", "Print plain lines even if the terminal can do more."),
        ),
    ),
    (
        "Session",
        (
            Flag("-c --continue", "continue_last", "Continue the last session in this directory."),
            Flag("-r --resume [ID]", "resume", "Resume the session with this id or name; without one, "
                 "choose from a list."),
            Flag("--fork-session", "fork", "With -c or -r: start a new session from that one."),
            Flag("-n --name NAME", "name", "A name for the session."),
            Flag("--session-id UUID", "session_id", "The id for the new session."),
            Flag("--no-save --no-session-persistence", "no_save", "Do not save this session to disk."),
            Flag("--attach [URL]", "attach", "Show a session of `robota serve` in this terminal too; URL is "
                 "the line that it printed.  [env: ROBOTA_SERVE_TOKEN]"),
            Flag("--worktree [NAME]", "worktree", "Work in a new git worktree, which is removed at the end "
                 "if nothing was changed in it."),
        ),
    ),
    (
        "Model",
        (
            Flag("--provider TYPE", "provider", "The service to use, or one of your profiles.  "
                 "[env: ROBOTA_PROVIDER]"),
            Flag("--model NAME", "model", "The model to use.  [env: ROBOTA_MODEL]"),
            Flag("--base-url URL", "base_url", "The provider's address; on its own, that of an "
                 "OpenAI-compatible service.  [env: ROBOTA_BASE_URL]"),
            Flag("--effort LEVEL", "effort", f"How hard the model thinks: {', '.join(EFFORTS)}.", EFFORTS),
            Flag("--language LANGUAGE", "language", "The language to answer in.  [env: ROBOTA_LANGUAGE]"),
            Flag("--context-window N", "context_window", "The window, in tokens, of a model that robota "
                 "does not know."),
            Flag("--system-prompt TEXT", "system_prompt", "Instructions that replace robota's own."),
            Flag("--system-prompt-file FILE", "system_prompt_file", "The same from a file."),
            Flag("--append-system-prompt TEXT", "append_system_prompt", "Instructions added to "
                 "robota's own."),
            Flag("--append-system-prompt-file FILE", "append_system_prompt_file", "The same from a file."),
        ),
    ),
    (
        "Permissions",
        (
            Flag("--permission-mode MODE", "mode", "What may run without asking: default, acceptEdits, plan "
                 "or bypassPermissions.  [env: ROBOTA_PERMISSION_MODE]", MODES),
            Flag("--dry-run", "dry_run", "Plan only, change nothing; the same as the mode plan."),
            Flag("--dangerously-skip-permissions", "bypass", "Never ask; the same as the mode "
                 "bypassPermissions."),
            Flag("--allow RULE...", "allow", "Allow rule, e.g. 'Bash(git log *)'; repeatable."),
            Flag("--deny RULE...", "deny", "Deny rule, e.g. 'Read(.env)'; repeatable."),
            Flag("--allowedTools --allowed-tools RULES...", "allow_list", "A list of allow rules, "
                 "separated by commas or spaces."),
            Flag("--disallowedTools --disallowed-tools RULES...", "deny_list", "A list of deny "
                 "rules."),
            Flag("--tools LIST", "tools", "The built-in tools to offer, e.g. Read,Grep; '' for none, "
                 "'default' for all."),
            Flag("--permission-prompt-tool NAME", "permission_prompt_tool", "Who is asked for permission: a "
                 "tool of an MCP server (mcp__server__tool), or stdio for the program that drives robota."),
            Flag("--trust", "trust", "Trust this directory for this call: its hooks, servers and allow "
                 "rules take effect."),
            Flag("--add-dir DIR...", "add_dirs", "Another directory that belongs to the workspace; "
                 "repeatable."),
            Flag("--pass-env NAME...", "pass_env", "A credential that commands and hooks may see; "
                 "repeatable."),
            Flag("--sandbox WHEN", "sandbox", "Confine commands: auto (where it works), required or off.  "
                 "[env: ROBOTA_SANDBOX]", ("auto", "required", "off")),
            Flag("--auto-allow-sandboxed", "auto_allow", "Run commands without asking if the sandbox "
                 "confines them."),
        ),
    ),
    (
        "Configuration",
        (
            Flag("--settings JSON", "settings", "Settings that override those of all files, as JSON or a "
                 "file."),
            Flag("--setting-sources LIST", "setting_sources", "The settings files to read: user, project, "
                 "local; '' for none."),
            Flag("--agents JSON", "agents", "Agents for this session: each name with a description and "
                 "a prompt."),
            Flag("--agent NAME", "agent", "The agent to run the session as."),
            Flag("--bare", "bare", "Ignore the user's and the project's files: settings, instructions, "
                 "skills, agents."),
            Flag("--plugin-dir DIR...", "plugin_dirs", "Use the bundle plugin in this directory for this "
                 "session; repeatable."),
            Flag("--mcp-config JSON...", "mcp_config", "MCP servers in the form of .mcp.json, as JSON or a "
                 "file; repeatable."),
            Flag("--strict-mcp-config", "strict_mcp", "Use only the servers of --mcp-config."),
            Flag("--reset", "reset", "Delete your settings, after asking."),
            Flag("-y --yes", "yes", "Answer yes to the question of --reset."),
            Flag("--debug", "debug", "Log what happens inside to standard error.  [env: ROBOTA_LOG]"),
            Flag("-V --version", "version", "Show the version and exit."),
            Flag("-h --help", "help", "Show this text and exit."),
        ),
    ),
)  # fmt: skip

FOR_PROGRAMS: tuple[Flag, ...] = (
    Flag("--session-mirror", "session_mirror", ""),
    Flag("--allow-dangerously-skip-permissions", "may_bypass", ""),
    Flag("--await-initialize", "awaits", ""),
    Flag("--debug-file FILE", "debug_file", ""),
    Flag("--debug-to-stderr", "debug_to_stderr", ""),
    Flag("--permission-prompts WHO", "permission_prompts", "", ("host", "none")),
    Flag("--resume-session-at ID", "resume_at", ""),
    Flag("--resume-drops-turn [ID]", "resume_drops", ""),
    Flag("--fallback-model NAME", "fallback_model", "", refusal="there is no second model"),
    Flag("--betas LIST", "betas", "", refusal="robota sends no beta headers"),
    Flag(
        "--task-budget N", "task_budget", "", refusal="use --max-budget-usd or the setting budget.maxTokens"
    ),
    Flag("--thinking MODE", "thinking", "", refusal="use --effort"),
    Flag("--max-thinking-tokens N", "max_thinking_tokens", "", refusal="use --effort"),
    Flag("--thinking-display MODE", "thinking_display", "", refusal="use --effort"),
)
"""What programs pass that drive others like us. One with a refusal takes no effect, which they are told; from
anybody else all of them are a mistake."""


OF_OTHERS = {
    "-v": "-V",
    "-m": "--model",
    "-d": "--debug",
    "-w": "--worktree",
    "-s": "--sandbox",
    "--yolo": "--dangerously-skip-permissions",
    "--full-auto": "--permission-mode acceptEdits",
    "--dangerously-bypass-approvals-and-sandbox": "--dangerously-skip-permissions --sandbox off",
    "-a": "--permission-mode",
    "--ask-for-approval": "--permission-mode",
    "-C": "cd DIR, and robota there",
    "--cd": "cd DIR, and robota there",
    "-i": "a prompt that names the file, as in @picture.png",
    "--image": "a prompt that names the file, as in @picture.png",
}
"""How options of other assistants, by which hands know them, are said here."""


class Parsed:
    """What stood on a command line."""

    __slots__ = ("is_literal", "values", "words")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        """Key to value, for options that were given."""
        self.words: list[str] = []
        self.is_literal = False
        """Whether words stand behind `--`, so that nothing else can be meant."""


def all_flags() -> Iterable[Flag]:
    for _, flags in GROUPS:
        yield from flags


def parse(arguments: list[str]) -> Parsed:
    """Read the arguments. An option's value is the next argument, whatever it looks like, or stands behind
    `=`; only a value that may be missing does not begin with a dash. Behind `--` there are words alone."""
    known = {name: flag for flag in (*all_flags(), *FOR_PROGRAMS) for name in flag.names}
    parsed, rest = Parsed(), arguments[::-1]
    while rest:
        token = rest.pop()
        if token == "--":
            parsed.words += rest[::-1]
            parsed.is_literal = True
            break
        name, equals, value = token.partition("=")
        if not is_option(name):
            parsed.words.append(token)
        elif name.startswith("--"):
            _take(parsed, _find(known, name), value if equals else None, rest)
        else:
            _take_letters(parsed, known, token, rest)
    return parsed


def is_option(name: str) -> bool:
    """A prompt may begin with a dash; options have no blanks."""
    return len(name) > 1 and name.startswith("-") and not any(map(str.isspace, name))


def _take_letters(parsed: Parsed, known: dict[str, Flag], token: str, rest: list[str]) -> None:
    """`-pc` is `-p -c`, and `-rID` is `-r ID`."""
    letters = token[1:]
    while letters:
        flag = _find(known, f"-{letters[0]}", token)
        letters = letters[1:]
        if flag.metavar:
            _take(parsed, flag, letters.removeprefix("=") if letters else None, rest)
            return
        _take(parsed, flag, None, rest)


def _take(parsed: Parsed, flag: Flag, value: str | None, rest: list[str]) -> None:
    if not flag.metavar:
        if value is not None:
            raise UsageError(f"{flag.name} takes no value, so not {value!r} either.")
        parsed.values[flag.key] = True
        return
    if value is None:
        if rest and not (flag.optional and rest[-1].startswith("-")):
            value = rest.pop()
        elif flag.optional:
            value = ""
        else:
            raise UsageError(f"{flag.name} needs a value: {flag.name} {flag.metavar}.")
    value = flag.check(value)
    if flag.is_list:
        given = parsed.values.get(flag.key, ())
        parsed.values[flag.key] = (*given, value) if isinstance(given, tuple) else (value,)
    else:
        parsed.values[flag.key] = value


def _find(known: dict[str, Flag], name: str, token: str = "") -> Flag:
    flag = known.get(name)
    if flag is not None:
        return flag
    if meant := OF_OTHERS.get(name):
        raise UsageError(f"There is no option {name}; did you mean {meant}?")
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    wrong = token or name
    shown = {each.strip("-"): each for flag in all_flags() for each in flag.names if each[:2] == "--"}
    near = get_close_matches(wrong.strip("-"), shown, 1, 0.6)
    hint = f"did you mean {shown[near[0]]}?" if near else "robota --help lists them."
    raise UsageError(f"There is no option {wrong}; {hint}")
