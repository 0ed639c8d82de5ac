"""The `robota` command. `--version` is answered before anything is imported."""

import sys


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from robota._version import __version__  # noqa: PLC0415 - the only import this answer needs

        print(f"robota {__version__}")
        return
    from robota.cli.main import run  # noqa: PLC0415 - everything else starts here

    run()


if __name__ == "__main__":
    main()
