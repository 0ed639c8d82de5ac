"""What a session tells of itself over HTTP: its place, its trust, its money, its images."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.support.serving import ended, numbers, serving

from robota.core.messages import TokenUsage
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
LOOK = call("Glob", pattern="*")


def make_wish(project: Path, command: str) -> None:
    """A hook that the project wants to run."""
    (project / ".claude").mkdir(exist_ok=True)
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


async def test_a_directory_is_trusted_by_whoever_saw_what_it_wants(project: Path) -> None:
    make_wish(project, "touch ran")
    provider = ScriptedProvider("one", "two")
    async with serving(provider, project, setting_sources=None) as server:
        id = await server.new()
        path = f"/sessions/{id}"
        shown = (await server.client.get(path)).json()
        await server.submit(id, "before")
        before = await server.read(id, ended)
        ran_before = (project / "ran").exists()

        stale = await server.client.post(f"{path}/trust", json={"trust": True, "trustId": "of-yesterday"})
        answer = {"trust": True, "trustId": shown["trustId"]}
        yes = await server.client.post(f"{path}/trust", json=answer)
        again = await server.client.post(f"{path}/trust", json=answer)
        await server.submit(id, "after")
        await server.read(id, ended, after=numbers(before)[-1])

    assert (shown["trusted"], ran_before) == (False, False)
    assert any("touch ran" in line for line in shown["trust"])
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "trust_changed")
    assert (yes.json()["trusted"], yes.json()["trust"], yes.json()["trustId"]) == (True, [], "")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "no_question")
    assert (project / "ran").exists()


async def test_a_no_is_kept_until_the_directory_wants_something_else(project: Path) -> None:
    make_wish(project, "touch ran")
    async with serving(ScriptedProvider(), project, setting_sources=None) as server:
        path = f"/sessions/{await server.new()}"
        shown = (await server.client.get(path)).json()
        no = await server.client.post(f"{path}/trust", json={"trust": False, "trustId": shown["trustId"]})
        later = (await server.client.get(path)).json()
        make_wish(project, "touch another")
        stale = await server.client.post(f"{path}/trust", json={"trust": True, "trustId": shown["trustId"]})
        changed = (await server.client.get(path)).json()

    assert (no.status_code, stale.status_code) == (200, 409)
    assert (later["trusted"], later["trust"]) == (False, [])
    assert any("touch another" in line for line in changed["trust"])
    assert changed["trustId"] != shown["trustId"]


async def test_a_server_that_only_shows_takes_no_answer_to_the_question_of_trust(project: Path) -> None:
    async with serving(ScriptedProvider(), project, read_only=True) as server:
        refused = await server.client.post("/trust", json={"trust": True, "trustId": "any"})

    assert refused.status_code == 403


async def test_a_session_tells_its_provider_and_the_branch_it_is_on_also_when_it_is_closed(
    project: Path,
) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/fix/it\n")
    provider = ScriptedProvider("done")
    async with serving(provider, project) as server:
        id = await server.new()
        await server.submit(id, "hi")
        await server.read(id, ended)
        shown = (await server.client.get(f"/sessions/{id}")).json()
    async with serving(provider, project) as server:
        kept = (await server.client.get(f"/sessions/{id}")).json()

    assert (shown["provider"], shown["branch"], shown["trusted"]) == ("scripted", "fix/it", True)
    assert (kept["branch"], kept["trusted"], kept["cost"]) == ("fix/it", None, None)


async def test_the_usage_of_each_round_is_told_also_after_a_resume(project: Path) -> None:
    provider = ScriptedProvider([LOOK, TokenUsage(100, 10, 20)], ["done", TokenUsage(200, 20)])
    async with serving(provider, project) as server:
        id = await server.new(model="claude-sonnet-4-5")
        await server.submit(id, "look")
        await server.read(id, ended)
        live = (await server.client.get(f"/sessions/{id}/usage")).json()
    async with serving(provider, project) as server:
        await server.client.post("/sessions", json={"resume": id, "model": "claude-sonnet-4-5"})
        resumed = (await server.client.get(f"/sessions/{id}/usage")).json()

    counts = [(each["inputTokens"], each["outputTokens"], each["cacheReadTokens"]) for each in live["rounds"]]
    assert counts == [(100, 10, 20), (200, 20, 0)]
    assert sum(each["costUsd"] for each in live["rounds"]) == pytest.approx(live["costUsd"])
    assert live["costUsd"] > 0
    assert resumed["rounds"] == live["rounds"]


async def test_the_images_of_a_prompt_can_be_drawn_again(project: Path) -> None:
    pixel = base64.b64encode(b"\x89PNG not really").decode()
    images = [{"mediaType": "image/png", "data": pixel}, {"mediaType": "image/gif", "data": pixel}]
    provider = ScriptedProvider("first", "second")
    async with serving(provider, project) as server:
        id = await server.new()
        await server.submit(id, "without")
        first = await server.read(id, ended)
        await server.submit(id, "with two", images=images)
        second = await server.read(id, ended, after=numbers(first)[-1])
        live = (await server.client.get(f"/sessions/{id}/images")).json()
    start = next(event.id for event in second if event.name == "run_start")
    async with serving(provider, project) as server:
        path = f"/sessions/{id}/images"
        kept = (await server.client.get(path)).json()
        behind = (await server.client.get(path, params={"after": start})).json()
        image = await server.client.get(f"{path}/{start}/1")
        missing = [
            (await server.client.get(f"{path}/{at}")).status_code for at in (f"{start}/2", "1/0", "x/y")
        ]
        assert not server.host.sessions

    assert [(each["event"], each["index"], each["mediaType"]) for each in live["images"]] == [
        (start, 0, "image/png"),
        (start, 1, "image/gif"),
    ]
    assert (kept, behind) == (live, {"images": []})
    assert (image.content, image.headers["content-type"]) == (b"\x89PNG not really", "image/gif")
    assert image.headers["content-security-policy"] == "sandbox"
    assert missing == [404, 404, 404]


async def test_a_file_is_found_with_what_a_prompt_calls_it(project: Path) -> None:
    (project / "two words.txt").write_text("x")
    async with serving(ScriptedProvider(), project) as server:
        found = await server.client.get(f"/sessions/{await server.new()}/files", params={"query": "words"})

    assert found.json() == [{"path": "two words.txt", "reference": '@"two words.txt"'}]
