"""Settings: which count, where they were written, and how to change the user's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from anyio import to_thread

from robota.core.given import suggest
from robota.core.jsontext import decode
from robota.core.messages import Json
from robota.sdk.commands.arguments import dispatch, split_first, usage
from robota.sdk.commands.effects import CommandResult, Written, failure

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

HINT = "[list | get KEY | set KEY VALUE | unset KEY]"


async def config(host: InteractiveSession, args: str) -> CommandResult:
    actions = {"list": _list, "get": _get, "set": _set, "unset": _unset}
    return await dispatch(host, "config", args, actions)


async def _list(host: InteractiveSession, args: str) -> CommandResult:
    settings, shown = host.project.settings, host.project.places.shown
    lines = [
        f"{key} = {_show(host, key, value)}  [{', '.join(map(shown, settings.origins.get(key, ())))}]"
        for key, value in sorted(settings.values.items())
    ]
    return CommandResult("\n".join(lines) or "Nothing is set: everything is as usual.")


async def _get(host: InteractiveSession, args: str) -> CommandResult:
    from robota.sdk.settings.keys import KEYS  # noqa: PLC0415 - for those who look

    if args not in KEYS:
        return failure(f"There is no setting {args!r}; {suggest(args, KEYS)}")
    settings, key = host.project.settings, KEYS[args]
    value, origins = settings.values.get(args, key.default), settings.origins.get(args, ("default",))
    where = ", ".join(map(host.project.places.shown, origins))
    return CommandResult(f"{args} = {_show(host, args, value)}  [{where}]\n{key.about}")


async def _set(host: InteractiveSession, args: str) -> CommandResult:
    from robota.sdk.settings.write import change_setting  # noqa: PLC0415 - for those who change something

    name, text = split_first(args)
    if not text:
        return usage("config", HINT)
    problem, value = _read(name, text)
    if problem:
        return failure(problem)
    path = host.project.places.user("settings.json")
    await to_thread.run_sync(change_setting, path, name, value)
    shown = host.project.places.shown(path)
    return CommandResult(f"{name} = {_show(host, name, value)}  [{shown}]", effect=Written(path))


async def _unset(host: InteractiveSession, args: str) -> CommandResult:
    from robota.sdk.settings.write import remove_setting  # noqa: PLC0415 - as above

    if not args:
        return usage("config", HINT)
    path = host.project.places.user("settings.json")
    shown = host.project.places.shown(path)
    if not await to_thread.run_sync(remove_setting, path, args):
        return failure(f"{args} is not set in {shown}.")
    return CommandResult(f"{args} is not set any more in {shown}.", effect=Written(path))


def _read(name: str, text: str) -> tuple[str, Json]:
    """What is wrong with a setting, and its value: JSON, else a text as it is."""
    from robota.sdk.settings.layers import Layer  # noqa: PLC0415 - as above
    from robota.sdk.settings.merge import merge_layers  # noqa: PLC0415 - as above

    try:
        value = decode(text)
    except ValueError:
        value = text
    values = value
    for key in reversed(name.split(".")):
        values = {key: values}
    merged = merge_layers([Layer(name="user", path="/config", values=values)], trusted=True)
    return " ".join(f"{problem.subject}: {problem.message}" for problem in merged.problems), value


def _show(host: InteractiveSession, key: str, value: Json) -> str:
    """The value on one line, without secrets."""
    redacted = host.session.log.secrets.redactor.value({key: value})
    return json.dumps(redacted[key], ensure_ascii=False)
