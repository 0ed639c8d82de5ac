"""The question before a call, for a terminal: `InteractiveSession(permission_handler=prompt_for_approval)`.

Nothing is hidden in it: control and invisible characters are written out, and the whole command is shown with
the directory, the part that asks and the reason. Anything but a clear yes is a no.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from anyio import to_thread

from robota.core.questions import PermissionQuestion
from robota.sdk.view.neutral import visible

_ALWAYS = "Allow for this session"


def describe_approval(question: PermissionQuestion) -> list[str]:
    """The question, line by line."""
    lines = ["", f"[Permission Required] Tool: {visible(question.tool_name)}"]
    if question.agent_id:
        lines.append(f"  for the subagent {visible(question.agent_id)}")
    for name, value in question.tool_input.items():
        lines += (f"  {visible(name)}:", *_quote(str(value)))
    if not question.tool_input:
        lines.append("  (no arguments)")
    if question.diff:
        lines += ("  changes:", *_quote(question.diff))
    lines.append(f"  in {visible(question.cwd)}")
    given = [str(value) for value in question.tool_input.values()]
    is_said = question.part in given or question.reason.endswith(f": {question.part}.")
    if question.part and not is_said:
        lines.append(f"  asked about: {visible(question.part)}")
    return [*lines, f"  {visible(question.reason)}"] if question.reason else lines


def _quote(text: str) -> list[str]:
    return [f"    | {visible(line)}" for line in text.split("\n")]


async def prompt_for_approval(question: PermissionQuestion) -> bool | str:
    """Ask on the terminal: once, for this session (if a narrow rule can say what), or not."""
    choices = ["Allow once", *([_ALWAYS] if question.rule else []), "Deny"]
    lines = describe_approval(question)
    for number, choice in enumerate(choices, 1):
        rule = f": and no more questions about {visible(question.rule or '')}" if choice == _ALWAYS else ""
        lines.append(f"  {number}. {choice}{rule}")
    _write("\n".join([*lines, ""]))
    answer = await to_thread.run_sync(_read_line, abandon_on_cancel=True)
    chosen = choices[int(answer) - 1] if answer in map(str, range(1, len(choices) + 1)) else "Deny"
    return "allow-session" if chosen == _ALWAYS else chosen == "Allow once"


def _read_line() -> str:
    """What is typed from now on; what was typed before was not an answer."""
    with suppress(ImportError, OSError, ValueError):  # not a terminal
        import termios  # noqa: PLC0415 - there is none on Windows

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    _write("  Which? ")
    return sys.stdin.readline().strip()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
