"""`robota provider`: who could answer, and whether they would. Lists go to stdout, remarks to stderr.

Nothing is asked of a model: a check is GET requests only and costs no tokens.
"""

from __future__ import annotations

import os
import sys

import click

from robota.core.credentials import ENV_REFERENCE_PREFIX
from robota.core.errors import ConfigurationError
from robota.core.provider_definition import ProbeResult, ProviderDefinition
from robota.providers.choice import KEYS, ProviderArguments, find_named, list_served, make_profile
from robota.providers.definitions import all_definitions
from robota.sdk.auth import KeyStore
from robota.sdk.places import find_places
from robota.sdk.provider_profiles import ProviderProfiles
from robota.sdk.settings import load_settings
from robota.sdk.settings.write import change_setting

CHECK_SECONDS = 10.0


@click.group(
    help="Services, servers and models that can answer.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None: ...


@command.command("list")
def list_providers() -> None:
    """Show the types for --provider, their default models and where their keys come from."""
    definitions = all_definitions(lambda problem: print(problem, file=sys.stderr))
    rows = [
        (one.type, one.defaults.model or "-", _describe_key(one), one.description or "")
        for one in definitions
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for type, model, key, description in rows:
        print(f"{type:<{widths[0]}}  {model:<{widths[1]}}  {key:<{widths[2]}}  {description}")


@command.command()
@click.argument("name")
@click.option("--type", "type_", metavar="TYPE", help="One of `robota provider list`; by default NAME.")
@click.option("--model", help="The model it answers with.")
@click.option("--base-url", help="Its address, where the type has no usual one.")
def add(name: str, type_: str | None, model: str | None, base_url: str | None) -> None:
    """Write a profile called NAME into your settings. Its key is the business of `robota auth set NAME`."""
    type = find_named(ProviderArguments(environment={}), type_ or name).type
    if name in _profiles().profiles:
        raise ConfigurationError(f"There is a provider profile {name!r} already: choose another name.")
    fields = {"type": type, "model": model, "baseURL": base_url}
    written = {field: value for field, value in fields.items() if value is not None}
    change_setting(find_places().user("settings.json"), ("providers", name), written)
    print(f"The profile {name} is written; robota provider use {name} has it answer from now on.")


@command.command()
@click.argument("name")
def use(name: str) -> None:
    """Have the profile NAME answer from now on; a type that has none gets one."""
    path = find_places().user("settings.json")
    profiles = _profiles()
    if name not in profiles.profiles:
        if all(name != definition.type for definition in all_definitions()):
            profiles.get(name)  # which says what there is
        change_setting(path, ("providers", name), {"type": name})
    change_setting(path, "currentProvider", name)
    print(f"{name} answers from now on.")


def _profiles() -> ProviderProfiles:
    return load_settings(find_places(), sources=("user",), trusted=False).profiles


def _key_store() -> KeyStore:
    return KeyStore(find_places().robota_home)


def _describe_key(definition: ProviderDefinition) -> str:
    own = (definition.defaults.api_key or "").removeprefix(ENV_REFERENCE_PREFIX)
    variables = [variable for variable, owner in KEYS.items() if owner == definition.type] or [own]
    known = next((variable for variable in variables if os.environ.get(variable, "").strip()), None)
    if known is not None:
        return f"{known} (set)"
    if definition.type in _key_store().names:
        return "kept"
    return f"{variables[0]} (not set)" if variables[0] else "no key"


@command.command()
@click.argument("types", nargs=-1, metavar="[TYPE]...")
@click.option("--model", envvar="ROBOTA_MODEL", help="Model to look for.  [env: ROBOTA_MODEL]")
@click.option("--base-url", envvar="ROBOTA_BASE_URL", help="Address of the service.  [env: ROBOTA_BASE_URL]")
def check(types: tuple[str, ...], model: str | None, base_url: str | None) -> int:
    """Try out the services named, or all that have a key, without asking a model anything.

    Exit code 0: all of them answer; 1: one does not.
    """
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    keys = _key_store()
    given = ProviderArguments(model=model, base_url=base_url, environment=os.environ, kept=keys.get)
    definitions = [find_named(given, name) for name in types or list_served(given)]
    if not definitions:
        print("No key is set, so there is nothing to check: name a type of `robota provider list`.")
        return 1
    results = asyncio.run(_try_out(given, definitions))
    for definition, result in zip(definitions, results, strict=True):
        print(f"{'ok    ' if result.ok else 'failed'}  {definition.type}: {result.message}")
    return 0 if all(result.ok for result in results) else 1


async def _try_out(given: ProviderArguments, definitions: list[ProviderDefinition]) -> list[ProbeResult]:
    """All at the same time."""
    import anyio  # noqa: PLC0415 - a loop is running

    found: dict[int, ProbeResult] = {}

    async def try_one(place: int, definition: ProviderDefinition) -> None:
        profile = make_profile(given, definition, timeout=CHECK_SECONDS)
        found[place] = (
            await definition.probe(profile)
            if definition.probe is not None
            else ProbeResult(
                ok=False, message=f"{definition.title} cannot be checked without asking a model."
            )
        )

    async with anyio.create_task_group() as tasks:
        for place, definition in enumerate(definitions):
            tasks.start_soon(try_one, place, definition)
    return [found[place] for place in range(len(definitions))]
