"""The command line: arguments in; one turn, or a plain line prompt, out.

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 the run failed, 2 wrong usage,
130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import Struct

from robota.core.errors import RobotaError
from robota.core.permissions import MODE_POLICY, PermissionMode, check_rules

if TYPE_CHECKING:
    from robota.cli.lines import LinePrinter
    from robota.sdk.assembly import Session

LEAVE = ("/exit", "/quit")
SUBCOMMANDS: dict[str, str] = {"model": "robota.cli.model", "testing": "robota.cli.testing"}
"""First words that are no prompt, and the module whose `command` answers to them."""
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
    max_turns: int
    context_window: int | None
    continue_last: bool
    resume: str | None
    no_save: bool


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Commands of their own: robota model (small models on this machine), robota testing (a scripted "
    "model to test against); each tells more with --help.",
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
def robota(version: bool, words: tuple[str, ...], **values: Any) -> int:
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
            f"A prompt is one argument: put it in quotes. {words[0]!r} is no command; there are "
            f"{' and '.join(SUBCOMMANDS)}."
        )
    if values["continue_last"] and values["resume"] is not None:
        raise click.UsageError("-c goes on with the last session and -r with another: leave one of them out.")
    options = Options(**values, prompt=_with_piped_input("".join(words)))
    if options.print_mode and not options.prompt.strip():
        raise click.UsageError('Nothing to do: give a prompt, as in robota -p "list the python files".')
    if not options.print_mode and not sys.stdin.isatty():
        raise click.UsageError("This is no terminal: use robota -p PROMPT to run one prompt.")
    return _run(_session(options))


def _check_rules(option: str, rules: tuple[str, ...], kind: Literal["allow", "deny"]) -> None:
    """Rules the user typed are wrong or right before anything starts."""
    for problem in check_rules(rules, kind=kind):
        raise click.BadParameter(f"{problem.text!r}: {problem.reason}", param_hint=option)
    for rule in rules:
        name = rule.partition("(")[0]
        if name not in TOOLS and not {"_", "*"} & set(name):
            like = next((known for known in TOOLS if known.lower() == name.lower()), None)
            hint = f"did you mean {like}?" if like else f"there are {', '.join(TOOLS)}"
            raise click.BadParameter(f"{rule!r} names no tool; {hint}", param_hint=option)


def _with_piped_input(prompt: str) -> str:
    """What is piped in comes before the words on the command line."""
    if sys.stdin is None or sys.stdin.isatty():
        return prompt
    piped = sys.stdin.read()
    return f"{piped.rstrip()}\n\n{prompt}" if piped.strip() and prompt else prompt or piped


def _run(work: Coroutine[Any, Any, int]) -> int:
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    return asyncio.run(work)


async def _session(options: Options) -> int:
    from robota.cli.lines import LinePrinter, ask_on_terminal, confirm  # noqa: PLC0415 - see _run
    from robota.cli.provider_choice import ProviderArguments, chosen_provider  # noqa: PLC0415
    from robota.cli.session_choice import open_session  # noqa: PLC0415

    printer = LinePrinter(sys.stdout, sys.stderr)
    given = ProviderArguments(
        provider=options.provider,
        model=options.model,
        base_url=options.base_url,
        environment=os.environ,
        confirm=None if options.print_mode else confirm,
        report=printer.remark,
    )
    async with chosen_provider(given) as chosen:
        if chosen.note:
            printer.remark(chosen.note)
        approve = None if options.print_mode else ask_on_terminal
        session = open_session(options, chosen, approve=approve, on_problem=printer.remark)
        try:
            code = await _take_turns(session, options, printer)
        finally:
            await session.shutdown("prompt_input_exit")
        if session.trouble:
            what = session.trouble.partition(". ")[0]  # the rest is for a session that goes on
            print(f"robota: This session was not saved: {what}.", file=sys.stderr)
            return code or 1
        return code


async def _take_turns(session: Session, options: Options, printer: LinePrinter) -> int:
    from robota.cli.lines import read_line, take_turn  # noqa: PLC0415 - see _run

    if options.print_mode:
        return await take_turn(session, options.prompt, printer)
    printer.remark("Type a prompt, or /exit to leave.")
    prompt = options.prompt
    while True:
        if prompt.strip():
            await take_turn(session, prompt, printer)
        words = read_line("robota> ")
        if words is None or words.strip() in LEAVE:
            return 0
        prompt = words


def run() -> None:
    """The whole program, with every way it may end turned into an exit code."""
    _prepare_output()
    try:
        code = _command(sys.argv[1:])(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except RobotaError as error:
        print(f"robota: {error}", file=sys.stderr)
        code = 1
    except BrokenPipeError:
        code = 1  # the reader of our output is gone; there is nobody to tell
    except OSError as error:
        place = "the working directory" if isinstance(error, FileNotFoundError) else "the output"
        print(f"robota: {error.strerror}: {error.filename or place}", file=sys.stderr)
        code = 1
    _leave(int(code or 0))


def _command(arguments: list[str]) -> click.Command:
    """The subcommand that the first word names, else the assistant itself."""
    module = SUBCOMMANDS.get(arguments[0]) if arguments else None
    if module is None:
        return robota
    from importlib import import_module  # noqa: PLC0415 - only for subcommands

    group = click.Group("robota")
    group.add_command(import_module(module).command, arguments[0])
    return group


def _prepare_output() -> None:
    """Output that takes every character, and that exists: a closed stream is replaced by nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - lives with us
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _leave(code: int) -> None:
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at exit
        code = code or 1
    sys.exit(code)
