"""`robota -p` for programs: one JSON object, or a stream of frames."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import model_requests, place, robota, started
from tests.support.mcp_server import definition
from tests.support.terminal import Terminal

from robota.testing import HttpError, ModelServer, Stall, call

SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


def frames(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_is_one_result_and_the_session_is_saved_when_the_process_ends(tmp_path: Path) -> None:
    script = [call("Glob", pattern="*")], ["Fin", "e."], "Again."
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "go", "--output-format", "json", cwd=tmp_path, server=server)
        (result,) = frames(done.stdout)
        again = robota("-p", "on", "-r", result["session_id"], cwd=tmp_path, server=server)

    assert done.returncode == 0, done.stderr
    assert (result["type"], result["subtype"], result["result"]) == ("result", "success", "Fine.")
    assert again.stdout == "Again.\n"


def test_a_stream_begins_with_init_and_ends_with_the_result(tmp_path: Path) -> None:
    arguments = ("--output-format", "stream-json", "--include-partial-messages", "--verbose")
    with ModelServer([call("Glob", pattern="*")], ["Fin", "e."]).in_thread() as server:
        done = robota("-p", "go", *arguments, cwd=tmp_path, server=server)

    shown = frames(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (shown[0]["subtype"], shown[-1]["type"]) == ("init", "result")
    assert [frame["type"] for frame in shown].count("result") == 1
    deltas = [frame["event"].get("delta", {}) for frame in shown if frame["type"] == "stream_event"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Fine."


@pytest.mark.parametrize("output_format", ["json", "stream-json"])
def test_json_on_a_terminal_moves_no_cursor_and_says_the_same(tmp_path: Path, output_format: str) -> None:
    said = "\x9b2J\x9d0;title\x9c \u202ebackwards"
    with ModelServer(said).in_thread() as server:
        terminal = Terminal(tmp_path, "-p", "go", "--output-format", output_format, **place(server))
        assert terminal.leave() == 0

    assert not set(terminal.seen) & {"\x9b", "\x9c", "\x9d", "\u202e"}
    records = [json.loads(line) for line in terminal.seen.splitlines() if line.startswith("{")]
    assert records[-1]["result"] == said


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_an_answer_of_a_schema(tmp_path: Path, output_format: str) -> None:
    arguments = ("--output-format", output_format, "--json-schema", SCHEMA)
    with ModelServer("three", '{"n": 3}').in_thread() as server:
        done = robota("-p", "count", *arguments, cwd=tmp_path, server=server)

    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (answer if output_format == "text" else answer["structured_output"]) == {"n": 3}


@pytest.mark.parametrize(
    ("script", "arguments", "code", "subtype"),
    [
        (([call("Glob", pattern="*")], "So far."), ("--max-turns", "1"), 5, "error_max_turns"),
        (
            ("Never.",),
            ("--max-budget-usd", "1e-07", "--model", "claude-sonnet-4-5"),
            6,
            "error_max_budget_usd",
        ),
        (["no"] * 9, ("--json-schema", SCHEMA), 1, "error_max_structured_output_retries"),
        ((HttpError(401, {"error": {"message": "bad key"}}),), (), 1, "success"),
    ],
    ids=["rounds", "budget", "schema", "provider"],
)
def test_ends_are_told_apart(
    tmp_path: Path, script: tuple[Any, ...], arguments: tuple[str, ...], code: int, subtype: str
) -> None:
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "go", "--output-format", "json", *arguments, cwd=tmp_path, server=server)

    (result,) = frames(done.stdout)
    assert (done.returncode, result["subtype"], result["is_error"]) == (code, subtype, True)
    assert "Traceback" not in done.stderr


def test_a_denied_call_is_in_the_result_and_in_the_exit_code(tmp_path: Path) -> None:
    with ModelServer([call("Bash", command="touch x")], "Pity.").in_thread() as server:
        done = robota("-p", "go", "--output-format", "json", cwd=tmp_path, server=server)

    (result,) = frames(done.stdout)
    assert done.returncode == 3
    assert result["permission_denials"][0]["tool_name"] == "Bash"
    assert "--allow" in done.stderr


def test_an_interrupted_stream_still_has_its_result(tmp_path: Path) -> None:
    arguments = ("-p", "go", "--output-format", "stream-json", "--include-partial-messages")
    with (
        ModelServer(["Half", Stall()]).in_thread() as server,
        started(*arguments, cwd=tmp_path, server=server) as process,
    ):
        assert process.stdout is not None
        while "content_block_delta" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        rest = frames(process.stdout.read())
        code = process.wait(60)

    assert code == 130
    assert rest[-1]["terminal_reason"] == "aborted_streaming"


def test_a_reader_that_leaves_ends_the_run_without_a_traceback(tmp_path: Path) -> None:
    arguments = ("-p", "go", "--output-format", "stream-json", "--include-partial-messages")
    with (
        ModelServer(["line\n"] * 5000).in_thread() as server,
        started(*arguments, cwd=tmp_path, server=server) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        code = process.wait(60)

    assert code == 1
    assert "Traceback" not in said


def test_a_tool_that_is_denied_as_a_whole_is_not_offered_and_a_call_of_it_is_denied(tmp_path: Path) -> None:
    with ModelServer([call("Bash", command="touch made")], "Done.").in_thread() as server:
        done = robota(
            "-p", "go", "--disallowedTools", "Bash", "--output-format", "json", cwd=tmp_path, server=server
        )
        offered = [tool["function"]["name"] for tool in model_requests(server)[0].body["tools"]]

    (result,) = frames(done.stdout)
    assert done.returncode == 3
    assert "Bash" not in offered
    assert "Read" in offered
    assert [each["tool_name"] for each in result["permission_denials"]] == ["Bash"]
    assert not (tmp_path / "made").exists()


# --- servers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output_format", ["text", "stream-json"])
def test_the_tools_of_servers_are_there_with_the_first_request(tmp_path: Path, output_format: str) -> None:
    servers = json.dumps({"mcpServers": {"calc": definition()}})
    arguments = (
        "--mcp-config",
        servers,
        "--allowedTools",
        "mcp__calc__add",
        "--output-format",
        output_format,
    )
    with ModelServer([call("mcp__calc__add", a=2, b=3)], "Five.").in_thread() as server:
        done = robota("-p", "add", *arguments, cwd=tmp_path, server=server)
        told = model_requests(server)[1].body["messages"][-1]["content"]

    assert done.returncode == 0, done.stderr
    assert told == "5"
    if output_format == "stream-json":
        init = frames(done.stdout)[0]
        assert init["mcp_servers"] == [{"name": "calc", "status": "connected"}]
        assert "mcp__calc__add" in init["tools"]


def test_a_tool_of_a_server_says_what_may_run(tmp_path: Path) -> None:
    servers = json.dumps({"mcpServers": {"desk": definition()}})
    hidden = ("--disallowedTools", "mcp__desk__approve")  # for the model; it is asked all the same
    arguments = ("--mcp-config", servers, "--permission-prompt-tool", "mcp__desk__approve", *hidden)
    commands = ("touch made", "touch other", "touch odd", "touch vague")
    calls = [call("Bash", command=command) for command in commands]
    with ModelServer(calls, "Done.").in_thread() as server:
        done = robota("-p", "go", *arguments, "--output-format", "json", cwd=tmp_path, server=server)
        told = [message["content"] for message in model_requests(server)[1].body["messages"][-4:]]

    (result,) = frames(done.stdout)
    assert done.returncode == 3
    assert (result["subtype"], result["is_error"]) == ("success", False)
    assert {path.name for path in tmp_path.iterdir()} >= {"made", "twice"}
    assert not [name for name in ("other", "vague") if (tmp_path / name).exists()]
    assert "not touch other, call_Bash_2" in told[1]
    assert "is no JSON object" in told[2]
    assert "the `behavior` 'Allow', which is neither allow nor deny" in told[3]
    denied = [each["tool_use_id"] for each in result["permission_denials"]]
    assert denied == ["call_Bash_2", "call_Bash_3", "call_Bash_4"]


def test_in_the_mode_that_asks_nothing_no_tool_is_asked(tmp_path: Path) -> None:
    servers = json.dumps({"mcpServers": {"desk": definition()}})
    arguments = ("--mcp-config", servers, "--permission-prompt-tool", "mcp__desk__approve")
    with ModelServer([call("Bash", command="touch made")], "Done.").in_thread() as server:
        mode = ("--permission-mode", "dontAsk")
        done = robota("-p", "go", *arguments, *mode, cwd=tmp_path, server=server)

    assert done.returncode == 3
    assert not (tmp_path / "made").exists()


def test_a_permission_tool_that_is_not_there_allows_nothing(tmp_path: Path) -> None:
    arguments = ("--permission-prompt-tool", "mcp__desk__approve")
    with ModelServer([call("Bash", command="touch made")], "Done.").in_thread() as server:
        done = robota("-p", "go", *arguments, cwd=tmp_path, server=server)
        told = model_requests(server)[1].body["messages"][-1]["content"]

    assert done.returncode == 3
    assert "The permission tool mcp__desk__approve is not there." in told
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("client", ["sdk-py", ""])
def test_a_client_that_passes_its_prompt_as_a_word_hears_of_denials_in_the_result(
    tmp_path: Path, client: str
) -> None:
    """Older clients do, and take every exit code but 0 for a broken connection."""
    with ModelServer([call("Bash", command="touch x")], "Pity.").in_thread() as server:
        arguments = ("--output-format", "stream-json", "--verbose", "--print", "--", "go")
        done = robota(*arguments, cwd=tmp_path, server=server, CLAUDE_CODE_ENTRYPOINT=client)

    result = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == (0 if client else 3)
    assert [each["tool_name"] for each in result["permission_denials"]] == ["Bash"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--bogus",), 2, "--bogus"),
        (("--add-dir", "nowhere"), 2, "nowhere"),
        (("--json-schema", '{"type": "objekt"}'), 2, "objekt"),
        (("--settings", '{"broken'), 2, "--settings"),
        (("-r", "nobody"), 1, "nobody"),
        (("--provider", "openai"), 1, "--model"),
    ],
)
@pytest.mark.parametrize("form", [("--output-format", "json"), ("--output-format=stream-json",)])
def test_whoever_reads_records_gets_one_of_a_call_that_never_began(
    tmp_path: Path, form: tuple[str, ...], arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = robota("-p", "hi", *arguments, *form, cwd=tmp_path)

    (result,) = (json.loads(line) for line in done.stdout.splitlines())
    assert (done.returncode, result["type"], result["is_error"]) == (code, "result", True)
    assert said in result["errors"][0]
    assert done.stderr == f"robota: {result['errors'][0]}\n"


@pytest.mark.parametrize(
    "arguments", [("-p", "hi", "--bogus"), ("-p", "--bogus", "--", "--output-format", "json")]
)
def test_whoever_reads_text_gets_no_record(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = robota(*arguments, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")


def test_what_the_user_should_know_is_said_beside_a_single_object(tmp_path: Path) -> None:
    settings = ("--settings", '{"permissions": 3}')
    with ModelServer("Hello.").in_thread() as server:
        done = robota("-p", "hi", "--output-format", "json", *settings, cwd=tmp_path, server=server)

    assert json.loads(done.stdout)["result"] == "Hello."
    assert "--settings:1: permissions: this is an object, not 3." in done.stderr
