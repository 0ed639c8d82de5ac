"""The keys of a session's providers are written nowhere, and the standard log tells none."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from robota.core.hooks import HookOutcome
from robota.core.retry import RetryingProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.options import HookOptions, SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools import tool

pytestmark = pytest.mark.anyio

KEY = "plain words of a key"
OTHER_KEY = "other words of a key"


class Keyed(ScriptedProvider):
    """A provider that says which key it holds."""

    secrets = (KEY,)


class OtherKeyed(ScriptedProvider):
    secrets = (OTHER_KEY,)


@tool
def leak(other: bool = False) -> str:
    """Give a key away."""
    return OTHER_KEY if other else KEY


def kept(directory: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in directory.rglob("*") if path.is_file())


async def test_the_key_of_a_provider_is_in_no_file_of_a_session(tmp_path: Path) -> None:
    provider = RetryingProvider(Keyed([call("leak")], f"It is {KEY}."))
    options = SessionOptions(permissions=PermissionRules(mode="bypassPermissions"))
    session = Session(provider=provider, tools=[leak], store=SessionStore(tmp_path), options=options)
    async with session:
        await session.run("tell me")
        session.set_provider(OtherKeyed([call("leak", other=True)], f"It is {OTHER_KEY}.", "Yes."), "m")
        await session.run(f"again: {OTHER_KEY}")
        child = session.child("helper")
        await child.run(f"and {KEY}, {OTHER_KEY}")
    text = kept(tmp_path)
    assert KEY not in text
    assert OTHER_KEY not in text
    assert text.count("[REDACTED]") >= 6


def test_a_provider_of_a_service_says_which_key_it_holds() -> None:
    provider = OpenAICompatibleProvider(base_url="http://localhost:1/v1", model="m", api_key=KEY)
    assert KEY in RetryingProvider(provider).secrets


class _Shown(logging.Handler):
    """What a program that listens to its log gets to see."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def shown() -> Iterator[_Shown]:
    handler = _Shown()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


async def test_records_of_the_standard_log_tell_no_secret(shown: _Shown) -> None:
    """Ours, those of a plugin under our name, and the traceback of a port that breaks."""

    class Broken:
        def has(self, event: str) -> bool:
            return event == "PreToolUse"

        async def fire(self, event: str, *_: object, **__: object) -> HookOutcome:
            if event != "PreToolUse":
                return HookOutcome(event=event)
            raise RuntimeError(f"refused {KEY} and password=hunter2secret")

    options = SessionOptions(hooks=HookOptions(port=Broken()))
    session = Session(provider=Keyed([call("leak")], "done"), tools=[leak], options=options)
    async with session:
        await session.run("go")
        logging.getLogger("robota.plugins.mine").warning("sent %s with %d words", {"token": KEY}, 3)
        logging.getLogger("elsewhere").warning("not ours: %s", KEY)
    ours = [line for line in shown.lines if line.startswith("robota.")]
    assert any("RuntimeError: refused [REDACTED] and password=[REDACTED]" in line for line in ours)
    assert "robota.plugins.mine: sent {'token': '[REDACTED]'} with 3 words" in ours
    assert not any(KEY in line or "hunter2secret" in line for line in ours)
    assert f"elsewhere: not ours: {KEY}" in shown.lines


async def test_a_warning_is_still_printed_where_no_log_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler(printed))
    async with Session(provider=Keyed("done")):
        logging.getLogger("robota.engine").warning("The key %s was refused.", KEY)
    assert printed.getvalue() == "The key [REDACTED] was refused.\n"


async def test_a_handler_further_down_and_one_that_formats_tracebacks_see_no_secret() -> None:
    class Own(_Shown):
        def emit(self, record: logging.LogRecord) -> None:
            super().emit(record)
            if record.exc_info:
                self.lines += traceback.format_exception(*record.exc_info)

    handler, logger = Own(), logging.getLogger("robota.plugins.mine")
    logger.addHandler(handler)
    async with Session(provider=Keyed("done")):
        try:
            raise RuntimeError(f"refused {KEY}")
        except RuntimeError:
            logger.exception("The key %s:", KEY)
        try:
            raise RuntimeError("harmless")
        except RuntimeError:
            logger.exception("Again:")
    logger.removeHandler(handler)
    said = "".join(handler.lines)
    assert KEY not in said
    assert "RuntimeError: refused [REDACTED]" in said
    assert said.count("RuntimeError: harmless") == 2


async def test_a_factory_of_records_that_a_program_sets_keeps_them_redacted(shown: _Shown) -> None:
    usual = logging.getLogRecordFactory()
    for theirs in (logging.LogRecord, lambda *args, **more: usual(*args, **more)):
        logging.setLogRecordFactory(theirs)
        async with Session(provider=Keyed("done")):
            logging.getLogger("robota.engine").warning("The key %s was refused.", KEY)
        logging.setLogRecordFactory(usual)
    assert shown.lines == ["robota.engine: The key [REDACTED] was refused."] * 2
