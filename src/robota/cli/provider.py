"""`robota provider`: who could answer, and whether they would. Lists go to stdout, remarks to stderr.

Nothing is asked of a model: a check is GET requests only and costs no tokens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import click

from robota.cli.table import print_table
from robota.core.credentials import ENV_REFERENCE_PREFIX, is_env_reference
from robota.core.errors import ConfigurationError, UnknownNameError
from robota.core.provider_definition import ProbeResult, ProviderConfig, ProviderDefinition
from robota.providers.choice import KEYS, ProviderArguments, find_named, list_served
from robota.providers.definitions import all_definitions, find_definition
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
    """Show the profiles of your settings and the types for --provider, their models and where their keys come
    from."""
    definitions = all_definitions(lambda problem: print(problem, file=sys.stderr))
    profiles = _profiles()
    rows = [_describe_profile(name, profiles) for name in profiles.profiles]
    rows += [
        (one.type, one.defaults.model or "-", _describe_key(one), one.description or "")
        for one in definitions
        if one.type not in profiles.profiles
    ]
    print_table(rows)


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


def _describe_profile(name: str, profiles: ProviderProfiles) -> tuple[str, str, str, str]:
    profile = profiles.profiles[name]
    definition = find_definition(profile.type)
    default = definition.defaults.model if definition is not None else None
    key = "no key" if definition is None else _describe_key(definition, name)
    if profile.api_key is not None:
        key = profile.api_key if is_env_reference(profile.api_key) else "in the settings"
    place = f" at {profile.base_url}" if profile.base_url else ""
    now = "; answers now" if name == profiles.current else ""
    return name, profile.model or default or "-", key, f"Your profile of {profile.type}{place}{now}."


def _describe_key(definition: ProviderDefinition, profile: str | None = None) -> str:
    own = (definition.defaults.api_key or "").removeprefix(ENV_REFERENCE_PREFIX)
    variables = [variable for variable, owner in KEYS.items() if owner == definition.type] or [own]
    known = next((variable for variable in variables if os.environ.get(variable, "").strip()), None)
    if known is not None:
        return f"{known} (set)"
    if {definition.type, profile} & set(_key_store().names):
        return "kept"
    return f"{variables[0]} (not set)" if variables[0] else "no key"


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--model", envvar="ROBOTA_MODEL", help="Model to look for.  [env: ROBOTA_MODEL]")
@click.option("--base-url", envvar="ROBOTA_BASE_URL", help="Address of the service.  [env: ROBOTA_BASE_URL]")
def check(names: tuple[str, ...], model: str | None, base_url: str | None) -> int:
    """Try out the profiles and types named, or all profiles and services that have a key, without asking a
    model anything.

    Exit code 0: all of them answer; 1: one does not.
    """
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    from robota.cli.chosen_provider import find_service  # noqa: PLC0415 - for those who ask a service
    from robota.cli.opening import read_own_settings  # noqa: PLC0415

    given = ProviderArguments(model=model, base_url=base_url, environment=os.environ, kept=_key_store().get)
    profiles = read_own_settings(os.environ).profiles
    wanted = tuple(dict.fromkeys(names or (*profiles.profiles, *list_served(given))))
    if not wanted:
        print("No key is set, so there is nothing to check: name a type of `robota provider list`.")
        return 1
    services, results = {}, dict[str, ProbeResult]()
    for name in wanted:
        try:
            services[name] = find_service(given, profiles, name, timeout=CHECK_SECONDS)
        except UnknownNameError:
            raise
        except ConfigurationError as error:
            results[name] = ProbeResult(ok=False, message=str(error))
    results |= asyncio.run(_try_out(services))
    for name in wanted:
        print(f"{'ok    ' if results[name].ok else 'failed'}  {name}: {results[name].message}")
    return 0 if all(result.ok for result in results.values()) else 1


async def _try_out(
    services: Mapping[str, tuple[ProviderDefinition, ProviderConfig]],
) -> dict[str, ProbeResult]:
    """All at the same time."""
    import anyio  # noqa: PLC0415 - a loop is running

    found: dict[str, ProbeResult] = {}

    async def try_one(name: str, definition: ProviderDefinition, config: ProviderConfig) -> None:
        found[name] = (
            await definition.probe(config)
            if definition.probe is not None
            else ProbeResult(
                ok=False, message=f"{definition.title} cannot be checked without asking a model."
            )
        )

    async with anyio.create_task_group() as tasks:
        for name, service in services.items():
            tasks.start_soon(try_one, name, *service)
    return found
