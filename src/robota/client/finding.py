"""The sessions of a host, and one of them as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec import Struct, ValidationError, convert

from robota.client.connection import Connection, read_address
from robota.core.context import ContextWindowState
from robota.core.messages import JsonObject
from robota.sdk.commands.registry import CommandName
from robota.sdk.session_facts import SessionDetails, SessionFacts, SessionPage

MALFORMED = (ValidationError, LookupError, TypeError)
"""What reading an answer raises that some other server gave."""
LOOKS = 5
"""How often the state is read until nothing happens meanwhile."""


class Found(Struct, frozen=True, kw_only=True):
    """A session of a host, at one moment."""

    details: SessionDetails
    history: list[JsonObject]
    context: ContextWindowState
    commands: list[CommandName]


async def list_sessions(url: str, token: str = "", *, query: str = "", cwd: str = "") -> list[SessionFacts]:
    """The sessions of a host, the last one first; with a `query` those in which its words were said."""
    address, token, _ = read_address(url, token)
    connection = Connection(address, token, name="python")
    found: list[SessionFacts] = []
    cursor: str | None = ""
    try:
        while cursor is not None:
            asked = {"query": query, "cwd": cwd, "cursor": cursor}
            given = urlencode({name: value for name, value in asked.items() if value})
            page = convert(await connection.call("GET", f"/sessions?{given}"), SessionPage)
            found += page.sessions
            cursor = page.next
    except MALFORMED as error:
        raise connection.no_host() from error
    finally:
        await connection.aclose()
    return found


async def find_session(connection: Connection, id: str, wanted: Mapping[str, str | None]) -> Found:
    """The session of that id, opened if it is only kept; without one a new session as it is wanted."""
    try:
        return await _find(connection, id, wanted)
    except MALFORMED as error:
        raise connection.no_host() from error


async def _find(connection: Connection, id: str, wanted: Mapping[str, str | None]) -> Found:
    call = connection.call
    if not id:
        given = {key: value for key, value in wanted.items() if value is not None}
        id = (await call("POST", "/sessions", given))["id"]
    path = f"/sessions/{id}"
    details = await call("GET", path)
    if details["state"] == "stored" and not details["readOnly"]:
        details = await call("POST", "/sessions", {"resume": id})
    for _ in range(LOOKS):  # both as they are at one moment, unless it never stands still
        history = await call("GET", f"{path}/history")
        before, details = details, await call("GET", path)
        if before.get("lastEvent") == details["lastEvent"]:
            break
    listed = await call("GET", f"{path}/commands")
    return Found(
        details=convert(details, SessionDetails),
        history=history["history"],
        context=convert(await call("GET", f"{path}/context"), ContextWindowState),
        commands=[CommandName(each["name"], each["description"]) for each in listed["commands"]],
    )
