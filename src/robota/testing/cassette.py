"""Recorded provider traffic: a cassette answers requests from a file, or from the service while it records.

Tests get one from the pytest fixture `robota_cassette` (`robota.testing.cassette_plugin`). A cassette is
strict: what was not recorded is not answered, and what was recorded must be asked for.

Method, address and body of a request must be equal; the order of JSON fields does not count, and `[REDACTED]`
in a recording stands for whatever was secret there. Requests match in the order of the recording, except
those that were under way at the same time.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from robota.core.messages import Json
from robota.sessions.redaction import REDACTED
from robota.testing.cassette_file import (
    Exchange,
    RecordedReply,
    Secrets,
    SentRequest,
    Take,
    format_cassette,
    kept_exchanges,
    read_cassette,
    to_yaml,
    write_cassette,
)

if TYPE_CHECKING:
    import httpx2

    from robota.testing.cassette_transport import CassetteTransport

Mode = Literal["none", "once", "all"]
Made = TypeVar("Made")
KEY_IN_REPLAYS = "no-key-is-needed"
DIFF_WIDTH = 100
DIFF_LINES = 120
AGAIN = "To record anew, delete the file or run pytest with --robota-cassette=all."


class CassetteMismatch(AssertionError):
    """The traffic is not the recorded one."""


class Cassette:
    """One file of traffic, being recorded or replayed.

    `mode` is `none` (only replay), `once` (record if there is no file yet) or `all` (record). `errors` keeps
    refusals and broken replies, which are left out otherwise. `ignore` names fields of JSON bodies that do
    not count, such as `metadata.user_id`.
    """

    def __init__(
        self,
        path: Path,
        *,
        mode: Mode = "once",
        errors: bool = False,
        ignore: Sequence[str] = (),
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.path = path
        self._shown = _beside(path)
        self.recording = mode == "all" or (mode == "once" and not path.exists())
        """Whether requests go to the service."""
        self.misses: list[str] = []
        """What was asked for and not recorded, each with its explanation."""
        self._errors = errors
        self._ignored = [name.split(".") for name in ignore]
        self._secrets = Secrets(environment)
        self._replacements: list[tuple[str, str]] = []
        self._takes: list[Take] = []
        self._exists = path.exists()
        known: Sequence[Exchange] = () if self.recording or not self._exists else read_cassette(path)
        self._matcher = _Matcher(known)

    # --- for tests ---------------------------------------------------------------------------------------

    @property
    def transport(self) -> CassetteTransport:
        """For a provider, which takes it as `transport` and closes it; each time another one."""
        from robota.testing.cassette_transport import CassetteTransport  # noqa: PLC0415 - loads httpx2

        return CassetteTransport(self)

    def client(self, **options: Any) -> httpx2.AsyncClient:
        """An `httpx2.AsyncClient` over the cassette, for everything else that talks to a service."""
        import httpx2  # noqa: PLC0415 - 74 ms, only for tests that want a client

        return httpx2.AsyncClient(transport=self.transport, **options)

    @property
    def sync_transport(self) -> httpx2.BaseTransport:
        """The same for code without an event loop, such as the vendors' synchronous clients."""
        return self.transport

    def sync_client(self, **options: Any) -> httpx2.Client:
        """An `httpx2.Client` over the cassette."""
        import httpx2  # noqa: PLC0415 - 74 ms, only for tests that want a client

        return httpx2.Client(transport=self.sync_transport, **options)

    def provider(self, factory: Callable[..., Made], /, *arguments: Any, **options: Any) -> Made:
        """A provider over the cassette: `robota_cassette.provider(MyProvider, model="small")`.

        A key given as `api_key` is never written. A replay needs none.
        """
        key = options.get("api_key")
        if isinstance(key, str):
            self.hide(key)
        takes_key = "api_key" in inspect.signature(factory).parameters
        if takes_key and not arguments and not key and not self.recording:
            options["api_key"] = KEY_IN_REPLAYS
        return factory(*arguments, **options, transport=self.transport)

    def hide(self, secret: str) -> None:
        """Never write this text."""
        self._secrets.add(secret, "a text that was to be hidden")

    def replace(self, value: str, name: str) -> None:
        """Write `<name>` in the place of a text that is another one in each run, such as a temporary path.

        A replay puts the text of its own run into replies. Where a reply has the text in pieces, as streamed
        tool arguments do, it stays as it was recorded.
        """
        self._replacements.append((value, f"<{name}>"))

    def finish(self) -> list[str]:
        """End the recording or the replay of a test that passed; remarks for people.

        Raises `CassetteMismatch` for traffic that differs, `ConfigurationError` for a secret in a recording.
        """
        if self.recording:
            return self._save()
        problem = self.complaint()
        if problem:
            raise CassetteMismatch(problem)
        return []

    def complaint(self) -> str:
        """What is wrong with the traffic so far, empty for nothing."""
        if self.misses:
            return "\n\n".join(self.misses)
        unused = self._matcher.unused()
        if not unused:
            return ""
        listed = "\n".join(f"  {at}. {request.method} {request.url}" for at, request in unused)
        return f"Recorded in {self._shown} and not asked for:\n{listed}\n{AGAIN}"

    # --- for the transport -------------------------------------------------------------------------------

    def describe(self, request: httpx2.Request, content: bytes) -> Asked:
        """The request as it is compared and written."""
        if self.recording:
            self._secrets.learn(request.headers.items(), request.url.query.decode())
        url: str = self._replaced(str(request.url))
        body = self._replaced(_read_body(content))
        for path in self._ignored:
            _remove(body, path)
        redactor = self._secrets.redactor
        hidden = SentRequest(request.method, redactor.text(url), redactor.value(body))
        return Asked(hidden, SentRequest(request.method, url, body))

    def answer(self, asked: Asked) -> RecordedReply:
        """The recorded reply; a miss is remembered and raised."""
        exchange = self._matcher.take(asked)
        if exchange is None:
            self.misses.append(self._explain(asked))
            raise CassetteMismatch(self.misses[-1])
        reply = exchange.response
        if reply.encoding == "text" and self._replacements:
            reply = msgspec.structs.replace(reply, body=tuple(map(self._restored, reply.body)))
        return reply

    def begin(self, asked: Asked) -> Take:
        """Record an exchange with the service."""
        answered = next((at for at, take in enumerate(self._takes) if take.ended is None), len(self._takes))
        self._takes.append(Take(asked.shown, answered))
        return self._takes[-1]

    def ran_out(self) -> CassetteMismatch:
        """The error for a client that wants more of a reply than the recording client did."""
        self.misses.append(f"A reply in {self._shown} was recorded only as far as it was read then. {AGAIN}")
        return CassetteMismatch(self.misses[-1])

    # --- inside ------------------------------------------------------------------------------------------

    def _explain(self, asked: Asked) -> str:
        if not self._exists:
            return (
                f"{asked.shown.method} {asked.shown.url} was sent, there is no {self._shown}, and with "
                "--robota-cassette=none, the default where CI is set, nothing is recorded. Run the test once "
                "with --robota-cassette=once where the service can be reached, and commit the file."
            )
        return f"Not in {self._shown}: {self._matcher.explain(asked)}\n{AGAIN}"

    def _save(self) -> list[str]:
        exchanges = kept_exchanges(self._takes, errors=self._errors, hide=self._written)
        notes = []
        failures = [take.failure for take in self._takes if take.failure]
        if failures and not self._errors:
            notes.append(
                f"{self._shown}: left out {', '.join(failures)}; "
                "@pytest.mark.robota_cassette(errors=True) keeps replies that are errors"
            )
        if exchanges:
            text = format_cassette(exchanges)
            self._secrets.refuse(exchanges, text)
            write_cassette(self.path, text)
            notes.insert(0, f"{self._shown}: recorded {len(exchanges)} request{'s' * (len(exchanges) != 1)}")
        return notes

    def _written(self, piece: str) -> str:
        """A piece of a reply as it is written."""
        for value, name in self._replacements:
            piece = piece.replace(_escaped(value), name)
        return self._secrets.hide_in_piece(piece)

    def _restored(self, piece: str) -> str:
        for value, name in self._replacements:
            piece = piece.replace(name, _escaped(value))
        return piece

    def _replaced(self, value: Json) -> Json:
        """JSON with every replacement made in its texts."""
        if isinstance(value, str):
            for text, name in self._replacements:
                value = value.replace(text, name)
            return value
        if isinstance(value, dict):
            return {key: self._replaced(item) for key, item in value.items()}
        return [self._replaced(item) for item in value] if isinstance(value, list) else value


def _beside(path: Path) -> str:
    """The path as people type it, from where the tests were started."""
    try:
        return os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)


def _escaped(value: str) -> str:
    return msgspec.json.encode(value).decode()[1:-1]


def _read_body(content: bytes) -> Json:
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content.decode("utf-8", "backslashreplace")


def _remove(value: Json, path: Sequence[str]) -> None:
    for name in path[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value.pop(path[-1], None)


# --- which recorded request a request is ---------------------------------------------------------------


class Asked(Struct, frozen=True):
    """A request to be matched: as it may be shown, and as it was sent.

    Which texts are secret depends on the machine, so that either may be the recorded one.
    """

    shown: SentRequest
    plain: SentRequest

    def is_like(self, recorded: SentRequest) -> bool:
        return _equal(recorded, self.shown) or _equal(recorded, self.plain)


class _Matcher:
    """Hands out each recorded exchange once."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = tuple(exchanges)
        self._used = [False] * len(exchanges)

    def take(self, asked: Asked) -> Exchange | None:
        """The exchange this request is, if there is one that nobody had and whose turn it is."""
        for at, exchange in enumerate(self._exchanges):
            if not self._used[at] and self._is_due(at) and asked.is_like(exchange.request):
                self._used[at] = True
                return exchange
        return None

    def unused(self) -> list[tuple[int, SentRequest]]:
        """Recorded requests that were not sent, with their numbers from 1."""
        pairs = enumerate(self._exchanges, 1)
        return [(at, exchange.request) for at, exchange in pairs if not self._used[at - 1]]

    def explain(self, asked: Asked) -> str:
        """Why a request has no recording, with what it differs in from the nearest."""
        sent = asked.shown
        told = f"{sent.method} {sent.url}"
        same = [at for at, known in enumerate(self._exchanges) if asked.is_like(known.request)]
        waiting = [at for at in same if not self._used[at]]
        if waiting:
            first = next(at for at, used in enumerate(self._used) if not used)
            return (
                f"{told} is request {waiting[0] + 1} of the recording and was sent too early: "
                f"request {first + 1} has not been sent yet.\n{self._diff(first, sent)}"
            )
        if same:
            return f"{told} was sent once more than it was recorded ({len(same)} times)."
        if not self._exchanges:
            return f"{told} was sent, and the recording is empty."
        nearest = self._nearest(sent)
        used = ", which was sent before" if self._used[nearest] else ""
        return (
            f"{told} is none of the {len(self._exchanges)} recorded requests. "
            f"The nearest is request {nearest + 1}{used}:\n{self._diff(nearest, sent)}"
        )

    def _is_due(self, at: int) -> bool:
        after = self._exchanges[at].after
        return all(self._used[: at if after is None else after])

    def _nearest(self, sent: SentRequest) -> int:
        """The likeliest request; among equals the first that is still waited for."""
        text = _render(sent).splitlines()
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(text)

        def likeness(at: int) -> tuple[float, bool, int]:
            matcher.set_seq1(_render(self._exchanges[at].request).splitlines())
            return matcher.ratio(), not self._used[at], -at

        return max(range(len(self._exchanges)), key=likeness)

    def _diff(self, at: int, sent: SentRequest) -> str:
        recorded = _render(self._exchanges[at].request).splitlines()
        lines = unified_diff(
            recorded, _render(sent).splitlines(), f"recorded request {at + 1}", "sent now", lineterm=""
        )
        shown = list(lines)
        left = len(shown) - DIFF_LINES
        return "\n".join([*shown[:DIFF_LINES], f"… and {left} lines more"] if left > 0 else shown)


def _render(request: SentRequest) -> str:
    """A request as text for a diff; long lines are folded so that a difference can be seen."""
    return to_yaml(msgspec.to_builtins(request), width=DIFF_WIDTH, sort_keys=True)


def _equal(recorded: SentRequest, sent: SentRequest) -> bool:
    return (
        recorded.method == sent.method and _same(recorded.url, sent.url) and _same(recorded.body, sent.body)
    )


def _same(recorded: Json, sent: Json) -> bool:
    """Equality in which a redacted place is equal to anything."""
    if recorded == REDACTED:
        return True
    if isinstance(recorded, str):
        return isinstance(sent, str) and (recorded == sent or _fits(recorded, sent))
    if isinstance(recorded, dict):
        return (
            isinstance(sent, dict)
            and recorded.keys() == sent.keys()
            and all(_same(value, sent[key]) for key, value in recorded.items())
        )
    if isinstance(recorded, list):
        return isinstance(sent, list) and len(recorded) == len(sent) and all(map(_same, recorded, sent))
    return type(recorded) is type(sent) and bool(recorded == sent)


def _fits(recorded: str, sent: str) -> bool:
    if REDACTED not in recorded:
        return False
    return re.fullmatch(".+".join(map(re.escape, recorded.split(REDACTED))), sent, re.DOTALL) is not None
