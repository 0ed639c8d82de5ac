"""`robota setup`: who answers from now on. The first run is the same, when nobody could.

What there is, is looked for and said; the user makes one decision; the rest follows from it. Keys go where
`KeyStore` keeps them, everything else into the user's settings.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from robota.cli.findings import Findings, look_around
from robota.cli.progress import download
from robota.core.credentials import is_env_reference
from robota.core.errors import ConfigurationError, RobotaError
from robota.core.messages import JsonObject
from robota.core.provider_definition import ProbeResult, ProviderConfig, ProviderDefinition, SetupStep
from robota.providers.choice import KEYS, SERVER_TYPES, ProviderArguments, find_local_servers
from robota.providers.configuration import is_web_address
from robota.providers.definitions import all_definitions, find_definition
from robota.sdk.auth import KeyStore
from robota.sdk.places import find_places
from robota.sdk.provider_profiles import ProviderProfiles, make_profile_key
from robota.sdk.settings import load_settings
from robota.sdk.settings.write import change_setting

if TYPE_CHECKING:
    from robota.providers.local.detect import LocalServer

KEY_FORMS = {"sk-ant-": "anthropic", "sk-or-": "openrouter", "sk-proj-": "openai", "AIza": "gemini"}
"""How keys begin that can be told by that; the others look alike."""
PROBE_SECONDS = 10.0
TOUR = "tour"
LEAVE = ("q", "quit", "exit")
Decision = Callable[[], str]


class Offer(Struct, frozen=True):
    """One line of the question, and what it leads to."""

    text: str
    take: Decision
    """Gives the name of the profile that answers now, or `TOUR`."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--provider", "type", metavar="TYPE", help="Set up this one; its key is asked for, or piped in."
)
@click.option("--model", help="Model to use.")
@click.option("--base-url", help="Address of the service or server.")
@click.option("--local", is_flag=True, help="Fetch a small model that runs on this machine.")
@click.option("--if-needed", is_flag=True, help="With --local: only if nobody could answer.")
def command(type: str | None, model: str | None, base_url: str | None, local: bool, if_needed: bool) -> int:
    """Choose who answers: a key, a model on this machine, or a service of yours.

    Without options it looks at what there is and asks one question.
    """
    setup = Setup()
    if local:
        if not (if_needed and setup.findings.ready):
            setup.take_local(model)
        return 0
    if type is None and base_url is not None:
        type = "openai-compatible"
    if type is not None:
        setup.take_type(type, ProviderConfig(model=model, base_url=base_url))
        return 0
    if not sys.stdin.isatty():
        raise click.UsageError("This is not a terminal: name what to set up with --provider or --local.")
    return _tour() if setup.ask() == TOUR else 0


class Setup:
    """One pass through the questions, on a terminal unless everything is given."""

    def __init__(self) -> None:
        self.places = find_places()
        self.keys = KeyStore(self.places.robota_home)
        self.profiles: ProviderProfiles = load_settings(
            self.places, sources=("user",), environment={}, trusted=False
        ).profiles
        self.findings: Findings = look_around(self.keys, self.profiles, os.environ)

    # --- the question -----------------------------------------------------------------------------------

    def ask(self) -> str:
        """The one decision; leaving raises `click.Abort`."""
        _say(*self._describe(), "")
        offers = self._offers(asyncio.run(find_local_servers(ProviderArguments(environment=os.environ))))
        for number, offer in enumerate(offers, 1):
            _say(f"  {number}  {offer.text}")
        while True:
            _say("")
            answer = click.prompt("Your choice, or q to leave", err=True, default="1").strip().lower()
            if answer in LEAVE:
                raise click.Abort
            if answer.isdigit() and 0 < int(answer) <= len(offers):
                try:
                    return offers[int(answer) - 1].take()
                except RobotaError as error:
                    _say(str(error))
            else:
                _say(f"{answer!r} is none of 1 to {len(offers)}.")

    def _describe(self) -> list[str]:
        found = self.findings
        if not found.ready:
            return [
                "Nobody answers yet: there is no key in the environment, none is kept, and no model is here."
            ]
        lines = [f"The profile {found.profile} of your settings answers."] if found.profile else []
        lines += [f"{name} is set in the environment." for name in found.variables]
        lines += [f"A key is kept for {name}." for name in found.kept]
        return lines + [f"The model {each.name} is on this machine." for each in found.models]

    def _offers(self, servers: Sequence[LocalServer]) -> list[Offer]:
        def use(server: LocalServer) -> Decision:
            return lambda: self._take_server(server)

        offers = [
            Offer(f"{server.kind} at {server.base_url}, with {server.models[0]}", use(server))
            for server in servers
            if server.models
        ]
        titles = [definition.title for name in dict.fromkeys(KEYS.values()) if (definition := _find(name))]
        return [
            *offers,
            Offer(f"A key of {', '.join(titles[:-1])} or {titles[-1]}", self._take_key),
            Offer(
                "A tiny model on this machine: about 140 MB to fetch, no key, mostly wrong",
                lambda: self.take_local(None),
            ),
            Offer("Another service or server, by its address", lambda: self.take_type("openai-compatible")),
            Offer("The tour: a scripted model, real tools, a throw-away project, no key", lambda: TOUR),
        ]

    # --- what it leads to -------------------------------------------------------------------------------

    def take_local(self, model: str | None) -> str:
        """Have a model here; it answers when nobody else can, so that a key that comes later goes first."""
        from robota.cli.local_setup import SMALLEST, set_up_local  # noqa: PLC0415 - starts pip

        name = model or SMALLEST
        with download(name) as progress:
            path = set_up_local(name, _say, progress)
        _say(f"{name} is ready ({path}) and answers when there is no key.")
        return name

    def take_type(self, type: str, given: ProviderConfig | None = None) -> str:
        """Ask what this type needs and was not given, try it out, keep it."""
        definition = _find(type)
        if definition is None:
            names = ", ".join(each.type for each in all_definitions())
            raise click.BadParameter(f"{type!r} is none of {names}.", param_hint="--provider")
        config = given or ProviderConfig()
        if problem := _find_address_problem(config.base_url or ""):
            raise click.BadParameter(problem, param_hint="--base-url")
        link = definition.preferred_help_link
        if link is not None and config.api_key is None and sys.stdin.isatty():
            _say(f"{link.label}: {link.url}")
        for step in definition.setup_steps:
            if getattr(config, step.key) is None and step.key != "model":
                config = replace(config, **{step.key: _ask_step(step)})
        return self._try_and_keep(definition, config)

    def _take_key(self) -> str:
        key = _ask_secret("Your key")
        type = next((owner for start, owner in KEY_FORMS.items() if key.startswith(start)), None)
        if type is None:
            types = list(dict.fromkeys(KEYS.values()))
            type = click.prompt("Whose key is it", type=click.Choice(types), err=True)
        definition = _find(type)
        assert definition is not None
        _say(f"This is a key of {definition.title}.")
        return self._try_and_keep(definition, ProviderConfig(api_key=key))

    def _take_server(self, server: LocalServer) -> str:
        definition = _find(SERVER_TYPES.get(server.kind, server.kind))
        assert definition is not None
        config = ProviderConfig(model=server.models[0], base_url=server.base_url)
        return self._write(definition.type, config, definition.title)

    def _try_and_keep(self, definition: ProviderDefinition, config: ProviderConfig) -> str:
        result = asyncio.run(_probe(definition, config))
        if not result.ok and config.model is None:
            result = replace(result, ok=bool(result.models))  # it answered; only the model is open
        if not result.ok:
            raise ConfigurationError(f"It does not work yet, and nothing was kept: {result.message}")
        if config.model is None:
            config = replace(config, model=_ask_model(definition, result.models))
        return self._write(definition.type, config, definition.title)

    def _write(self, type: str, config: ProviderConfig, title: str) -> str:
        """Keep the profile and make it the current one; where things are is said."""
        name = self._profile_name(type, config)
        path = self.places.user("settings.json")
        profile: JsonObject = {"type": type}
        if config.model:
            profile["model"] = config.model
        if config.base_url:
            profile["baseURL"] = config.base_url
        if config.api_key:
            self.keys.set(name, config.api_key)
        change_setting(path, ("providers", name), profile)
        change_setting(path, "currentProvider", name)
        answers = f" with {config.model}" if config.model else ""
        _say(f"{title} answers from now on{answers}. This is in {self.places.shown(path)}.")
        return name

    def _profile_name(self, type: str, config: ProviderConfig) -> str:
        """The profile of the same type and address is replaced, not doubled."""
        for name, known in self.profiles.profiles.items():
            if (known.type, known.base_url, known.model) == (type, config.base_url, config.model):
                return name
        return make_profile_key(config.model or type, self.profiles.profiles)


def first_run() -> int | None:
    """Ask the question of the first start, if nobody could answer; the exit code, unless it goes on."""
    try:
        setup = Setup()
        decided = None if setup.findings.ready else setup.ask()
    except click.Abort:
        return 0
    return _tour() if decided == TOUR else None


def _tour() -> int:
    from robota.cli.tour import take_tour  # noqa: PLC0415 - for those who want it

    return take_tour()


_HERE = ("localhost:", "127.0.0.1:", "[::1]:")
"""How people write the address of a server on their machine."""


# --- small questions ------------------------------------------------------------------------------------


def _find(type: str) -> ProviderDefinition | None:
    return find_definition(type, _say)


def _ask_step(step: SetupStep) -> str | None:
    if not sys.stdin.isatty():
        if step.masked:
            return sys.stdin.readline().strip() or None
        if step.required and step.default_value is None:
            raise click.UsageError(f"{step.title} is missing: this is not a terminal to ask on.")
        return step.default_value
    if step.masked:
        return _ask_secret(step.title, required=step.required) or None
    default = step.default_value or (None if step.required else "")
    while True:
        answer = str(click.prompt(step.title, default=default, err=True)).strip()
        if step.key == "base_url" and answer == "q":
            raise click.Abort
        if step.key == "base_url" and answer.startswith(_HERE):
            answer = f"http://{answer}"
        if step.key != "base_url" or not (problem := _find_address_problem(answer)):
            return answer or None
        _say(problem)


def _find_address_problem(address: str) -> str:
    if not address or is_env_reference(address) or is_web_address(address):
        return ""
    return (
        f"{address!r} is not a web address; it must look like https://host/v1 or http://localhost:8080/v1. "
        "q leaves."
    )


def _ask_secret(title: str, *, required: bool = True) -> str:
    shown = f"{title} (it is not shown)"
    default = None if required else ""
    return str(click.prompt(shown, hide_input=True, default=default, show_default=False, err=True)).strip()


def _ask_model(definition: ProviderDefinition, listed: Sequence[str]) -> str | None:
    """The default of the service where it has one; else the user names one of those it lists."""
    usual = definition.defaults.model
    if usual is not None or not sys.stdin.isatty():
        return usual or (listed[0] if listed else None)
    if listed:
        _say(f"It has {', '.join(listed[:20])}{' …' if len(listed) > 20 else ''}.")
    return str(click.prompt("Model", default=listed[0] if listed else None, err=True)).strip()


async def _probe(definition: ProviderDefinition, config: ProviderConfig) -> ProbeResult:
    """Whether it answers, by GET requests only; what cannot be tried is taken as it is."""
    if definition.probe is None:
        return ProbeResult(ok=True, message="")
    return await definition.probe(replace(config, timeout=config.timeout or PROBE_SECONDS))


def _say(*lines: str) -> None:
    """Lines, which break between words where people read them."""
    width = shutil.get_terminal_size().columns - 1 if sys.stderr.isatty() else 0
    for line in lines:
        if width > 0 and len(line) > width:
            indent = "     " if line.startswith("  ") else ""
            line = fill(line, width, subsequent_indent=indent, break_long_words=False)
        print(line, file=sys.stderr)
