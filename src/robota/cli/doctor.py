"""`robota doctor`: what works here, what does not, and the command that mends it.

A model is asked nothing: services get GET requests only, and only those that a key is there for.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import click
import msgspec
from msgspec import Struct

from robota._version import __version__
from robota.cli.chosen_provider import find_profile
from robota.cli.findings import look_around
from robota.cli.opening import read_own_settings
from robota.core.errors import RobotaError
from robota.core.plain_text import strip_controls
from robota.core.provider_definition import ProbeResult
from robota.providers.choice import Choice, ProviderArguments, find_choice, find_local_servers
from robota.sdk.auth import KeyStore
from robota.sdk.kept_sessions import create_project_session_store
from robota.sdk.places import Places, find_places

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.settings import Settings

PROBE_SECONDS = 10.0
LOW_DISK = 200 << 20
STATES = {"ok": "ok  ", "note": "note", "fail": "FAIL"}


class Finding(Struct, frozen=True):
    """One line of the report."""

    state: Literal["ok", "note", "fail"]
    """`note`: it works without, but less well."""
    what: str
    fix: str = ""
    """A command, or what else to do."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("--offline", is_flag=True, help="Ask no service whether it would answer.")
def command(as_json: bool, offline: bool) -> int:
    """Look at everything robota needs here; exit code 1 if something does not work."""
    failed = False
    for finding in asyncio.run(examine(os.environ, offline=offline)):
        failed = failed or finding.state == "fail"
        if as_json:
            print(msgspec.json.encode(finding).decode())
            continue
        print(f"{STATES[finding.state]}  {strip_controls(finding.what)}")
        if finding.fix:
            print(f"      {strip_controls(finding.fix)}")
    return 1 if failed else 0


async def examine(environment: Mapping[str, str], *, offline: bool) -> list[Finding]:
    places = find_places()
    found = [*_look_at_machine(), *_look_at_terminal(environment), *_look_at_home(places)]
    try:
        settings = read_own_settings(environment)
    except RobotaError as error:
        return [*found, Finding("fail", str(error), "robota config edit")]
    found += await _look_at_project(places)
    found += await _look_at_models(places, settings, environment, offline=offline)
    return found


def _look_at_machine() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok", f"robota {__version__} on Python {version} ({sys.platform})")
    for program, use, package in (("git", "worktrees, diffs and branches", "git"),):
        if shutil.which(program) is None:
            yield Finding("note", f"{program} is missing: no {use}", f"apt install {package}")


def _look_at_terminal(environment: Mapping[str, str]) -> Iterator[Finding]:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield Finding("ok", "No terminal here: robota -p works, the prompt does not")
        return
    name, size = environment.get("TERM", ""), shutil.get_terminal_size()
    if name in ("", "dumb", "unknown"):
        yield Finding("note", f"TERM is {name or 'not set'}: plain lines", "export TERM=xterm-256color")
    else:
        yield Finding("ok", f"Terminal {name}, {size.columns} columns, {size.lines} rows")
    encoding = (sys.__stdout__.encoding if sys.__stdout__ else "") or ""
    if encoding.lower().replace("-", "") != "utf8":
        yield Finding("note", f"The terminal's text is {encoding}, not UTF-8", "export LC_ALL=C.UTF-8")


def _look_at_home(places: Places) -> Iterator[Finding]:
    home, shown = places.robota_home, places.shown(places.robota_home)
    there = home
    while not os.path.exists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
        yield Finding("fail", f"Nothing can be kept in {shown}: it cannot be written", "export ROBOTA_HOME=…")
        return
    free = shutil.disk_usage(there).free
    state: Literal["ok", "fail"] = "ok" if free > LOW_DISK else "fail"
    fix = "" if state == "ok" else "Free some space, or export ROBOTA_HOME=… to another disk"
    yield Finding(state, f"Sessions and settings are in {shown}, {free >> 20:,} MB are free", fix)
    try:
        kept = create_project_session_store().list()
        yield Finding("ok", "1 session is kept" if len(kept) == 1 else f"{len(kept)} sessions are kept")
    except (RobotaError, OSError) as error:
        yield Finding("fail", f"The sessions cannot be listed: {error}", "robota sessions list")


async def _look_at_project(places: Places) -> list[Finding]:
    """Everything a session would load here, loaded; nothing of it acts."""
    from robota.sdk.interactive import InteractiveSession  # noqa: PLC0415 - loads most of the program
    from robota.testing import ScriptedProvider  # noqa: PLC0415

    async with InteractiveSession(provider=ScriptedProvider("unused"), model="any") as session:
        try:
            await session.ready()
        except RobotaError as error:
            return [Finding("fail", f"No session can be made here: {error}")]
        trust = session.project.trust
        found = [  # that nothing acts before it is trusted is as it should be: a note below
            Finding("note" if problem.harmless else "fail", str(problem))
            for problem in session.problems
            if problem.message != trust.notice
        ]
        if trust.asks:
            wants = f"{places.shown(places.cwd)} is not trusted: what its files want does not act"
            found.append(Finding("note", wants, "robota, which asks; or robota --trust for one call"))
        found.append(await _look_at_sandbox(session))
        return found


async def _look_at_sandbox(session: InteractiveSession) -> Finding:
    answer = await session.execute_command("status")
    assert answer is not None
    line = next((each for each in answer.message.splitlines() if each.startswith("Sandbox:")), "Sandbox: off")
    works = "none works here" not in line
    return Finding("ok" if works else "note", line, "" if works else "apt install bubblewrap")


async def _look_at_models(
    places: Places, settings: Settings, environment: Mapping[str, str], *, offline: bool
) -> list[Finding]:
    keys = KeyStore(places.robota_home)
    try:
        around = look_around(keys, settings.profiles, environment)
    except RobotaError as error:
        return [Finding("fail", str(error))]
    found = [Finding("ok", f"The model {each.name} is on this machine") for each in around.models]
    if around.models and not around.engine:
        found.append(
            Finding("fail", "Model files are here, but not llama.cpp", "pip install 'robota[local]'")
        )
    given = ProviderArguments(
        provider=environment.get("ROBOTA_PROVIDER"),
        model=environment.get("ROBOTA_MODEL") or settings.own_model,
        base_url=environment.get("ROBOTA_BASE_URL"),
        environment=environment,
        kept=keys.get,
    )
    servers = await find_local_servers(given)
    found += [Finding("ok", f"{each.kind} runs at {each.base_url}") for each in servers]
    try:
        choice = find_profile(given, settings.profiles) or await find_choice(given)
    except RobotaError as error:
        return [*found, Finding("fail", str(error), "robota setup")]
    if choice is None:
        return [*found, Finding("fail", "Nobody can answer: no key, no address, no model", "robota setup")]
    return [*found, await _look_at_choice(choice, offline=offline)]


async def _look_at_choice(choice: Choice, *, offline: bool) -> Finding:
    title, model = choice.definition.title, choice.config.model or "the model of its choice"
    if offline or choice.definition.probe is None:
        return Finding("ok", f"{title} answers, with {model}; it was not tried out")
    config = msgspec.structs.replace(choice.config, timeout=PROBE_SECONDS)
    result: ProbeResult = await choice.definition.probe(config)
    if result.ok:
        return Finding("ok", f"{title} answers, with {model}: {result.message}")
    return Finding(
        "fail",
        f"{title} does not answer: {result.message}",
        f"robota setup --provider {choice.definition.type}",
    )
