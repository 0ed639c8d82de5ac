"""The engine: messages, events, providers, tools, the loop, permissions and hooks. It needs nothing above it.

Names are loaded when they are first used.
"""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.core.messages": (
        "AssistantMessage FilePart HistoryEntry ImagePart ImageUriPart Json JsonObject Message Part Prompt "
        "ReasoningBlock StopReason SystemMessage TextPart TokenUsage ToolCall ToolMessage UserMessage "
        "chat_entry_to_message get_messages_for_api is_chat_entry make_message message_to_history_entry "
        "user_message"
    ),
    "robota.core.conversation": "ConversationStore",
    "robota.core.event_service": (
        "AGENT_EVENTS EVENT_NAMES EVENT_PREFIXES EXECUTION_EVENTS EventHistory EventService NamedEvent "
        "TASK_EVENTS TOOL_EVENTS USER_EVENTS"
    ),
    "robota.core.events": (
        "AnyEvent AnyReplayEvent AnyTurnEvent AssistantMessageCommitted BackgroundGroupChanged "
        "BackgroundTaskChanged Compacted CompactionMarked ContextLoaded ContextUpdated Event "
        "HistoryMutation HookExecuted ModelChanged Noticed OwnerPathSegment PermissionDecided PreRun "
        "PromptQueued PromptSteered ProviderNativeRawPayload ProviderRequest ProviderResponseNormalized "
        "ProviderResponseRaw ProviderRetried ProviderStreamRawDelta QuestionAsked QuestionClosed "
        "ReasoningDelta ReplayEvent RunCompleted RunFailed RunInterrupted RunStarted ServerToolUsed "
        "SessionInit SessionShutdown SettingsChanged SubagentEvent SummaryCalled TextDelta ThinkingChanged "
        "ToolBatchStarted ToolEnded ToolExecutionRequest ToolExecutionResult ToolInputDelta "
        "ToolMessageCommitted ToolProgressed ToolStarted TurnEvent"
    ),
    "robota.core.event_names": "event_from_wire event_to_wire",
    "robota.core.background": "GroupSnapshot TaskFailure TaskSnapshot",
    "robota.core.errors": (
        "AbortError AgentBusyError AuthenticationError CacheIntegrityError CircuitBreakerOpenError "
        "ConfigurationError ModelNotAvailableError NetworkError PluginError PromptBlockedError "
        "ProviderError RateLimitError RobotaError SessionBusyError SessionNotFoundError StorageError "
        "StructuredOutputError ToolExecutionError ValidationError from_unknown get_error_code is_recoverable "
        "wrap_provider_error"
    ),
    "robota.core.provider": (
        "Capabilities ChatRequest Chunk MetadataChunk ModelSettings NativePayload NativeWebTool "
        "NativeWebTools Provider ProviderWrapper ReasoningChunk RetryNotice ServerToolChunk StopChunk "
        "TextChunk ToolInputChunk ToolSchema assert_native_web_tools_available get_provider_capabilities "
        "get_provider_secrets"
    ),
    "robota.core.reply": "chat",
    "robota.core.tool": "FileVersions Tool ToolClass ToolContext ToolResult Toolset",
    "robota.core.tool_call": "PreparedCall RunTool invoke_tool",
    "robota.core.agent_tool": "AgentTool",
    "robota.core.robota": "AgentConfig ModelChoice Robota RunLimits",
    "robota.core.run": "RunOptions RunResult RunState RunSteps StopRun",
    "robota.core.plugin": "Plugin PluginCategory PluginPriority Refusal",
    "robota.core.ports": "Ports REAL_WORLD",
    "robota.core.permissions": (
        "MODE_POLICY PermissionDecision PermissionExplanation PermissionMode Rule RuleProblem "
        "TRUST_TO_MODE Touches TrustLevel UNKNOWN_TOOL_FALLBACK check_rules evaluate_permission "
        "explain_permission narrowest_rules parse_rule"
    ),
    "robota.core.hooks": (
        "CommandExecutor HOOK_EVENTS HOOK_TYPES HookDefinition HookExecutor HookGroup HookOutcome "
        "HookResult HookRun HooksConfig HttpExecutor as_context check_hooks claude_timeout "
        "describe_unsupported hook merge_hooks parse_hooks run_hooks"
    ),
    "robota.core.models": (
        "CLAUDE_MODELS DEFAULT_CONTEXT_WINDOW DEFAULT_MAX_OUTPUT ModelDefinition ModelPrice "
        "format_token_count get_model_context_window get_model_max_output get_model_name is_known_model"
    ),
    "robota.core.credentials": (
        "ENV_REFERENCE_PREFIX format_env_reference has_usable_secret_reference is_env_reference "
        "resolve_env_reference"
    ),
    "robota.core.retry": "CircuitBreaker RetryPolicy RetryingProvider",
    "robota.core.cache": "CacheEntry CacheStorage CachingProvider MemoryCacheStorage",
    "robota.core.templates": "AgentTemplate AgentTemplates AppliedTemplate",
    "robota.core.modules": (
        "Module ModuleEvent ModuleRegistry WorkflowConverter WorkflowProblem WorkflowValidator"
    ),
    "robota.core.provider_definition": (
        "CredentialRequirement ModelCatalog ModelCatalogEntry ProbeResult ProviderConfig "
        "ProviderDefinition SetupHelpLink SetupStep find_provider_definition "
        "format_supported_provider_types"
    ),
    "robota.core.transport": "SessionLike TransportAdapter",
    "robota.core.context": (
        "ContextEstimate ContextWindowState estimate_context_tokens_from_messages "
        "estimate_serialized_context_tokens read_token_usage window_state"
    ),
    "robota.core.questions": (
        "ChoiceAnswer ChoiceQuestion FormAnswer FormQuestion PermissionAnswer PermissionQuestion "
        "PlanAnswer PlanQuestion Question QuestionOption"
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
