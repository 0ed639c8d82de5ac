"""The command line: arguments in; one turn, or a plain line prompt, out.

Answers go to stdout, everything else to stderr. Exit codes are in docs/cli.md.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Literal

import click
from click.core import ParameterSource
from msgspec import Struct

from robota.cli.screen import prepare_output, say_warnings_in_one_line
from robota.cli.signals import INTERRUPTED, Signalled, Signals
from robota.core.errors import RobotaError
from robota.core.permissions import MODE_POLICY, PermissionMode, check_rules
from robota.core.permissions.rules import find_unknown_tool

SUBCOMMANDS: dict[str, str] = {
    "model": "robota.cli.model",
    "provider": "robota.cli.provider",
    "testing": "robota.cli.testing",
}
"""First words that are no prompt, and the module whose `command` answers to them."""
PIPED_BYTES = 8 << 20
"""What is piped in at most; the largest windows hold less."""
TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read", "TodoWrite", "WebFetch", "WebSearch", "Write")


class Options(Struct, frozen=True, kw_only=True):
    prompt: str
    print_mode: bool
    provider: str | None
    model: str | None
    base_url: str | None
    mode: PermissionMode
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    pass_env: tuple[str, ...]
    max_turns: int
    context_window: int | None
    continue_last: bool
    resume: str | None
    no_save: bool
    sandbox: Literal["auto", "required", "off"]
    auto_allow: bool
    trust: bool
    typed: frozenset[str] = frozenset()
    """Names of options that stand on the command line, so that they are not from the environment."""


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Commands of their own: robota model (models here and at services), robota provider (who can "
    "answer), robota testing (a scripted model to test against); each tells more with --help.",
)
@click.argument("words", nargs=-1, metavar="[PROMPT]")
@click.option("-p", "--print", "print_mode", is_flag=True, help="Run one prompt, print the answer, exit.")
@click.option(
    "--provider", metavar="TYPE", envvar="ROBOTA_PROVIDER", help="Who answers.  [env: ROBOTA_PROVIDER]"
)
@click.option("--model", envvar="ROBOTA_MODEL", help="Model to use.  [env: ROBOTA_MODEL]")
@click.option(
    "--base-url",
    envvar="ROBOTA_BASE_URL",
    help="Address of the provider; alone, of an OpenAI-compatible service.  [env: ROBOTA_BASE_URL]",
)
@click.option(
    "--permission-mode",
    "mode",
    type=click.Choice(list(MODE_POLICY)),
    envvar="ROBOTA_PERMISSION_MODE",
    default="default",
    show_default=True,
    help="What may run without a question.  [env: ROBOTA_PERMISSION_MODE]",
)
@click.option(
    "--allow", multiple=True, metavar="RULE", help="Allow rule, e.g. 'Bash(git log *)'; repeatable."
)
@click.option("--deny", multiple=True, metavar="RULE", help="Deny rule, e.g. 'Read(.env)'; repeatable.")
@click.option(
    "--pass-env", multiple=True, metavar="NAME", help="A credential commands and hooks may have; repeatable."
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "required", "off"]),
    envvar="ROBOTA_SANDBOX",
    default="auto",
    show_default=True,
    help="Confine commands: where one works, always or never.  [env: ROBOTA_SANDBOX]",
)
@click.option(
    "--auto-allow-sandboxed",
    "auto_allow",
    is_flag=True,
    help="Run commands that the sandbox confines without a question.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Trust this directory for this call: its hooks, servers and allow rules act.",
)
@click.option("--max-turns", type=click.IntRange(min=0), default=0, help="Model calls at most; 0: no limit.")
@click.option(
    "--context-window", type=click.IntRange(min=1000), help="Tokens, for a model robota does not know."
)
@click.option(
    "-c", "--continue", "continue_last", is_flag=True, help="Go on with the last session in this directory."
)
@click.option("-r", "--resume", metavar="ID", help="Go on with the session of that id.")
@click.option("--no-save", is_flag=True, help="Keep nothing of this session on disk.")
@click.option("-V", "--version", is_flag=True, help="Show the version and exit.")
@click.pass_obj
def robota(signals: Signals, /, version: bool, words: tuple[str, ...], **values: Any) -> int:
    """A coding assistant in the terminal.

    Without a key, a base URL or a local model it runs on a scripted offline model that shows how a turn
    works.
    """
    if version:
        from robota._version import __version__  # noqa: PLC0415 - as in __main__

        click.echo(f"robota {__version__}")
        return 0
    _check_rules("--allow", values["allow"], "allow")
    _check_rules("--deny", values["deny"], "deny")
    if len(words) > 1:
        raise click.UsageError(
            f"A prompt is one argument: put it in quotes. {words[0]!r} is not a command; there are "
            f"{', '.join(SUBCOMMANDS)}."
        )
    if values["continue_last"] and values["resume"] is not None:
        raise click.UsageError("-c continues the last session and -r another one: leave one of them out.")
    source = click.get_current_context().get_parameter_source
    typed = frozenset(name for name in values if source(name) is ParameterSource.COMMANDLINE)
    if source("sandbox") is ParameterSource.ENVIRONMENT:  # settings do not read that variable
        typed |= {"sandbox"}
    options = Options(**values, prompt=_with_piped_input("".join(words)), typed=typed)
    if options.print_mode and not options.prompt.strip():
        raise click.UsageError('Nothing to do: give a prompt, as in robota -p "list the python files".')
    if not options.print_mode and not sys.stdin.isatty():
        raise click.UsageError("This is not a terminal: use robota -p PROMPT to run one prompt.")
    return _run(options, signals)


def _check_rules(option: str, rules: tuple[str, ...], kind: Literal["allow", "deny"]) -> None:
    """Rules the user typed are wrong or right before anything starts."""
    for wrong in check_rules(rules, kind=kind):
        raise click.BadParameter(f"{wrong.text!r}: {wrong.reason}", param_hint=option)
    for rule in rules:
        if problem := find_unknown_tool(rule.partition("(")[0].strip(), TOOLS):
            raise click.BadParameter(f"{rule!r}: {problem}", param_hint=option)


def _with_piped_input(prompt: str) -> str:
    """What is piped in comes before the words on the command line."""
    if sys.stdin is None or sys.stdin.isatty():
        return prompt
    piped = _read_bounded()
    return f"{piped.rstrip()}\n\n{prompt}" if piped.strip() and prompt else prompt or piped


def _read_bounded() -> str:
    data = sys.stdin.buffer.read(PIPED_BYTES + 1)
    if len(data) > PIPED_BYTES:
        raise click.UsageError(
            f"More than {PIPED_BYTES >> 20} MB were piped in, which no model can read: pass a part of it, or "
            "name the file in the prompt."
        )
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _run(options: Options, signals: Signals) -> int:
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    from robota.cli.assistant import assist  # noqa: PLC0415

    say_warnings_in_one_line()
    try:
        code = asyncio.run(assist(options, signals))
    except asyncio.CancelledError:
        if not signals.code:
            raise
        code = 0
    return signals.code or code


def run(signals: Signals) -> None:
    """The whole program, with every way it may end turned into an exit code."""
    prepare_output()
    try:
        code = _call(sys.argv[1:], signals)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except Signalled as cause:
        code = 128 + cause.number
    except click.Abort:
        code = INTERRUPTED
    except RobotaError as error:
        code = _fail(str(error))
    except BrokenPipeError:
        code = 1  # the reader of our output is gone; there is nobody to tell
    except OSError as error:
        place = "the working directory" if isinstance(error, FileNotFoundError) else "the output"
        code = _fail(f"{error.strerror}: {error.filename or place}")
    _leave(int(code or 0))


def _call(arguments: list[str], signals: Signals) -> int | None:
    """The subcommand that the first word names, else the assistant itself."""
    module = SUBCOMMANDS.get(arguments[0]) if arguments else None
    if module is None:
        code: int | None = robota(standalone_mode=False, obj=signals)
        return code
    from importlib import import_module  # noqa: PLC0415 - only for subcommands

    group = click.Group("robota")
    group.add_command(import_module(module).command, arguments[0])
    with signals.acting(signals.unwind):
        code = group(standalone_mode=False)
    return code


def _fail(sentence: str) -> int:
    with suppress(OSError):  # the terminal may be what failed
        print(f"robota: {sentence}", file=sys.stderr)
    return 1


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # or Python complains at exit
            code = code or 1
    sys.exit(code)
