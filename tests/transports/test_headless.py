from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robota import InteractiveSession
from robota.core.transport import TransportAdapter
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.transports import PrintOptions, create_headless_runner, create_headless_transport, run_print
from robota.transports.headless import OutputFormat

pytestmark = pytest.mark.anyio
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "project"
    path.mkdir()
    return path


async def printed(
    provider: ScriptedProvider, project: Path, options: PrintOptions, file: Path, **session: Any
) -> tuple[int, str]:
    """The exit code, and what came out."""
    async with InteractiveSession(provider=provider, cwd=project, **session) as it:
        with file.open("w+", encoding="utf-8") as out:
            code = await run_print(it, "go", options, out=out)
            out.seek(0)
            return code, out.read()


async def test_json_is_one_object(project: Path, tmp_path: Path) -> None:
    script = ScriptedProvider([call("Glob", pattern="*")], ["Fin", "e.\x1b[31m \u202e"])

    code, out = await printed(script, project, PrintOptions(output_format="json"), tmp_path / "out")

    result = json.loads(out)
    assert code == 0
    assert out.count("\n") == 1
    assert (result["type"], result["subtype"], result["num_turns"]) == ("result", "success", 2)
    assert result["result"] == "Fine.\x1b[31m \u202e"  # data is not neutralised: JSON holds it
    assert result["session_id"]


async def test_stream_json_begins_with_init_and_ends_with_the_one_result(
    project: Path, tmp_path: Path
) -> None:
    script = ScriptedProvider([call("Glob", pattern="*")], "Fine.")

    code, out = await printed(script, project, PrintOptions(output_format="stream-json"), tmp_path / "out")

    frames = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [frame["type"] for frame in frames if frame.get("subtype") != "informational"] == [
        "system", "assistant", "user", "assistant", "result",
    ]  # fmt: skip
    assert frames[-1]["result"] == "Fine."


async def test_partial_messages_come_on_demand(project: Path, tmp_path: Path) -> None:
    options = PrintOptions(output_format="stream-json", partial_messages=True)

    _, out = await printed(ScriptedProvider(["Fi", "ne."]), project, options, tmp_path / "out")

    frames = [json.loads(line) for line in out.splitlines()]
    deltas = [frame["event"].get("delta", {}).get("text") for frame in frames if "event" in frame]
    assert [text for text in deltas if text] == ["Fi", "ne."]


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
async def test_rounds_that_are_used_up_are_told_apart(
    project: Path, tmp_path: Path, output_format: OutputFormat
) -> None:
    script = ScriptedProvider([call("Glob", pattern="*")], "So far.")
    options = PrintOptions(output_format=output_format)

    code, out = await printed(script, project, options, tmp_path / "out", max_turns=1)

    assert code == 5
    if output_format != "text":
        assert json.loads(out.splitlines()[-1])["subtype"] == "error_max_turns"


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
async def test_a_failing_model_is_exit_code_1_and_one_record(
    project: Path, tmp_path: Path, output_format: OutputFormat, capsys: Capture
) -> None:
    script = ScriptedProvider([Fail(RuntimeError("the service is down"))])
    options = PrintOptions(output_format=output_format)

    code, out = await printed(script, project, options, tmp_path / "out")

    assert code == 1
    if output_format == "text":
        assert "the service is down" in capsys.readouterr().err
    else:
        results = [json.loads(line) for line in out.splitlines() if '"result"' in line]
        assert len([frame for frame in results if frame["type"] == "result"]) == 1
        assert results[-1]["is_error"] is True


@pytest.mark.parametrize("output_format", ["text", "json"])
async def test_an_answer_fits_its_schema(project: Path, tmp_path: Path, output_format: OutputFormat) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    script = ScriptedProvider("three", '{"n": 3}')
    options = PrintOptions(output_format=output_format, schema=schema)

    code, out = await printed(script, project, options, tmp_path / "out")

    assert code == 0
    answer = json.loads(out)
    assert (answer if output_format == "text" else answer["structured_output"]) == {"n": 3}


async def test_a_schema_that_is_never_met_is_an_error_of_its_own(project: Path, tmp_path: Path) -> None:
    options = PrintOptions(output_format="json", schema={"type": "integer"})

    code, out = await printed(ScriptedProvider(*["no"] * 9), project, options, tmp_path / "out")

    assert code == 1
    assert json.loads(out)["subtype"] == "error_max_structured_output_retries"


async def test_an_interrupted_run_is_told_apart(project: Path, tmp_path: Path) -> None:
    async with InteractiveSession(provider=ScriptedProvider(["Well", Stall()]), cwd=project) as session:
        session.on("text_delta", lambda text: session.abort())
        with (tmp_path / "out").open("w+") as out:
            code = await run_print(session, "go", PrintOptions(output_format="json"), out=out)
            out.seek(0)
            result = json.load(out)

    assert code == 130
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_streaming")


async def test_denied_calls_are_in_the_result(project: Path, tmp_path: Path) -> None:
    script = ScriptedProvider([call("Bash", command="touch x")], "Pity.")

    _, out = await printed(script, project, PrintOptions(output_format="json"), tmp_path / "out")

    (denial,) = json.loads(out)["permission_denials"]
    assert (denial["tool_name"], denial["tool_input"]) == ("Bash", {"command": "touch x"})


async def test_a_command_prints_its_answer(project: Path, tmp_path: Path) -> None:
    async with InteractiveSession(provider=ScriptedProvider(), cwd=project) as session:
        with (tmp_path / "out").open("w+") as out:
            code = await run_print(session, "/help", out=out)
            out.seek(0)
            assert "/clear" in out.read()

    assert code == 0


async def test_a_transport_runs_one_prompt_and_knows_the_exit_code(project: Path, capfd: Capture) -> None:
    transport = create_headless_transport("hello", "stream-json")
    assert isinstance(transport, TransportAdapter)

    async with InteractiveSession(provider=ScriptedProvider(["Hel", "lo."]), cwd=project) as session:
        session.attach_transport(transport)
        await transport.start()
        await transport.stop()

    frames = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert transport.get_exit_code() == 0
    assert frames[-1]["result"] == "Hello."
    deltas = [frame["event"] for frame in frames if frame["type"] == "stream_event"]
    assert any(event.get("delta") == {"type": "text_delta", "text": "lo."} for event in deltas)


async def test_a_runner_runs_prompts_of_a_session(project: Path, capsys: Capture) -> None:
    async with InteractiveSession(provider=ScriptedProvider("One.", "Two."), cwd=project) as session:
        runner = create_headless_runner(session)
        assert [await runner.run("first"), await runner.run("second")] == [0, 0]

    assert capsys.readouterr().out == "One.\nTwo.\n"


async def test_a_transport_without_a_session_says_what_is_missing() -> None:
    from robota.core.errors import RobotaError

    with pytest.raises(RobotaError, match="attach_transport"):
        await create_headless_transport("hello").start()
