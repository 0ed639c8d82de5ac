"""What a prompt asks for beside its words is on record: the form of the answer, rounds, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from tests.sessions.recorded_session import RecordedSession, assert_replays, scripted

from robota.core.errors import ConfigurationError, StructuredOutputError
from robota.core.provider import Capabilities, ModelSettings
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number % 2:
            raise ValueError("only even numbers")
        return number


@pytest.mark.parametrize(
    ("kind", "replies"),
    [
        (SCHEMA, ['{"a": 1}']),
        (SCHEMA, ["what?", '{"a": "x"}', '{"a": 1}']),
        (SCHEMA, ["no", "no", "never"]),
        (Even, ['{"number": 1}', [call("add", a=1, b=1)], '{"number": 3}', '{"number": 4}']),
        (Even, ['{"number": 1}'] * 3),
    ],
    ids=["at once", "corrected", "given up", "a check that no schema tells", "such a check, given up"],
)
@pytest.mark.parametrize("enforced", [False, True])
async def test_answers_of_a_form_replay(
    tmp_path: Path, kind: Any, replies: list[Any], enforced: bool
) -> None:
    provider = ScriptedProvider("Hello.", *replies, "Bye.", capabilities=Capabilities(output_schema=enforced))
    recorded = RecordedSession(tmp_path, provider)
    await recorded.session.run("hi")
    result = await recorded.session.submit("give", output=kind)
    await recorded.session.run("thanks")
    await recorded.session.shutdown()

    assert result.success != (replies[-1] in ("never", '{"number": 1}'))
    assert result.success or isinstance(result.error, StructuredOutputError)
    await assert_replays(recorded)


async def test_rounds_and_settings_of_one_prompt_replay(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, [call("add", a=1, b=2)], "so far", "more")
    settings = ModelSettings(temperature=0.5, stop=("END",), max_tokens=99)
    assert (await recorded.session.submit("go", max_rounds=1, settings=settings)).stop_reason == "max_rounds"
    await recorded.session.run("and now as usual")
    await recorded.session.shutdown()

    await assert_replays(recorded)


async def test_a_form_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "fine")
    with pytest.raises(ConfigurationError, match="has no JSON schema"):
        await recorded.session.submit("go", output=object)
    await recorded.session.run("go")
    await recorded.session.shutdown()

    assert [message.role for message in recorded.session.messages] == ["system", "user", "assistant"]
    await assert_replays(recorded)
