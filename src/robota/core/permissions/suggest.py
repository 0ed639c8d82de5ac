"""The narrowest rules that would have made a question unnecessary: what "always allow" saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from robota.core.permissions.calls import Call, Cover
from robota.core.permissions.evaluate import decide, make_call, open_subject
from robota.core.permissions.file_subject import FileSubject
from robota.core.permissions.paths import in_workspace, is_inside, is_protected
from robota.core.permissions.plain_subject import PlainSubject
from robota.core.permissions.rules import load_rules
from robota.core.permissions.shell_subject import ShellSubject
from robota.core.permissions.web_subject import WebSubject
from robota.core.shell.invocations import Invocation
from robota.core.shell.programs import load_programs, program_name

MAXIMUM_RULES = 5


def narrowest_rules(
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
) -> tuple[str, ...]:
    """The rules to offer; none when no narrow rule would change the answer or can be written safely."""
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
    if call is None or decide(call).decision != "approve":
        return ()
    rules = _propose(call)
    if not rules or len(rules) > MAXIMUM_RULES:
        return ()
    granted = replace(call, allow=load_rules([*allow, *rules], "allow"))
    return tuple(rules) if decide(granted).decision == "auto" else ()


def _propose(call: Call) -> list[str]:
    subject = open_subject(call)
    if isinstance(subject, ShellSubject):
        return [] if subject.problem is not None else _propose_parts(call, subject)
    if isinstance(subject, FileSubject):
        paths = [_shorten(call, forms.lexical[0]) for _, forms in subject.paths]
        return (
            []
            if any("*" in path for path in paths)
            else [f"{call.tool}({path})" for path in dict.fromkeys(paths)]
        )
    if isinstance(subject, WebSubject):
        return [] if subject.host is None else [f"{call.tool}(domain:{subject.host})"]
    if isinstance(subject, PlainSubject) and subject.value is not None:
        return [] if "*" in subject.value else [f"{call.tool}({subject.value})"]
    return [call.tool]


def _propose_parts(call: Call, subject: ShellSubject) -> list[str]:
    """One rule for each part that no rule covers yet, and for each file a redirection would write."""
    rules: dict[str, None] = {}
    for invocation in subject.invocations:
        if not isinstance(subject.cover_part(invocation), Cover):
            rules[f"Bash({_source(invocation)})"] = None
    if any(_is_too_wide(invocation) for invocation in subject.invocations):
        return []
    for touch in subject.written:
        for path, forms in subject.resolve_touch(touch):
            if is_protected(forms) or not in_workspace(forms, call.place) or "*" in path:
                return []
            rules[f"Write({_shorten(call, forms.lexical[0])})"] = None
    return list(rules)


def _source(invocation: Invocation) -> str:
    command = invocation.command
    return " ".join([*(assignment.raw for assignment in command.assignments), command.raw])


def _is_too_wide(invocation: Invocation) -> bool:
    """Whether a wildcard in the source would make the rule cover a program that runs anything it is given."""
    programs, name = load_programs(), program_name(invocation.words[0].text)
    runs_anything = name in programs.runners or name in programs.shells or name in programs.interpreters
    return runs_anything and "*" in invocation.command.raw


def _shorten(call: Call, path: str) -> str:
    """The path relative to the working directory where it lies below it."""
    cwd = call.place.cwd
    return path[len(cwd.rstrip("/")) + 1 :] if is_inside(path, cwd) and path != cwd else path
