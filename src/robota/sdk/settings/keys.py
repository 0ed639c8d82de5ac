"""The one table of settings: what each key means, what it may hold, who may set it, how layers are merged.

Checks, the published JSON schema, the table in the documentation and the defaults all come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.hooks.definition import HOOK_EVENTS
from robota.core.messages import Json, JsonObject
from robota.core.permissions.modes import CLASS_POLICY, TRUST_TO_MODE

Kind: TypeAlias = Mapping[str, Json]
"""What a key may hold, in the words of JSON schema."""
MergeRule: TypeAlias = Literal["override", "pool", "deep", "restrict", "least"]
"""The highest layer counts; all layers' entries count; objects are merged; the user's entries count, and the
project's only if the user has none; the smallest number counts."""

TEXT: Kind = {"type": "string", "minLength": 1}
FLAG: Kind = {"type": "boolean"}
COUNT: Kind = {"type": "integer", "minimum": 0}
AMOUNT: Kind = {"type": "number", "minimum": 0}
TEXTS: Kind = {"type": "array", "items": {"type": "string"}}
OBJECT: Kind = {"type": "object"}
_SCALAR: Kind = {"type": ["string", "number", "boolean"]}


def choice(*values: str) -> Kind:
    return {"enum": list(values)}


def table_of(kind: Kind) -> Kind:
    """An object with any keys whose values are of this kind."""
    return {"type": "object", "additionalProperties": kind}


class Key(Struct, frozen=True, kw_only=True):
    """One setting; `name` has dots where objects are nested."""

    name: str
    kind: Kind
    about: str
    """One line for the documentation and the schema."""
    default: Json = None
    merge: MergeRule = "override"
    user_only: bool = False
    """Whether a project's files may not set it, trusted or not."""
    of_terminal: bool = False
    """Whether it is about a terminal alone, so that nothing is amiss where a project sets it for others."""
    not_from_project: tuple[Json, ...] = ()
    """Values that a project's files may not choose, because they loosen what guards the user."""
    if_unusable: Json = None
    """What counts when the value is of the wrong type, for keys that guard something: the stricter."""
    instead_of: tuple[str, ...] = ()
    """Keys that say the same in another way: what lower layers say by them no longer counts."""


_MODES = (*CLASS_POLICY, "manual", "auto", "dontAsk")
_HANDLERS: Kind = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "matcher": {"type": "string"},
            "hooks": {"type": "array", "items": {"type": "object", "required": ["type"]}},
        },
        "required": ["hooks"],
    },
}
_PROFILE: Kind = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "model": {"type": "string"},
        "apiKey": {"type": "string"},
        "baseURL": {"type": "string"},
        "timeout": {"type": "number", "exclusiveMinimum": 0},
        "options": {"type": "object"},
    },
}

TABLE: tuple[Key, ...] = (
    Key(name="model", kind=TEXT, about="The model; without it the provider's default."),
    Key(name="currentProvider", kind=TEXT, about="Which of `providers` to use."),
    Key(
        name="providers",
        kind={"type": "object", "additionalProperties": _PROFILE},
        merge="deep",
        about="Profiles by name: `type`, `model`, `apiKey`, `baseURL`, `timeout` (milliseconds), `options`. "
        "A project may set only `type`, `model` and `timeout`.",
    ),
    Key(
        name="baseURL",
        kind=TEXT,
        user_only=True,
        about="An address that replaces the current profile's; meant for `ROBOTA_BASE_URL`.",
    ),
    Key(name="language", kind=TEXT, about="The language of answers."),
    Key(
        name="effortLevel",
        kind=choice("minimal", "low", "medium", "high", "xhigh", "max"),
        about="How hard the model thinks.",
    ),
    Key(name="theme", kind=TEXT, default="auto", about="Colors of the terminal: `auto`, `dark` or `light`."),
    Key(
        name="editorMode",
        kind=choice("normal", "vim", "emacs"),
        default="normal",
        about="Editing keys of the prompt.",
    ),
    Key(
        name="keybindings",
        kind=table_of({"anyOf": [TEXT, TEXTS]}),
        merge="deep",
        user_only=True,
        of_terminal=True,
        about="Keys for each action, as in docs/terminal.md.",
    ),
    Key(
        name="statusLine",
        kind={"type": "object", "properties": {"command": TEXT}, "required": ["command"]},
        user_only=True,
        of_terminal=True,
        about="A command whose output is the status line; it gets session data on standard input.",
    ),
    Key(
        name="notifications",
        kind=choice("off", "bell", "osc9"),
        default="off",
        user_only=True,
        of_terminal=True,
        about="How the terminal signals that a turn has ended or a question is open.",
    ),
    Key(
        name="terminal.frameMilliseconds",
        kind={"type": "integer", "minimum": 16, "maximum": 1000},
        default=50,
        about="How often a streaming answer is redrawn; raise it on slow connections.",
    ),
    Key(
        name="terminal.escapeMilliseconds",
        kind={"type": "integer", "minimum": 10, "maximum": 1000},
        default=50,
        about="How long to wait for the rest of a key that begins with Esc; raise it on bad connections.",
    ),
    Key(name="permissions.allow", kind=TEXTS, merge="pool", about="Rules for what runs without a question."),
    Key(name="permissions.ask", kind=TEXTS, merge="pool", about="Rules for what is always asked about."),
    Key(name="permissions.deny", kind=TEXTS, merge="pool", about="Rules for what never runs."),
    Key(
        name="permissions.defaultMode",
        kind=choice(*_MODES),
        default="default",
        not_from_project=("bypassPermissions",),
        instead_of=("defaultTrustLevel",),
        about="The permission mode; `manual` means `default`. So do `auto` and `dontAsk`, with a problem.",
    ),
    Key(
        name="permissions.additionalDirectories",
        kind=TEXTS,
        merge="pool",
        about="Directories of the workspace in addition to the working directory.",
    ),
    Key(
        name="permissions.disableBypassPermissionsMode",
        kind=choice("disable"),
        if_unusable="disable",
        about="`disable`: the mode `bypassPermissions` is not available.",
    ),
    Key(
        name="defaultTrustLevel",
        kind=choice(*TRUST_TO_MODE),
        instead_of=("permissions.defaultMode",),
        about="The mode by another name: `safe` is plan, `moderate` default, `full` acceptEdits.",
    ),
    Key(
        name="autoAllowReadOnly",
        kind=FLAG,
        default=False,
        not_from_project=(True,),
        about="Let commands that only look run without a question.",
    ),
    Key(
        name="hooks",
        kind={"type": "object", "properties": dict.fromkeys(HOOK_EVENTS, _HANDLERS)},
        merge="pool",
        about="Groups of handlers by event.",
    ),
    Key(
        name="disableAllHooks",
        kind=FLAG,
        default=False,
        about="Turn off all hooks; in a project's file, only those of the project.",
    ),
    Key(
        name="allowedHttpHookUrls",
        kind=TEXTS,
        merge="restrict",
        if_unusable=[],
        about="Addresses that http hooks may use, where `*` is any text; by default any.",
    ),
    Key(
        name="httpHookAllowedEnvVars",
        kind=TEXTS,
        merge="restrict",
        if_unusable=[],
        about="Variables that headers of http hooks may name; by default those that the hook lists.",
    ),
    Key(
        name="env",
        kind=table_of(_SCALAR),
        merge="deep",
        about="Variables for commands and hooks. A project may not set proxies, certificates, addresses of "
        "model services, keys or `ROBOTA_*`.",
    ),
    Key(
        name="passEnv",
        kind=TEXTS,
        merge="pool",
        user_only=True,
        about="Credentials of the environment that commands and hooks may have.",
    ),
    Key(
        name="sandbox",
        kind=choice("auto", "required", "off"),
        default="auto",
        not_from_project=("off", "auto"),
        instead_of=("sandbox.enabled", "sandbox.failIfUnavailable"),
        about="Confine commands: where a sandbox works, always or never; or an object with the keys below.",
    ),
    Key(
        name="sandbox.enabled",
        kind=FLAG,
        not_from_project=(False,),
        instead_of=("sandbox",),
        about="true is `auto`, false `off`.",
    ),
    Key(
        name="sandbox.failIfUnavailable",
        kind=FLAG,
        not_from_project=(False,),
        if_unusable=True,
        instead_of=("sandbox",),
        about="true is `required`.",
    ),
    Key(
        name="sandbox.autoAllowBashIfSandboxed",
        kind=FLAG,
        default=False,
        not_from_project=(True,),
        about="Let commands that the sandbox confines run without a question.",
    ),
    Key(
        name="sandbox.filesystem.allowWrite",
        kind=TEXTS,
        merge="pool",
        user_only=True,
        about="Directories that commands may write in addition to the workspace.",
    ),
    Key(
        name="sandbox.filesystem.denyWrite",
        kind=TEXTS,
        merge="pool",
        about="Files and directories that commands may not write.",
    ),
    Key(
        name="sandbox.filesystem.denyRead",
        kind=TEXTS,
        merge="pool",
        about="Files and directories that commands may not read.",
    ),
    Key(
        name="autoCompactThreshold",
        kind={"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {"const": False}]},
        instead_of=("autoCompactEnabled",),
        about="How full the window may be before the conversation is summarized; false: never automatically.",
    ),
    Key(
        name="autoCompactEnabled",
        kind=FLAG,
        default=True,
        instead_of=("autoCompactThreshold",),
        about="false is `autoCompactThreshold: false`.",
    ),
    Key(name="memory.enabled", kind=FLAG, default=False, about="Whether the project's memory is used."),
    Key(
        name="memory.autoSave",
        kind=FLAG,
        default=False,
        about="Save what is worth remembering without asking.",
    ),
    Key(
        name="skillOverrides",
        kind=table_of(choice("on", "name-only", "user-invocable-only", "off")),
        merge="deep",
        about="How each skill is offered.",
    ),
    Key(
        name="disableSkillShellExecution",
        kind=FLAG,
        default=False,
        not_from_project=(False,),
        if_unusable=True,
        about="Shell lines in skills are not run.",
    ),
    Key(
        name="skillListingMaxDescChars",
        kind=COUNT,
        default=1536,
        about="Characters of a skill's description in the system prompt.",
    ),
    Key(
        name="skillListingBudgetFraction",
        kind={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        default=0.01,
        about="The part of the context window that the list of skills may take.",
    ),
    Key(
        name="includeGitInstructions",
        kind=FLAG,
        default=True,
        about="Tell the model how to work with git, in a repository.",
    ),
    Key(
        name="allowOutsideImports",
        kind=TEXTS,
        user_only=True,
        about="Directories whose instruction files may import others from outside.",
    ),
    Key(
        name="claudeMdExcludes",
        kind=TEXTS,
        merge="pool",
        about="Patterns of instruction files that are not read.",
    ),
    Key(
        name="fileCheckpointingEnabled",
        kind=FLAG,
        default=True,
        about="Save files before they are changed, for `/undo` and `/rewind`.",
    ),
    Key(
        name="worktree.baseRef",
        kind=TEXT,
        default="HEAD",
        about="What a new worktree starts from: a revision, or `fresh` for the default branch of `origin`.",
    ),
    Key(
        name="worktree.symlinkDirectories",
        kind=TEXTS,
        merge="pool",
        about="Directories that a new worktree shares through links.",
    ),
    Key(
        name="worktree.sparsePaths",
        kind=TEXTS,
        merge="pool",
        about="The only directories that are checked out in a new worktree.",
    ),
    Key(
        name="attribution.commit",
        kind={"type": "string"},
        about="Lines at the end of the messages that `/commit` writes; empty: no attribution.",
    ),
    Key(
        name="subagents.policy",
        kind=choice("never", "ask", "auto"),
        default="ask",
        not_from_project=("auto",),
        if_unusable="ask",
        about="Whether subagents start: never, after a question, without one.",
    ),
    Key(
        name="subagents.maxConcurrent",
        kind={"type": "integer", "minimum": 1},
        default=4,
        merge="least",
        about="How many run in parallel.",
    ),
    Key(name="budget.maxCostUsd", kind=AMOUNT, merge="least", about="US dollars a session may cost."),
    Key(name="budget.maxTokens", kind=COUNT, merge="least", about="Tokens a session may use."),
    Key(name="budget.maxRequests", kind=COUNT, merge="least", about="Model requests of a session."),
    Key(name="budget.maxToolCalls", kind=COUNT, merge="least", about="Tool calls of a session."),
    Key(name="budget.maxSeconds", kind=AMOUNT, merge="least", about="Seconds its turns may take in total."),
    Key(
        name="mcpServers",
        kind=table_of(OBJECT),
        merge="deep",
        about="MCP servers by name, and how to start each.",
    ),
    Key(
        name="disabledMcpjsonServers",
        kind=TEXTS,
        merge="pool",
        about="Names of MCP servers that are not connected.",
    ),
    Key(
        name="toolSearch",
        kind={"anyOf": [FLAG, {"type": "string", "pattern": "^auto(:\\d{1,3})?$"}]},
        default="auto",
        about="Whether the tools of MCP servers are searched for instead of listed: true, false, `auto` once "
        "they would take a tenth of the context window, `auto:N` for N percent.",
    ),
    Key(
        name="enabledPlugins",
        kind=table_of(FLAG),
        merge="deep",
        about="Whether each plugin (`name@marketplace`) is used.",
    ),
    Key(
        name="plugins",
        kind=table_of({"type": "object", "properties": {"enabled": FLAG, "options": OBJECT}}),
        merge="deep",
        user_only=True,
        about="Plugins of the agent by name: `enabled` and `options`, as in docs/plugins.md.",
    ),
    Key(
        name="pluginConfigs",
        kind=table_of(OBJECT),
        merge="deep",
        about="The `options` of each plugin's `userConfig` that you chose.",
    ),
    Key(
        name="extraKnownMarketplaces",
        kind=table_of(OBJECT),
        merge="deep",
        about="More marketplaces by name, with their sources.",
    ),
)

KEYS: dict[str, Key] = {key.name: key for key in TABLE}
GROUPS: frozenset[str] = frozenset(
    ".".join(parts[:length])
    for parts in (name.split(".") for name in KEYS)
    for length in range(1, len(parts))
)
"""The objects that hold keys of the table."""


def make_schema() -> JsonObject:
    """The table as a JSON schema, for editors; a key that is not in it may be another program's."""
    schema: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of robota",
        "type": "object",
        "properties": {"$schema": {"type": "string"}},
    }
    for key in TABLE:
        place = schema
        parts = key.name.split(".")
        for part in parts[:-1]:
            place = place["properties"].setdefault(part, {"type": "object", "properties": {}})
            place = place["anyOf"][1] if "anyOf" in place else place
        described = {**key.kind, "description": key.about}
        if key.default is not None:
            described["default"] = key.default
        if key.name in GROUPS:  # written as one word or as an object
            described = {"anyOf": [described, {"type": "object", "properties": {}}]}
        place["properties"][parts[-1]] = described
    return schema
