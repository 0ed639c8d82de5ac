"""Settings that the table does not have, because they are those of another program or of another part."""

from __future__ import annotations

_KEPT = """
    $schema advisorModel agent agentPushNotifEnabled allowManagedHooksOnly allowManagedMcpServersOnly
    allowManagedPermissionRulesOnly allowedChannelPlugins allowedMcpServers alwaysThinkingEnabled
    askUserQuestionTimeout autoCompactWindow autoConnectIde autoMemoryDirectory autoMemoryEnabled
    autoMode autoUpdates autoUpdatesChannel availableModels awaySummaryEnabled awsAuthRefresh
    awsCredentialExport axScreenReader blockedMarketplaces channelsEnabled claudeMd companyAnnouncements
    defaultShell deniedMcpServers description disableAutoMode disableDeepLinkRegistration
    enableAllProjectMcpServers enableArchitectTool enabledMcpjsonServers fallbackModel fastMode
    fastModePerSessionOptIn feedbackSurveyRate feedbackSurveyState fileSuggestion forceLoginMethod
    forceLoginOrgUUID forceRemoteSettingsRefresh gcpAuthRefresh hasCompletedOnboarding includeCoAuthoredBy
    inputNeededNotifEnabled keybindingFlavor messageIdleNotifThresholdMs
    minimumVersion modelOverrides otelHeadersHelper parentSettingsBehavior plansDirectory
    pluginTrustMessage policyHelper preferredNotifChannel prefersReducedMotion preset
    promptSuggestionEnabled prUrlTemplate remote remoteControlAtStartup requiredMaximumVersion
    requiredMinimumVersion respectGitignore showClearContextOnPlanAccept showSpinnerTree showThinkingSummaries
    showTurnDuration skipAutoPermissionPrompt skipDangerousModePermissionPrompt
    skippedMarketplaces skippedPlugins spinnerTipsEnabled spinnerTipsOverride spinnerVerbs sshConfigs
    statusline strictKnownMarketplaces strictPluginOnlyCustomization subagentStatusLine
    switchModelsOnFlag syntaxHighlightingDisabled taskContext teammateDefaultModel teammateMode
    terminalProgressBarEnabled transports tui verbose viewMode vimMode voice voiceEnabled
    wheelScrollAccelerationEnabled
    sandbox.allowAppleEvents sandbox.allowUnsandboxedCommands sandbox.enableWeakerNestedSandbox
    sandbox.enableWeakerNetworkIsolation sandbox.enabledPlatforms
    sandbox.filesystem.allowRead sandbox.ignoreViolations sandbox.ripgrep
    permissions.disableAutoMode permissions.skipDangerousModePermissionPrompt worktree.bgIsolation
    attribution.pr attribution.sessionUrl memory.budget
"""
KEPT: frozenset[str] = frozenset(_KEPT.split())
"""Kept, never complained about."""

WITHOUT_EFFECT: dict[str, str] = {
    "cleanupPeriodDays": "sessions are kept until you delete them",
    "outputStyle": "there are no output styles here: say in AGENTS.md or CLAUDE.md how answers should be",
    "provider": "it is written as a profile in `providers` now, which `currentProvider` names",
    "apiKeyHelper": "keys come from `providers`, the environment or `robota provider`, never from a program",
    "sandbox.credentials": "write deny rules for files; credentials of the environment are not passed on",
    "sandbox.excludedCommands": "every command runs in the sandbox, and a call may ask to leave it",
    "sandbox.network": "no sandbox here tells hosts apart: a deny rule for WebFetch turns the network off",
}
"""Keys that somebody may rely on and that do nothing here: said, with what does."""
