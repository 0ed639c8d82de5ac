"""The permission evaluator: deny, a deny that cannot be evaluated, ask, allow, mode; the first answer counts.

A function of its arguments, the home directory and the links on disk. It never raises for any tool input; a
fault of its own is a denial and is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from robota.core.permissions.matchers import Call, FileMatcher, Gap, Hit, Matcher, TextMatcher
from robota.core.permissions.modes import (
    CLASS_POLICY,
    PermissionDecision,
    PermissionMode,
    classify_tool,
    decide_by_mode,
)
from robota.core.permissions.paths import make_place
from robota.core.permissions.rules import NO_RULES, RuleSet, load_rules
from robota.core.permissions.subjects import (
    FILE_KINDS,
    PATHS,
    STANDARD_TOOLS,
    TOUCHES,
    Touches,
    find_subjects,
    kind_of,
)

MAXIMUM_OFFER = 5
"""A question that would need more rules than this is better asked again."""

_MODES: dict[str, PermissionMode] = {mode: mode for mode in CLASS_POLICY}
_CLASSES = {
    "inspect": "looking at things",
    "modify": "changing files",
    "execute": "running programs",
    None: "using tools of no known class",
}
_VERBS = {"auto": "allows", "approve": "asks before", "deny": "forbids"}


class Terms(TypedDict, total=False):
    """What a call is judged by."""

    mode: str
    """One of the four modes; `default` when it is left out."""
    allow: Sequence[str]
    deny: Sequence[str]
    ask: Sequence[str]
    cwd: str | None
    home: str | None
    additional_dirs: Sequence[str]
    """Directories that belong to the workspace besides `cwd`."""
    tool_class: str | None
    """What a tool of ours declares; known tools and MCP tools cannot change theirs."""
    touches: Sequence[Touches]
    """What a tool declares to touch, which restricts it."""


_TERMS = frozenset(Terms.__annotations__)


class PermissionExplanation(Struct, frozen=True, gc=False):
    """A decision and what it rests on."""

    decision: PermissionDecision
    rule: str | None = None
    """The rule that decided, as written."""
    part: str | None = None
    """The part of the command, the path or the argument that decided."""
    reason: str = ""
    """One sentence for people."""


def evaluate_permission(
    tool_name: str, tool_input: Mapping[str, object], **terms: Unpack[Terms]
) -> PermissionDecision:
    """Whether a tool call runs (`auto`), is asked about (`approve`) or is refused (`deny`)."""
    return _explain(tool_name, tool_input, terms).decision


def explain_permission(
    tool_name: str, tool_input: Mapping[str, object], **terms: Unpack[Terms]
) -> PermissionExplanation:
    """Decide a call and say why."""
    return _explain(tool_name, tool_input, terms)


def _explain(tool_name: str, tool_input: Mapping[str, object], terms: Terms) -> PermissionExplanation:
    if not _TERMS.issuperset(terms):
        raise TypeError(f"A call is judged by {', '.join(sorted(_TERMS))}, not by {', '.join(terms)}.")
    try:
        call = make_call(tool_name, tool_input, terms)
        if call is None:
            known = ", ".join(CLASS_POLICY)
            return PermissionExplanation(
                "deny", reason=f"There is no permission mode {terms['mode']!r}; use one of {known}."
            )
        return _decide(call)
    except Exception:
        import logging  # noqa: PLC0415 - only when something is wrong

        logging.getLogger("robota.permissions").exception(
            "The permission evaluator failed on a %s call.", tool_name
        )
        return PermissionExplanation(
            "deny", reason="The permission rules could not be evaluated; the fault is in the log."
        )


def narrowest_rules(
    tool_name: str, tool_input: Mapping[str, object], **terms: Unpack[Terms]
) -> tuple[str, ...]:
    """The narrowest rules that would make a question unnecessary: what "always allow" saves.

    There are none when no narrow rule would change the answer or can be written safely.
    """
    call = make_call(tool_name, tool_input, terms)
    if call is None or _decide(call).decision != "approve":
        return ()
    rules = _open_matcher(call).narrowest()
    if not rules or len(rules) > MAXIMUM_OFFER:
        return ()
    granted = replace(call, allow=load_rules([*terms.get("allow", ()), *rules], "allow"))
    return tuple(rules) if _decide(granted).decision == "auto" else ()


def make_call(tool_name: str, tool_input: Mapping[str, object], terms: Terms) -> Call | None:
    """The call to judge; None when the mode is not known."""
    mode = _MODES.get(terms.get("mode", "default"))
    if mode is None:
        return None
    allow, deny, ask = terms.get("allow"), terms.get("deny"), terms.get("ask")
    return Call(
        tool_name,
        tool_input if type(tool_input) is dict or isinstance(tool_input, Mapping) else {},
        mode,
        classify_tool(tool_name, terms.get("tool_class")),
        make_place(terms.get("cwd"), terms.get("home"), terms.get("additional_dirs", ())),
        NO_RULES if allow is None else load_rules(allow, "allow"),
        NO_RULES if deny is None else load_rules(deny, "deny"),
        NO_RULES if ask is None else load_rules(ask, "ask"),
        tuple(terms.get("touches", ())),
    )


def _decide(call: Call) -> PermissionExplanation:
    by_mode = decide_by_mode(call.mode, call.tool_class)
    deny, ask = call.deny, call.ask
    ruled = deny.rules or ask.rules or deny.problems or ask.problems
    guarded = call.mode == "acceptEdits" and (call.tool_class == "modify" or call.touches)
    if by_mode == "auto" and not ruled and not guarded and not call.allow.rules:
        return PermissionExplanation("auto", reason=_explain_mode(call, "auto"))
    matcher = _open_matcher(call)
    declared = [(each, _open_matcher(each)) for each in _declared_calls(call)] if call.touches else []
    for rules, denies in ((deny, True), (ask, False)) if ruled else ():
        if rules.rules or rules.problems:
            found = _apply(call, matcher, rules, denies=denies)
            for each, other in declared:
                answer = _apply(each, other, rules, denies=denies)
                if found is None or (answer is not None and answer.decision == "deny"):
                    found = answer
            if found is not None:
                return found
    return _apply_allow(call, matcher, [other for _, other in declared] if declared else (), by_mode)


def _declared_calls(call: Call) -> Iterator[Call]:
    """What the tool declares to touch, as calls of the built-in tools that would touch the same."""
    for subject in find_subjects(call.tool, call.arguments, None, call.touches):
        if subject.declared:
            tool = STANDARD_TOOLS[subject.kind]
            arguments = {TOUCHES[tool].fields[0]: subject.value}
            yield replace(
                call, tool=tool, arguments=arguments, tool_class=classify_tool(tool, None), touches=()
            )


def _open_matcher(call: Call) -> Matcher:
    """The matcher for what the call is about; the shell's machinery is loaded only for shell commands."""
    kind = kind_of(call.tool)
    if kind == "command" or kind == "url":
        return _load_matcher(kind)(call)
    by_name = kind is None and call.tool_class in ("inspect", "modify")
    if kind in FILE_KINDS or (by_name and any(call.arguments.get(name) is not None for name in PATHS)):
        return FileMatcher(call)
    return TextMatcher(call)


@lru_cache
def _load_matcher(kind: Literal["command", "url"]) -> Callable[[Call], Matcher]:
    if kind == "command":
        from robota.core.permissions.command_matcher import CommandMatcher  # noqa: PLC0415 - see above

        return CommandMatcher
    from robota.core.permissions.url_matcher import UrlMatcher  # noqa: PLC0415 - loads urllib

    return UrlMatcher


def _apply(call: Call, matcher: Matcher, rules: RuleSet, *, denies: bool) -> PermissionExplanation | None:
    """Deny or ask rules: a certain hit gives the answer, a doubtful one asks; in plan mode both refuse."""
    asked: PermissionDecision = "deny" if call.mode == "plan" else "approve"
    given: PermissionDecision = "deny" if denies else asked
    verb = "denies" if denies else "asks about"
    doubt: PermissionExplanation | None = None
    for rule in matcher.relevant(rules):
        whole = rule.pattern is None and rule.names(call.tool)
        hit = Hit(None) if whole else matcher.hit(rule)
        if hit is None:
            continue
        if hit.certain:
            reason = f"The rule {rule.text} {verb} {hit.part or 'every call'}."
            return PermissionExplanation(given, rule.text, hit.part, reason)
        reason = f"The rule {rule.text} may apply to {hit.part or 'this call'}: {hit.reason}."
        doubt = doubt or PermissionExplanation(asked, rule.text, hit.part, reason)
    for problem in rules.problems:
        if doubt is None and problem.concerns(call.tool):
            reason = f"The rule {problem.text} cannot be used: {problem.reason}."
            doubt = PermissionExplanation(asked, problem.text, None, reason)
    return doubt


def _apply_allow(
    call: Call, matcher: Matcher, declared: Sequence[Matcher], by_mode: PermissionDecision
) -> PermissionExplanation:
    """Allow rules cover the call itself, never what its tool declares; the mode must reach both."""
    cover = matcher.cover()
    if not isinstance(cover, Gap):
        return _explain_cover(cover.rule, cover.part)
    if by_mode == "auto":
        gaps = (each.mode_gap() for each in (matcher, *declared) if isinstance(each, FileMatcher))
        gap = next(filter(None, gaps), None)
        if gap is None:
            return PermissionExplanation("auto", reason=_explain_mode(call, "auto"))
        return PermissionExplanation("approve", None, gap.part, _explain_gap(gap))
    named = cover.part is not None and call.allow.rules
    reason = _explain_gap(cover) if named else _explain_mode(call, by_mode)
    return PermissionExplanation(by_mode, None, cover.part, reason)


@lru_cache(maxsize=256)
def _explain_cover(rule: str, part: str | None) -> PermissionExplanation:
    """Most answers, and few different ones."""
    return PermissionExplanation("auto", rule, part, f"The rule {rule} allows it.")


def _explain_mode(call: Call, decision: PermissionDecision) -> str:
    return f"No rule covers it, and the mode {call.mode} {_VERBS[decision]} {_CLASSES[call.tool_class]}."


def _explain_gap(gap: Gap) -> str:
    text = gap.reason if gap.part is None else f"{gap.reason}: {gap.part}"
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
