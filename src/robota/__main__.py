"""The `robota` command. `--version` and `--help` are answered before signals are minded and screens made."""

import gc
import sys

ALLOCATIONS = 50_000
"""Objects between two looks for cycles. By default there are a hundred looks while a session is loaded, all
at what stays."""


def keep_what_is_loaded(_phase: str, _info: dict[str, int]) -> None:
    """Takes the place of the first look: what is there by then is code, and stays."""
    gc.freeze()
    gc.callbacks.remove(keep_what_is_loaded)


def main() -> None:
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from robota._version import __version__  # noqa: PLC0415 - the only import this answer needs

        return answer(f"robota {__version__}")
    if arguments in (["--help"], ["-h"]):
        from robota.cli.help import render_help  # noqa: PLC0415 - likewise

        return answer(render_help())
    if sys.stdin is None:
        import os  # noqa: PLC0415 - rare

        # Or the next file that is opened is what others take for the input.
        sys.stdin = open(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")  # noqa: SIM115 - lives with us
    gc.set_threshold(ALLOCATIONS, 10, 10)
    gc.callbacks.append(keep_what_is_loaded)
    try:
        from robota.cli.module_cache import install_module_cache  # noqa: PLC0415 - everything else is in it

        cache = install_module_cache()
        from robota.cli.signals import Signals  # noqa: PLC0415 - before all that takes longer

        signals = Signals()
        signals.install()
        from robota.cli.main import run  # noqa: PLC0415 - everything else starts here
    except KeyboardInterrupt:
        sys.exit(130)
    return run(signals, cache)


def answer(text: str) -> None:
    """Print our own words, which need no care; a reader may have left before."""
    try:
        print(text, file=sys.stdout or open(1, "w"), flush=True)  # noqa: SIM115 - which fails if it is closed
    except (OSError, KeyboardInterrupt) as error:
        import os  # noqa: PLC0415 - rare

        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            os.write(2, f"robota: The output could not be written: {error.strerror}.\n".encode())
        os._exit(1)  # or Python complains that it cannot write the rest


if __name__ == "__main__":
    main()
