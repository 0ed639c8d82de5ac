from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.plugins.office import ADDING, add, open_session

from robota.core.errors import ConfigurationError
from robota.core.robota import Robota
from robota.plugins import LoggingPlugin
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
SECRET = "sk-ant-api03-" + "aB3dE6gH9jK2" * 7


async def test_a_run_is_written_to_the_console_line_by_line(tmp_path: Path) -> None:
    out = io.StringIO()
    log = LoggingPlugin(stream=out)
    async with open_session(tmp_path, ADDING, "Three.", plugins=[log]) as session:
        await session.submit("Add them.")
    lines = out.getvalue().splitlines()
    assert ["run started" in lines[0], "tool ended" in lines[1], "run completed" in lines[2]] == [True] * 3
    assert " INFO  " in lines[0]
    assert 'tool="add"' in lines[1]
    assert "Add them." not in out.getvalue()


async def test_lines_for_programs_are_json(tmp_path: Path) -> None:
    out = io.StringIO()
    log = LoggingPlugin(stream=out, format="json", level="debug", include_content=True)
    async with open_session(tmp_path, ADDING, "Three.", plugins=[log]) as session:
        await session.submit("Add them.")
        records = [json.loads(line) for line in out.getvalue().splitlines()]
    assert records[0] | {"timestamp": 0} == {
        "timestamp": 0,
        "sessionId": session.session_id,
        "level": "info",
        "message": "run started",
        "prompt": "Add them.",
    }
    said = [record["message"] for record in records]
    assert {"model called", "model answered", "tool called", "tool ended", "message added"} <= set(said)
    assert next(r for r in records if r["message"] == "tool called")["arguments"] == {"a": 1, "b": 2}


async def test_a_failing_tool_is_an_error_and_levels_below_are_left_out(tmp_path: Path) -> None:
    log = LoggingPlugin(strategy="file", path=tmp_path / "log.jsonl", level="error")
    async with open_session(tmp_path, [call("explode")], "Sorry.", plugins=[log]) as session:
        await session.submit("go")
    [record] = [json.loads(line)["value"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert record["level"] == "error"
    assert "the tool is broken" in record["error"]


@pytest.mark.parametrize("strategy", ["console", "file"])
async def test_secrets_are_written_nowhere(tmp_path: Path, strategy: str) -> None:
    out, path = io.StringIO(), tmp_path / "log.jsonl"
    where = {"stream": out} if strategy == "console" else {"path": path}
    log = LoggingPlugin(strategy=strategy, include_content=True, **where)  # type: ignore[arg-type]
    async with open_session(tmp_path, "Noted.", plugins=[log]) as session:
        await session.submit(f"My key is {SECRET}.")
    written = out.getvalue() if strategy == "console" else path.read_text()
    assert "run started" in written
    assert SECRET not in written


async def test_a_program_can_write_lines_of_its_own() -> None:
    log = LoggingPlugin(strategy="database", storage=_Nowhere())
    log.disable()
    async with Robota(ScriptedProvider("Hi."), tools=[add], plugins=[log]) as agent:
        await agent.run("go")
        log.info("not heard")
        log.enable()
        log.warn("deployed", version=3)
        log.debug("too quiet")
        log.error("oh")
    assert [(r["level"], r["message"]) for r in log.get_data()] == [("warn", "deployed"), ("error", "oh")]


class _Nowhere:
    async def write(self, entries: object) -> None:
        """Everything is fine."""

    async def read(self) -> list[object]:
        return []

    async def remove(self, key: str) -> bool:
        return False


@pytest.mark.parametrize("options", [{"level": "loud"}, {"format": "xml"}, {"strategy": "paper"}])
def test_options_that_cannot_work_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="'logging' has no"):
        LoggingPlugin(**options)  # type: ignore[arg-type]
