from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import Struct

from robota import create_query
from robota.core.errors import ConfigurationError, ProviderError
from robota.testing import Fail, ScriptedProvider, call

pytestmark = pytest.mark.anyio


class Answer(Struct):
    number: int


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


async def test_a_prompt_and_its_answer(tmp_path: Path) -> None:
    query = create_query(provider=ScriptedProvider("four"))
    said: list[str] = []

    assert await query("2 + 2?", cwd=tmp_path, on_text_delta=said.append) == "four"
    assert "".join(said) == "four"


async def test_tools_run_unasked_unless_another_mode_is_given(tmp_path: Path) -> None:
    def provider() -> ScriptedProvider:
        return ScriptedProvider([call("Write", file_path="a.txt", content="x")], "done")

    await create_query(provider=provider(), cwd=tmp_path, permission_mode="default")("write")
    assert not (tmp_path / "a.txt").exists()
    await create_query(provider=provider(), cwd=tmp_path)("write")
    assert (tmp_path / "a.txt").read_text() == "x"


async def test_many_at_once_from_one_factory(tmp_path: Path) -> None:
    query = create_query(provider=ScriptedProvider(*["same"] * 20), cwd=tmp_path)

    answers = await asyncio.gather(*(query(f"prompt {number}") for number in range(20)))

    assert answers == ["same"] * 20


async def test_a_typed_answer(tmp_path: Path) -> None:
    query = create_query(provider=ScriptedProvider('{"number": 7}'), cwd=tmp_path)

    answer = await query("a number", output=Answer)

    assert answer == Answer(7)


async def test_a_failing_model_raises(tmp_path: Path) -> None:
    query = create_query(provider=ScriptedProvider(Fail(ProviderError("down"))), cwd=tmp_path)

    with pytest.raises(ProviderError):
        await query("hi")


async def test_rounds_are_limited_per_call(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="a.txt")], "summary")
    (tmp_path / "a.txt").write_text("text")

    assert await create_query(provider=provider)("go", cwd=tmp_path, max_turns=1) == "summary"
    assert len(provider.requests) == 2


async def test_a_mistake_is_told_when_the_query_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        create_query(provider=ScriptedProvider(), cwd=tmp_path / "nowhere")


def test_without_an_event_loop(tmp_path: Path) -> None:
    query = create_query(provider=ScriptedProvider("four"), cwd=tmp_path)

    assert query.sync("2 + 2?") == "four"
