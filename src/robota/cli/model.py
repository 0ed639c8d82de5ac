"""`robota model`: the model files on this machine. Lists go to stdout, progress and remarks to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from robota.providers.local.store import ModelStore

_STATES = {"ready": "ready", "installed": "ready (package)", "partial": "begun", "absent": "not pulled"}
_STEP = 10
"""Percent between two lines where there is no terminal."""


@click.group(
    help="Models that run on this machine, without a key and without a network.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None: ...


@command.command()
@click.argument("name")
def pull(name: str) -> None:
    """Fetch the model NAME, or the rest of it, and check its hash."""
    store = ModelStore()
    with _progress(name) as progress:
        path = store.pull(name, progress)
    print(f"{name} is ready: {path}", file=sys.stderr)


@command.command("list")
@click.option("--provider", metavar="TYPE", help="List the models of a service instead, with their facts.")
@click.option("--base-url", envvar="ROBOTA_BASE_URL", help="Address of the service.  [env: ROBOTA_BASE_URL]")
def list_models(provider: str | None, base_url: str | None) -> None:
    """Show the known models, their sizes and whether they are here."""
    if provider is not None:
        from robota.cli.model_facts import show_models  # noqa: PLC0415 - only for services

        show_models(provider, base_url)
        return
    models = ModelStore().list()
    width = max(len(model.name) for model in models)
    for model in models:
        print(
            f"{model.name:<{width}}  {_megabytes(model.size):>8}  {_STATES[model.state]:<15}  {model.title}"
        )


@command.command()
@click.argument("name")
def rm(name: str) -> None:
    """Delete the files of the model NAME."""
    print(f"Removed {name}: {_megabytes(ModelStore().remove(name))} freed.")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int | None], None]]:
    if not sys.stderr.isatty():
        yield _lines(name)
        return
    from rich.console import Console  # noqa: PLC0415 - 40 ms, for terminals only
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.__stderr__)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(name: str) -> Callable[[int, int | None], None]:
    told = -1

    def tell(done: int, total: int | None) -> None:
        nonlocal told
        percent = done * 100 // total if total else -1
        if percent // _STEP > told:
            told = percent // _STEP
            print(f"{name}: {_megabytes(done)} of {_megabytes(total or 0)} ({percent}%)", file=sys.stderr)

    return tell
