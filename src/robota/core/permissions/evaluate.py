"""The permission evaluator: deny, a deny that cannot be evaluated, ask, allow, mode; the first answer counts.

A function of its arguments, the home directory and the links on disk. It never raises for any tool input; a
fault of its own is a denial and is logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robota.core.permissions.calls import PATH_ARGUMENTS, SEARCHING_TOOLS, WRITING_TOOLS, Call, Gap, Subject
from robota.core.permissions.explain import (
    PermissionExplanation,
    explain_doubt,
    explain_gap,
    explain_match,
    explain_mode,
    explain_problem,
)
from robota.core.permissions.modes import (
    CLASS_POLICY,
    PermissionDecision,
    PermissionMode,
    classify_tool,
    decide_by_mode,
)
from robota.core.permissions.paths import make_place
from robota.core.permissions.rules import RuleSet, load_rules

_MODES: dict[str, PermissionMode] = {mode: mode for mode in CLASS_POLICY}


def explain_permission(
    tool_name: str,
    tool_input: Mapping[str, object],
    *,
    mode: str = "default",
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    ask: Sequence[str] = (),
    cwd: str | None = None,
    home: str | None = None,
    additional_dirs: Sequence[str] = (),
    tool_class: str | None = None,
) -> PermissionExplanation:
    """Decide a call and say why."""
    try:
        call = make_call(
            tool_name,
            tool_input,
            mode=mode,
            allow=allow,
            deny=deny,
            ask=ask,
            cwd=cwd,
            home=home,
            additional_dirs=additional_dirs,
            tool_class=tool_class,
        )
        if call is None:
            known = ", ".join(CLASS_POLICY)
            return PermissionExplanation(
                "deny", reason=f"There is no permission mode {mode!r}; use one of {known}."
            )
        return decide(call)
    except Exception:
        import logging  # noqa: PLC0415 - only when something is wrong

        logging.getLogger("robota.permissions").exception(
            "The permission evaluator failed on a %s call.", tool_name
        )
        return PermissionExplanation(
            "deny", reason="The permission rules could not be evaluated; the fault is in the log."
        )


def evaluate_permission(
    tool_name: str,
    tool_input: Mapping[str, object],
    *,
    mode: str = "default",
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    ask: Sequence[str] = (),
    cwd: str | None = None,
    home: str | None = None,
    additional_dirs: Sequence[str] = (),
    tool_class: str | None = None,
) -> PermissionDecision:
    """Whether a tool call runs (`auto`), is asked about (`approve`) or is refused (`deny`)."""
    return explain_permission(
        tool_name,
        tool_input,
        mode=mode,
        allow=allow,
        deny=deny,
        ask=ask,
        cwd=cwd,
        home=home,
        additional_dirs=additional_dirs,
        tool_class=tool_class,
    ).decision


def make_call(
    tool_name: str,
    tool_input: Mapping[str, object],
    *,
    mode: str,
    allow: Sequence[str],
    deny: Sequence[str],
    ask: Sequence[str],
    cwd: str | None,
    home: str | None,
    additional_dirs: Sequence[str],
    tool_class: str | None,
) -> Call | None:
    """The call to judge; None when the mode is not known."""
    known_mode = _MODES.get(mode)
    if known_mode is None:
        return None
    return Call(
        tool_name,
        tool_input if isinstance(tool_input, Mapping) else {},
        known_mode,
        classify_tool(tool_name, tool_class),
        make_place(cwd, home, additional_dirs),
        load_rules(allow, "allow"),
        load_rules(deny, "deny"),
        load_rules(ask, "ask"),
    )


def decide(call: Call) -> PermissionExplanation:
    by_mode = decide_by_mode(call.mode, call.tool_class)
    ruled = call.deny.rules or call.ask.rules or call.deny.problems or call.ask.problems
    guarded = call.mode == "acceptEdits" and call.tool_class == "modify"
    if by_mode == "auto" and not ruled and not guarded and not call.allow.rules:
        return PermissionExplanation("auto", reason=explain_mode(call, "auto"))
    subject = open_subject(call)
    return (
        _apply(call, subject, call.deny, "deny")
        or _apply(call, subject, call.ask, "approve")
        or _apply_allow(call, subject, by_mode)
    )


def open_subject(call: Call) -> Subject:
    """What the call is about; the shell's machinery is loaded only for shell commands."""
    if call.tool == "Bash":
        from robota.core.permissions.shell_subject import ShellSubject  # noqa: PLC0415 - other tools do without

        return ShellSubject(call)
    if call.tool == "WebFetch":
        from robota.core.permissions.web_subject import WebSubject  # noqa: PLC0415 - other tools do without

        return WebSubject(call)
    if _is_about_files(call):
        from robota.core.permissions.file_subject import FileSubject  # noqa: PLC0415 - other tools do without

        return FileSubject(call)
    from robota.core.permissions.plain_subject import PlainSubject  # noqa: PLC0415 - other tools do without

    return PlainSubject(call)


def _is_about_files(call: Call) -> bool:
    if call.tool in WRITING_TOOLS or call.tool in SEARCHING_TOOLS or call.tool in ("Read", "NotebookRead"):
        return True
    if call.tool_class not in ("inspect", "modify"):
        return False
    return any(call.arguments.get(name) is not None for name in PATH_ARGUMENTS)


def _apply(
    call: Call, subject: Subject, rules: RuleSet, answer: PermissionDecision
) -> PermissionExplanation | None:
    """Deny or ask rules: a certain hit gives the answer, a doubtful one asks; in plan mode both refuse."""
    asked: PermissionDecision = "deny" if call.mode == "plan" else "approve"
    given: PermissionDecision = answer if answer == "deny" else asked
    doubt: PermissionExplanation | None = None
    for rule in rules.rules:
        if rule.pattern is None and rule.names(call.tool):
            return PermissionExplanation(
                given, rule.text, None, explain_match(rule, None, denied=answer == "deny")
            )
        hit = subject.hit(rule)
        if hit is None:
            continue
        if hit.certain:
            return PermissionExplanation(
                given, rule.text, hit.part, explain_match(rule, hit.part, denied=answer == "deny")
            )
        doubt = doubt or PermissionExplanation(asked, rule.text, hit.part, explain_doubt(rule, hit.reason))
    for problem in rules.problems:
        if problem.concerns(call.tool):
            doubt = doubt or PermissionExplanation(asked, problem.text, None, explain_problem(problem))
    return doubt


def _apply_allow(call: Call, subject: Subject, by_mode: PermissionDecision) -> PermissionExplanation:
    cover = subject.cover()
    if not isinstance(cover, Gap):
        return PermissionExplanation("auto", cover.rule, cover.part, f"The rule {cover.rule} allows it.")
    if by_mode == "auto":
        gap = subject.mode_gap()
        if gap is None:
            return PermissionExplanation("auto", reason=explain_mode(call, "auto"))
        return PermissionExplanation("approve", None, gap.part, explain_gap(gap))
    reason = (
        explain_gap(cover) if cover.part is not None and call.allow.rules else explain_mode(call, by_mode)
    )
    return PermissionExplanation(by_mode, None, cover.part, reason)
