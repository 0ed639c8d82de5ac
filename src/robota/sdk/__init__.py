"""Putting agents together. Six of the built-in tools are offered here, for direct use."""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.core.messages": "HistoryEntry chat_entry_to_message get_messages_for_api is_chat_entry "
    "message_to_history_entry",
    "robota.core.transport": "TransportAdapter",
    "robota.sdk.agents.definition": "AgentDefinition",
    "robota.sdk.agents.runner": "AgentOutcome AgentTask",
    "robota.sdk.agents.subagent": "ProjectInstructions assemble_subagent_prompt create_subagent_logger "
    "create_subagent_session",
    "robota.sdk.assembly": "MoreOptions",
    "robota.sdk.auth": "KeyStore",
    "robota.sdk.background.request": "TaskRequest",
    "robota.sdk.background.states": "TaskError",
    "robota.sdk.background.tasks": "BackgroundTasks",
    "robota.sdk.background.watchdog": "WatchdogLimits",
    "robota.sdk.bundle.bundle": "BundlePlugin",
    "robota.sdk.bundle.client": "Marketplace MarketplaceClient",
    "robota.sdk.bundle.installed": "InstalledPlugin",
    "robota.sdk.bundle.installer": "BundlePluginInstaller StagedPlugin",
    "robota.sdk.bundle.marketplace": "MarketplacePlugin",
    "robota.sdk.bundle.report": "BundleReport",
    "robota.sdk.bundle.command_source": "PluginCommandSource",
    "robota.sdk.bundle.loader": "BundlePluginLoader",
    "robota.sdk.bundle.manifest": "Manifest",
    "robota.sdk.bundle.names": "BundleError",
    "robota.sdk.commands.builtin_source": "BuiltinCommandSource",
    "robota.sdk.commands.effects": "AgentSwitcher CommandResult Compacted ContextShown CostShown Effect "
    "ExitRequested LanguageChosen LogShown ModelChosen ModeSet PermissionsShown "
    "ProviderChosen Renamed ResetRequested ResumePicker Rewound SubmitPrompt TasksShown Written",
    "robota.sdk.commands.registry": "Command CommandName CommandRegistry CommandSource",
    "robota.sdk.commands.skill_source": "SkillCommandSource",
    "robota.sdk.execution": "ExecutionResult",
    "robota.sdk.interactive": "InteractiveSession",
    "robota.sdk.permission_prompt": "describe_approval prompt_for_approval",
    "robota.sdk.problems": "Problem",
    "robota.sdk.query": "create_query",
    "robota.sessions.questions": "PermissionHandler QuestionHandler",
    "robota.sdk.skills.skill": "Skill SkillError Skills",
    "robota.sdk.team.members": "Subagent",
    "robota.sdk.team.patterns": "TeamLimits TeamResult TeamTurn run_group_chat run_hand_off run_hierarchical "
    "run_parallel run_sequential",
    "robota.sdk.team.templates": "make_templates",
    "robota.sdk.team.tools": "team_tools",
    "robota.sdk.trust": "Trust TrustStore",
    "robota.sdk.tool_states": "DiffLine ToolState ToolSummary",
    "robota.providers.choice": "ChosenProvider choose_provider",
    "robota.tools.builtins.bash": "bash_tool",
    "robota.tools.builtins.files": "read_tool write_tool edit_tool",
    "robota.tools.builtins.search": "glob_tool grep_tool",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
