from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.providers.bytedance.ark_server import ArkServer, State
from tests.providers.raw_server import HEAD, RawServer

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    ModelNotAvailableError,
    NetworkError,
    ProviderError,
)
from robota.core.messages import ImagePart, ImageUriPart, TextPart
from robota.core.ports import Ports
from robota.providers.bytedance import ByteDanceTasks, Reference, Task, TaskFailed

pytestmark = pytest.mark.anyio
DONE: State = {
    "status": "succeeded", "content": {"video_url": "https://v/1.mp4", "last_frame_url": "https://v/1.png"},
    "usage": {"completion_tokens": 9, "total_tokens": 9}, "updated_at": 5,
}  # fmt: skip


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.ports = Ports(monotonic=lambda: sum(self.waits), sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def account(server: ArkServer, clock: Clock | None = None, key: str = "ark-key-1234") -> ByteDanceTasks:
    return ByteDanceTasks(key, server.url, "seedance", ports=(clock or Clock()).ports)


async def test_a_task_is_made_and_waited_for() -> None:
    clock, seen = Clock(), []
    async with ArkServer("queued", "running", "running", DONE) as server, account(server, clock) as tasks:
        task = await tasks.create("A kite over the sea.", options={"duration": 5, "seed": 1})
        assert (task.id, task.status, task.model) == ("cgt-1", "queued", "seedance")
        done = await tasks.wait(task, interval=2, on_progress=lambda task: seen.append(task.status))
    assert (done.video_url, done.last_frame_url) == ("https://v/1.mp4", "https://v/1.png")
    assert (done.total_tokens, done.created_at, done.updated_at) == (9, 1, 5)
    assert done.raw["usage"]["completion_tokens"] == 9
    assert seen == ["queued", "running", "running", "succeeded"]
    assert clock.waits == [2, 3, 4.5]
    assert server.requests[0].json == {
        "model": "seedance", "duration": 5, "seed": 1,
        "content": [{"type": "text", "text": "A kite over the sea."}],
    }  # fmt: skip


async def test_pictures_and_references_are_sent_in_their_roles() -> None:
    async with ArkServer() as server, account(server) as tasks:
        await tasks.create(
            (
                TextPart("Dance."),
                ImagePart("aGk=", "image/jpeg"),
                ImageUriPart("https://x/a.png"),
                Reference("https://x/b.png"),
                Reference("https://x/c.png", "last_frame"),
                Reference("asset://d", "reference_video"),
                Reference("https://x/e.mp3", "reference_audio"),
            ),
            model="other",
        )
    assert server.requests[0].json["content"] == [
        {"type": "text", "text": "Dance."},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        {"type": "image_url", "image_url": {"url": "https://x/b.png"}, "role": "reference_image"},
        {"type": "image_url", "image_url": {"url": "https://x/c.png"}, "role": "last_frame"},
        {"type": "video_url", "video_url": {"url": "asset://d"}, "role": "reference_video"},
        {"type": "audio_url", "audio_url": {"url": "https://x/e.mp3"}, "role": "reference_audio"},
    ]


async def test_a_task_that_fails_says_why() -> None:
    failed = {"status": "failed", "error": {"code": "OutputVideoSensitive", "message": "Not this one."}}
    async with ArkServer(failed) as server, account(server) as tasks:
        with pytest.raises(TaskFailed, match=r"failed \(OutputVideoSensitive: Not this one\)") as caught:
            await tasks.wait(await tasks.create("x"))
    assert caught.value.task.error_code == "OutputVideoSensitive"


@pytest.mark.parametrize("status", ["cancelled", "expired"])
async def test_a_task_that_was_given_up_is_no_result(status: str) -> None:
    async with ArkServer("running", status) as server, account(server) as tasks:
        with pytest.raises(TaskFailed, match=status):
            await tasks.wait(await tasks.create("x"))


async def test_waiting_outlasts_moments_of_weakness() -> None:
    clock = Clock()
    # It is asked once more when it hangs up on a kept connection, so it has to do so twice.
    async with ArkServer(503, None, None, 429, "running", DONE) as server, account(server, clock) as tasks:
        done = await tasks.wait(await tasks.create("x"), interval=1)
    assert done.status == "succeeded"
    assert clock.waits == [1, 1.5, 7, 3.375]


async def test_waiting_ends_in_time_and_at_errors_that_stay() -> None:
    clock = Clock()
    async with ArkServer("running") as server, account(server, clock) as tasks:
        task = await tasks.create("x")
        with pytest.raises(ProviderError, match="not over after 100 seconds"):
            await tasks.wait(task, timeout=100)
        assert sum(clock.waits) <= 100
        assert max(clock.waits) == 30
        with pytest.raises(ProviderError, match="not found"):
            await tasks.wait("cgt-99")


async def test_a_wait_can_be_cancelled_and_leaves_the_task_alone() -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with ArkServer("running") as server:
        async with ByteDanceTasks("ark-key-1234", server.url, "m", ports=Ports(sleep=sleep)) as tasks:
            task = await tasks.create("x")
            wait = asyncio.create_task(tasks.wait(task))
            await waiting.wait()
            wait.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wait
        assert server.asked() == [("POST", ""), ("GET", "/cgt-1")]


async def test_a_queued_task_is_cancelled_and_others_are_not_touched() -> None:
    async with ArkServer("queued", "running", "succeeded") as server, account(server) as tasks:
        queued, running, done = [await tasks.create(text) for text in ("a", "b", "c")]
        await tasks.cancel(queued)
        with pytest.raises(ProviderError, match="cannot be deleted"):
            await tasks.cancel(running)
        with pytest.raises(ProviderError, match="nothing to cancel"):
            await tasks.cancel(done.id)
        assert list(server.tasks) == [running.id, done.id]
        await tasks.delete(done)
        assert list(server.tasks) == [running.id]


async def test_tasks_are_listed_by_page_status_and_id() -> None:
    async with ArkServer("running") as server, account(server) as tasks:
        made = [await tasks.create(f"number {n}") for n in range(5)]
        await tasks.get(made[0])
        page = await tasks.list(page=2, size=2)
        assert ([task.id for task in page.tasks], page.total) == (["cgt-3", "cgt-4"], 5)
        assert [task.id for task in (await tasks.list(status="running")).tasks] == ["cgt-1"]
        some = await tasks.list(ids=["cgt-2", "cgt-5"], model="seedance")
        assert [task.id for task in some.tasks] == ["cgt-2", "cgt-5"]


async def test_errors_are_of_our_kinds_and_show_no_key() -> None:
    async with ArkServer() as server:
        async with account(server, key="wrong-key-12") as tasks:
            with pytest.raises(AuthenticationError) as caught:
                await tasks.create("x")
        assert (caught.value.status, "wrong-key-12" in str(caught.value)) == (401, False)
        async with account(server) as tasks:
            with pytest.raises(ModelNotAvailableError):
                await tasks.create("x", model="no-such")
        async with ByteDanceTasks("ark-key-1234", server.url.replace("v3", "v9"), "m") as lost:
            with pytest.raises(ProviderError) as caught:
                await lost.create("x")
        assert "<" not in str(caught.value)
        address = server.url
    async with ByteDanceTasks("ark-key-1234", address, "m") as gone:
        with pytest.raises(NetworkError):
            await gone.create("x")


@pytest.mark.parametrize("prompt", ["", " ", [], [TextPart("")], [object()]])
async def test_a_task_of_nothing_is_refused_before_anything_is_sent(prompt: Any) -> None:
    with pytest.raises(ConfigurationError):
        await ByteDanceTasks("k", "http://127.0.0.1:9", "m").create(prompt)


async def test_what_is_missing_is_said() -> None:
    with pytest.raises(ConfigurationError, match="api_key"):
        ByteDanceTasks(" ")
    with pytest.raises(ConfigurationError, match="needs a model"):
        await ByteDanceTasks("k").create("x")
    with pytest.raises(ConfigurationError, match="empty"):
        await ByteDanceTasks("k").get("")


async def test_an_unknown_status_is_not_taken_for_a_known_one() -> None:
    async with ArkServer("dreaming") as server, account(server) as tasks:
        with pytest.raises(ProviderError, match="dreaming"):
            await tasks.wait(await tasks.create("x"))


async def test_a_service_that_does_not_answer_is_given_up() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/api/v3"
    async with silent, ByteDanceTasks("ark-key-1234", address, "m", timeout=0.05) as tasks:
        with pytest.raises(NetworkError, match="did not answer"):
            await tasks.create("x")


def test_it_is_no_chat_provider() -> None:
    assert not hasattr(ByteDanceTasks("k"), "stream")
    assert Task(id="a", status="expired").is_over


async def test_an_answer_without_end_is_not_read_to_it() -> None:
    async with RawServer(HEAD, endless=b" " * 60_000) as server, ByteDanceTasks("key", server.url) as tasks:
        with pytest.raises(ProviderError, match="not JSON"):
            await tasks.get("cgt-1")
