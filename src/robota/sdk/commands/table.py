"""The table of built-in commands: one row for each. What a row names is loaded when it is called."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Words: TypeAlias = tuple[tuple[str, str], ...]


class Row(Struct, frozen=True):
    """A command as menus show it."""

    name: str
    description: str
    function: str
    """`module.function` below `robota.sdk.commands.system`."""
    hint: str = ""
    """What may stand behind the name."""
    words: Words = ()
    """The words that may come first, each with a description."""
    for_models: bool = False
    """Whether a model may call it by itself, as a tool: nothing that changes rights, settings, the provider
    or the conversation."""
    gives_way: bool = False
    """Whether a skill of the same name takes its place."""


MODES: Words = (
    ("plan", "Look, change nothing"),
    ("default", "Ask before changes"),
    ("acceptEdits", "Edit files of the workspace without a question"),
    ("bypassPermissions", "Never ask"),
)
LANGUAGES: Words = (("ko", "Korean"), ("en", "English"), ("ja", "Japanese"), ("zh", "Chinese"))

ROWS = (
    Row("help", "Show available commands", "conversation.show_help", "[command]"),
    Row("clear", "Clear conversation history", "conversation.clear"),
    Row("compact", "Compress context window", "conversation.compact", "[instructions]"),
    Row("mode", "Show or change the permission mode", "permissions.mode", "[mode]", MODES),
    Row("model", "Change AI model", "choices.model", "<id>"),
    Row("language", "Set response language", "choices.language", "<code>", LANGUAGES),
    Row(
        "cost",
        "Session id, message count and cost",
        "usage.cost",
        "[budget [AMOUNT | clear]]",
        (("budget", "What this session may cost, in US dollars"),),
    ),
    Row(
        "context",
        "What fills the context window, and what is kept in it",
        "context.context",
        "[add PATH | remove PATH | clear | auto [on | off | 85% | reset]]",
        (
            ("add", "Keep a file in the conversation"),
            ("remove", "Stop following a file"),
            ("clear", "Stop following all files"),
            ("auto", "When the conversation is summarized"),
        ),
    ),
    Row("permissions", "Current mode and what was allowed for the session", "permissions.permissions"),
    Row("resume", "Resume a previous session", "conversation.resume", "[id | name]"),
    Row("rename", "Rename the current session", "conversation.rename", "<name>"),
    Row("reset", "Delete settings and leave", "conversation.reset"),
    Row("usage", "What the session used: tokens, money, tools", "usage.usage", for_models=True),
    Row(
        "export",
        "Write the conversation to a file",
        "export.export",
        "[markdown | html | json] [path]",
        (("markdown", "To read"), ("html", "A page for a browser"), ("json", "For programs")),
    ),
    Row("todos", "Show the todo list", "plan.todos"),
    Row(
        "plan",
        "Show the plan; plan before anything is changed",
        "plan.plan",
        "[on | off | task]",
        (("on", "Plan first"), ("off", "Go to work")),
    ),
    Row("skills", "List the skills and how to call them", "project.skills", "[prefix]", for_models=True),
    Row("agents", "List the agents that can be given tasks", "project.agents", for_models=True),
    Row(
        "trust",
        "Show what this project asks for, and trust it",
        "permissions.trust",
        "[yes | imports]",
    ),
    Row("hooks", "The hooks and when they run", "project.hooks"),
    Row(
        "mcp",
        "The MCP servers: state, tools, what they cost",
        "mcp.mcp",
        "[NAME | reconnect NAME | enable NAME | disable NAME]",
        (
            ("reconnect", "Connect one anew"),
            ("enable", "Connect one that was turned off"),
            ("disable", "Turn one off for this session"),
        ),
    ),
    Row(
        "plugin",
        "Bundle plugins and the marketplaces they come from",
        "plugin.plugin",
        "[list | search TEXT | show ID | install ID | uninstall ID | enable ID | disable ID | update [ID] | "
        "validate PATH | marketplace add SOURCE | marketplace remove NAME | marketplace update [NAME]]",
        (
            ("list", "What is installed, and whether it is used"),
            ("search", "What the marketplaces offer"),
            ("show", "What a plugin runs and brings along"),
            ("install", "Fetch a plugin, show what it runs, and ask"),
            ("uninstall", "Take a plugin out"),
            ("enable", "Use a plugin, after a look at what it runs"),
            ("disable", "Use a plugin no more"),
            ("update", "Fetch plugins again"),
            ("validate", "Check a plugin or a marketplace in a directory"),
            ("marketplace", "Where plugins come from: list, add, remove, update"),
        ),
    ),
    Row("reload-plugins", "Read plugins, skills, agents and hooks again", "plugin.reload_plugins"),
    Row("status", "Show the status of the session", "status.status"),
    Row("doctor", "Show everything that was skipped, corrected or does not work", "status.doctor"),
    Row(
        "config",
        "Show settings and where they are set, or change your own",
        "config.config",
        "[list | get KEY | set KEY VALUE | unset KEY]",
        (
            ("list", "Everything that is set, and where"),
            ("get", "One setting and its meaning"),
            ("set", "Change your own settings"),
            ("unset", "Take a setting out of your own"),
        ),
    ),
    Row(
        "provider",
        "The provider and the profiles to choose from",
        "choices.provider",
        "[current | list | switch NAME]",
        (
            ("current", "The provider that answers"),
            ("list", "The profiles of the settings"),
            ("switch", "Choose a profile"),
        ),
    ),
    Row(
        "diff",
        "Show changes since the last commit, or since the session began",
        "diff.diff",
        "[session]",
        (("session", "What this session changed"),),
    ),
    Row("init", "Write an AGENTS.md for this project", "prompts.init", "[wishes]", gives_way=True),
    Row("review", "Review the changes in the working tree", "prompts.review", "[what]", gives_way=True),
    Row("commit", "Commit the work in the working tree", "prompts.commit", "[wishes]", gives_way=True),
    Row(
        "background",
        "Background tasks: list them, read their logs, end them",
        "background.background",
        "[list | read ID [offset] | cancel ID | close ID]",
        (
            ("list", "All tasks"),
            ("read", "What one printed or said"),
            ("cancel", "End one"),
            ("close", "Forget one that has ended"),
        ),
        for_models=True,
    ),
    Row(
        "agent",
        "Hand work to agents in the background",
        "agent.agent",
        "[list | run | parallel | wait | read | send | stop | close] …",
        (
            ("list", "The agents at work"),
            ("run", "Begin one: [--agent NAME] [--model ID] [--isolation none|worktree] PROMPT"),
            ("parallel", "Begin several: label=agent:prompt …"),
            ("wait", "Wait for one, or for a group"),
            ("read", "What one has said"),
            ("send", "Tell one something"),
            ("stop", "End one"),
            ("close", "Forget one that has ended"),
        ),
    ),
    Row(
        "undo",
        "Take back what a call did to files",
        "rewind.undo",
        "[list | N] [overwrite]",
        (("list", "The calls that changed files, the latest first"),),
    ),
    Row("redo", "Revert the last undo or rewind", "rewind.redo"),
    Row(
        "rewind",
        "Go back to before a prompt: files, conversation or both",
        "rewind.rewind",
        "[list | inspect N | restore N [code | chat | both] [overwrite]]",
        (
            ("list", "The prompts that can be gone back to"),
            ("inspect", "What going back to before prompt N would change"),
            ("restore", "Go back to before prompt N"),
        ),
    ),
    Row(
        "memory",
        "What the project's sessions remember",
        "memory.memory",
        "[list | show [TOPIC] | add [TYPE/TOPIC:] TEXT | pending | approve ID | reject ID | used]",
        (
            ("list", "The topics"),
            ("show", "The notes, or those of a topic"),
            ("add", "Save a note"),
            ("pending", "What waits for your consent"),
            ("approve", "Save something that waits, or all of it"),
            ("reject", "Forget something that waits, or all of it"),
            ("used", "What was recalled for prompts of this session"),
        ),
    ),
    Row("exit", "Leave", "conversation.leave"),
)
