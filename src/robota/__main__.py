"""The `robota` command. `--version` is answered before anything is imported; then signals are minded."""

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from robota._version import __version__  # noqa: PLC0415 - the only import this answer needs

        print(f"robota {__version__}")
        return
    try:
        from robota.cli.signals import Signals  # noqa: PLC0415 - first of all: everything else takes longer

        signals = Signals()
        signals.install()
        from robota.cli.main import run  # noqa: PLC0415 - everything else starts here
    except KeyboardInterrupt:
        sys.exit(130)
    run(signals)


if __name__ == "__main__":
    main()
