"""What a session writes: while it runs, without secrets, for nobody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sessions.live_session import Studio, all_bytes, run

from robota.core.errors import AbortError, ProviderError
from robota.core.events import TextDelta
from robota.core.messages import HistoryEntry
from robota.core.provider import NativePayload
from robota.core.questions import PermissionAnswer
from robota.core.tool import ToolContext, ToolResult
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.files import Files
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.redaction import REDACTED, Redactor
from robota.testing import Fail, ModelServer, Stall, call, fixed_ports
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

ALLOWED = PermissionRules(mode="bypassPermissions")
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
OWN = "correct-horse-battery-staple-9147"
"""A value without any recognisable shape, which the process itself holds."""
WORDS = [f"word-{number} " for number in range(100)]


class ToldFiles(Files):
    """The real disk; sets an event when a run of deltas was written."""

    __slots__ = ("what", "written")

    def __init__(self, what: bytes = b'"event":"stream"') -> None:
        self.what = what
        self.written = anyio.Event()

    def write(self, fd: int, data: bytes) -> int:
        size = super().write(fd, data)
        if self.what in data:
            self.written.set()
        return size


# --- while the run is going -------------------------------------------------------------------------------


async def test_the_words_of_an_answer_are_on_the_disk_while_it_is_being_given(tmp_path: Path) -> None:
    files = ToldFiles()
    studio = Studio(tmp_path, [*WORDS, Stall()], files=files)

    async def start() -> None:
        with pytest.raises(AbortError):
            await studio.session.run("go")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await files.written.wait()
            log = studio.log()
            studio.session.abort()

    text = "".join(entry["delta"] for entry in log if entry["event"] == "text_delta")
    whole = "".join(WORDS)
    assert whole.startswith(text)
    assert len(whole) - len(text) <= 256


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        (["Half an answer, 17"], "Half an answer, "),
        (["Half an ", "answer. "], "Half an answer. "),
        (["漢字", "仮名"], "漢字仮名"),
        (["It is late.\n", "Go home.\n", f"The key is {TOKEN[:20]}"], "It is late.\nGo home.\nThe key is "),
        (
            [f"It was {TOKEN} once.\n", "Change it now.\n", "Then go "],
            f"It was {REDACTED} once.\nChange it now.\nThen go ",
        ),
    ],
)
async def test_words_that_were_seen_are_on_the_disk_after_a_silence(
    tmp_path: Path, pieces: list[str], kept: str
) -> None:
    files = ToldFiles(b'"tail"')
    studio = Studio(tmp_path, [*pieces, Stall()], files=files)

    async def start() -> None:
        with pytest.raises(AbortError):
            await studio.session.run("go")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await files.written.wait()
            cut = studio.restored().messages[-1]
            studio.session.abort()

    assert (cut.content, cut.state) == (kept, "interrupted")
    assert studio.restored().messages[-1].content == Redactor().text("".join(pieces))


async def test_a_session_that_is_being_written_can_be_read_by_others(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", [call("add", a=1, b=2)], "three", rules=ALLOWED)
    await studio.session.run("1")
    await studio.session.run("2")

    restored = studio.restored()

    assert restored.problems == ()
    assert restored.messages == studio.session.messages
    assert not restored.closed


async def test_a_recorded_answer_comes_back_delta_by_delta(tmp_path: Path) -> None:
    studio = Studio(tmp_path, WORDS)
    told: list[str] = []
    studio.session.events.on(TextDelta, lambda event: told.append(event.text))
    await studio.session.run("go")

    assert [entry["delta"] for entry in studio.log() if entry["event"] == "text_delta"] == told == WORDS


async def test_the_clock_of_the_session_is_the_clock_of_its_journal(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", ports=fixed_ports())
    await studio.session.run("1")
    first = studio.session.messages[0].timestamp
    assert studio.records[0]["timestamp"][:10] == first.isoformat()[:10]


# --- secrets ------------------------------------------------------------------------------------------------


def in_pieces(text: str, size: int = 3) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def leak(secret: str) -> ToolResult:
    return ToolResult(content=f"remote: {secret}", metadata={"header": f"Bearer {secret}"})


@pytest.mark.parametrize("secret", [TOKEN, OWN])
async def test_a_secret_reaches_no_file_wherever_it_comes_from(tmp_path: Path, secret: str) -> None:
    class Leaky:
        name = "leaky"
        description = f"The key is {secret}"
        parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012 - the shape of a tool

        async def run(self, arguments: object, context: ToolContext) -> ToolResult:
            context.progress(f"using {secret}")
            return leak(secret)

    async def refuse(request: object) -> PermissionAnswer:
        return PermissionAnswer(allow=True, message=f"with {secret}")

    studio = Studio(
        tmp_path,
        ["I use ", *in_pieces(secret), " now.", call("leaky", key=secret)],
        [NativePayload(kind="stream_event", payload={"text": secret}), *in_pieces(f"It was {secret}.")],
        [Fail(ProviderError(f"401 for {secret}"))],
        f"summary with {secret}",
        "done",
        tools=[Leaky()],
        system=f"Use {secret}.",
        handler=refuse,
        redactor=Redactor([OWN]),
        name=f"about {secret}",
        hooks={
            "UserPromptSubmit": [run(f"echo token {secret}")],
            "PostToolUse": [run(f"echo '{secret}' >&2; exit 1")],
            "Stop": [run(f'echo \'{{"systemMessage": "{secret}"}}\'')],
        },
    )
    session = studio.session
    await session.run(f"Take {secret}", raw_input=f"/take {secret}")
    with pytest.raises(ProviderError):
        await session.run("again")
    session.inject_message("user", f"psst: {secret}")
    session.add_history_entry(HistoryEntry(category="event", type="note", data={"text": secret}))
    session.name = f"still about {secret}"
    await session.compact(f"keep {secret}")
    await session.run("and now?")
    await session.shutdown()

    assert secret in "".join(message.content for message in session.messages)
    assert secret.encode() not in all_bytes(studio.kept)
    assert "[REDACTED]" in studio.path.read_text()
    found = session.store.list()  # type: ignore[union-attr]  # the index is made of what is on the disk
    assert len(found) == 1
    assert secret.encode() not in all_bytes(studio.kept)


async def test_a_secret_in_a_large_output_is_not_in_the_payload_file_either(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [call("Bash", command="go")], "done", tools=[], rules=ALLOWED)
    studio.session.inject_message("user", f"{'x' * 50_000} {TOKEN} {'y' * 50_000}")
    await studio.session.run("go")
    await studio.session.shutdown()

    payloads = list((studio.kept / "s-1.payloads").iterdir())
    assert len(payloads) >= 1
    assert TOKEN.encode() not in all_bytes(studio.kept)


async def test_a_resumed_session_uses_what_was_written(tmp_path: Path) -> None:
    first = Studio(tmp_path, "ok")
    await first.session.run(f"Take {TOKEN}")
    await first.session.shutdown()

    second = first.resume("and?")
    await second.session.run("go on")

    sent = [message.content for message in second.provider.requests[0].messages]
    assert sent[1] == "Take [REDACTED]"


async def test_no_key_of_a_provider_is_written(tmp_path: Path) -> None:
    async with (
        ModelServer(["Hel", "lo"]) as server,
        OpenAICompatibleProvider(api_key=OWN, base_url=f"{server.url}/v1", model="m") as provider,
    ):
        studio = Studio(tmp_path, provider=provider)
        assert await studio.session.run("hi") == "Hello"
        await studio.session.shutdown()

    assert OWN.encode() not in all_bytes(studio.kept)
    assert studio.log().problems == ()


# --- for nobody else ---------------------------------------------------------------------------------------


async def test_files_are_private_whatever_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        studio = Studio(tmp_path, [call("big")], "done", tools=[big], rules=ALLOWED)
        await studio.session.run("go" * 40_000)
        await studio.session.shutdown()
        assert studio.session.store is not None
        studio.session.store.list()
    finally:
        os.umask(before)

    for path in [studio.kept, *studio.kept.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


@tool
async def big() -> str:
    """Give a long text."""
    return "z" * 200_000


# --- the shape ---------------------------------------------------------------------------------------------


async def test_a_long_session_stores_each_message_once(tmp_path: Path) -> None:
    text = "unmistakable " * 20
    replies = [[text, call("add", f"c{number}", a=number, b=1)] for number in range(30)]
    studio = Studio(tmp_path, *replies, "done", rules=ALLOWED)
    await studio.session.run("go")

    # each answer stands in its deltas and in its message
    assert studio.path.read_text().count("unmistakable") == 2 * 20 * 30
