"""The command line: arguments in, an exit code out. Answers go to stdout, everything else to stderr.

Exit codes are in docs/cli.md.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from robota.cli.flags import Parsed, UsageError, parse
from robota.cli.signals import INTERRUPTED, Signalled, Signals
from robota.cli.subcommands import SUBCOMMANDS

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    import click

    from robota.cli.module_cache import ModuleCache

WRONG_USAGE = 2
SIGNALLED = 128
"""And the number of the signal: the exit code of what a signal ended."""
WORDS_OF_OTHERS = {
    "help": "--help",
    "version": "--version",
    "login": "setup",
    "logout": "auth rm NAME",
    "exec": '-p "PROMPT"',
    "resume": "-r",
    "continue": "-c",
    "fork": "-r --fork-session",
}
"""Words that are commands of other assistants, and what does the same here."""


def run(signals: Signals, cache: ModuleCache | None) -> None:
    """The whole program, with every way it may end turned into an exit code."""
    arguments = sys.argv[1:]
    try:
        code = _answer(arguments, signals)
    except UsageError as error:
        code = _refuse(arguments, str(error), WRONG_USAGE)
    except Signalled as cause:
        code = SIGNALLED + cause.number
    except BrokenPipeError:
        code = 1  # the reader of our output is gone; there is nobody to tell
    except OSError as error:
        place = "the working directory" if isinstance(error, FileNotFoundError) else "the output"
        code = _fail(f"{error.strerror}: {error.filename or place}")
    _leave(code, cache)


def _answer(arguments: list[str], signals: Signals) -> int:
    """The subcommand that the first word names, else the assistant itself."""
    from robota.cli.screen import prepare_input, prepare_output  # noqa: PLC0415 - all words go through them

    prepare_input()
    prepare_output()
    if arguments and arguments[0] in SUBCOMMANDS:
        return _run_subcommand(arguments, signals)
    parsed = parse(arguments)
    if "help" in parsed.values:
        from robota.cli.help import render_help  # noqa: PLC0415 - for those who ask

        print(render_help())
        return 0
    if "version" in parsed.values:
        from robota._version import __version__  # noqa: PLC0415 - as in __main__

        print(f"robota {__version__}")
        return 0
    from robota.core.errors import RobotaError  # noqa: PLC0415 - from here on more can fail

    try:
        return _assist(parsed, signals)
    except RobotaError as error:
        return _refuse(arguments, str(error), 1)


def _assist(parsed: Parsed, signals: Signals) -> int:
    from msgspec.structs import replace  # noqa: PLC0415 - after the arguments, which are often wrong

    from robota.cli.options import add_prompt, read_options  # noqa: PLC0415

    _check_words(parsed)
    options = read_options(parsed, os.environ)
    if options.reset:
        from robota.cli.reset import reset_settings  # noqa: PLC0415 - rare

        return reset_settings(yes=options.yes)
    options = replace(options, prompt=add_prompt(options, parsed.words))
    if options.may_ask_who_answers:
        from robota.cli.setup import first_run  # noqa: PLC0415 - looks at little, and asks once

        with signals.acting(signals.unwind):
            ended = first_run()
        if ended is not None:
            return ended
    import asyncio  # noqa: PLC0415

    from robota.cli.assistant import assist  # noqa: PLC0415
    from robota.cli.screen import say_warnings_in_one_line  # noqa: PLC0415

    say_warnings_in_one_line()
    try:
        code = asyncio.run(assist(options, signals))
    except asyncio.CancelledError:
        if not signals.code:
            raise
        code = 0
    return signals.code or code


def _check_words(parsed: Parsed) -> None:
    """One argument is a prompt, unless it is a word that was probably meant as a command."""
    if not parsed.words or parsed.is_literal:
        return
    first = parsed.words[0]
    if len(parsed.words) > 1:
        near = _find_subcommand(first)
        meant = f"did you mean robota {near}?" if near else f"there are {', '.join(SUBCOMMANDS)}."
        raise UsageError(f"A prompt is one argument: put it in quotes. {first!r} is not a command; {meant}")
    if "print_mode" not in parsed.values and first.isalpha() and (near := _find_subcommand(first)):
        what = "a command comes first on the line." if near == first else f"did you mean robota {near}?"
        raise UsageError(f"{first!r} does not look like a prompt: {what} If it is one: robota -- {first}")


def _find_subcommand(word: str) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - for single words

    if meant := WORDS_OF_OTHERS.get(word):
        return meant
    return next(iter(get_close_matches(word.casefold(), SUBCOMMANDS, 1, 0.75)), None)


def _run_subcommand(arguments: list[str], signals: Signals) -> int:
    from importlib import import_module  # noqa: PLC0415 - only for subcommands

    import click  # noqa: PLC0415

    from robota.core.errors import RobotaError  # noqa: PLC0415

    group = click.Group("robota")
    try:
        group.add_command(import_module(SUBCOMMANDS[arguments[0]][0]).command, arguments[0])
        with signals.acting(signals.unwind):
            return int(group(arguments, prog_name="robota", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _fail(_one_line(error), error.exit_code)
    except click.Abort:
        return INTERRUPTED
    except RobotaError as error:
        return _fail(str(error))


def _one_line(error: click.ClickException) -> str:
    """What is wrong with the words behind a subcommand, and where to look."""
    context = getattr(error, "ctx", None)
    more = f" {context.command_path} --help tells more." if context is not None else ""
    said = " ".join(error.format_message().split())
    return said + ("" if said.endswith((".", "?")) else ".") + more


def _refuse(arguments: list[str], sentence: str, code: int) -> int:
    """Say why nothing was run; whoever reads records gets one of it."""
    if _wants_records(arguments):
        from robota.core.jsontext import encode  # noqa: PLC0415 - only when something is wrong
        from robota.transports.result_frame import failure_frame  # noqa: PLC0415

        with suppress(OSError):  # said on stderr in any case
            print(encode({**failure_frame(sentence), "session_id": "", "uuid": ""}).decode(), flush=True)
    return _fail(sentence, code)


def _wants_records(arguments: list[str]) -> bool:
    """Looked up here, because the line may be one that cannot be read."""
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    line = "\0".join(("", *words, ""))
    kinds = ("json", "stream-json")
    return any(f"\0--output-format{between}{kind}\0" in line for between in "\0=" for kind in kinds)


def _fail(sentence: str, code: int = 1) -> int:
    with suppress(OSError):  # the terminal may be what failed
        print(f"robota: {sentence}", file=sys.stderr)
    return code


def _leave(code: int, cache: ModuleCache | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                _fail(f"The output could not be written: {error.strerror}.")
            code = code if code > SIGNALLED else 1  # whatever it was to say, nobody was told
    if cache is not None:
        cache.update()
    gc.freeze()  # or Python looks through everything for cycles once more
    sys.exit(code)
