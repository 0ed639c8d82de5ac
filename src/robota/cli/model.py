"""`robota model`: the model files on this machine. Lists go to stdout, progress and remarks to stderr."""

from __future__ import annotations

import sys

import click

from robota.cli.progress import download, megabytes
from robota.providers.local.store import ModelStore

_STATES = {"ready": "ready", "installed": "ready (package)", "partial": "begun", "absent": "not pulled"}


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
    with download(name) as advance:
        path = store.pull(name, advance)
    print(f"{name} is ready: {path}", file=sys.stderr)


@command.command("list")
@click.option("--provider", metavar="NAME", help="List the models of a service instead, with their facts.")
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
        print(f"{model.name:<{width}}  {megabytes(model.size):>8}  {_STATES[model.state]:<15}  {model.title}")


@command.command()
@click.argument("name")
def use(name: str) -> None:
    """Have the model NAME answer from now on: the setting `model` of yours."""
    if not name.strip():
        raise click.BadParameter("a model has a name.", param_hint="NAME")
    from robota.sdk.places import find_places  # noqa: PLC0415 - few change it
    from robota.sdk.settings.write import change_setting  # noqa: PLC0415

    change_setting(find_places().user("settings.json"), "model", name)
    print(f"{name} answers from now on.")


@command.command()
@click.argument("name")
def rm(name: str) -> None:
    """Delete the files of the model NAME."""
    print(f"Removed {name}: {megabytes(ModelStore().remove(name))} freed.")
