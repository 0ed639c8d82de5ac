"""The command, driven over its pipes by a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.support.command import model_requests
from tests.support.driven import Driven, Frame, driven

from robota.testing import ModelServer, Stall, call


def test_one_prompt_and_the_end_of_the_input(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk\n")
    with (
        ModelServer([call("Read", file_path="notes.txt")], "Milk.").in_thread() as server,
        driven(cwd=tmp_path, server=server) as host,
    ):
        host.initialize()
        host.prompt("what do I need?")
        code, err = host.finish()

    assert code == 0, err
    assert host.seen[-1]["result"] == "Milk."
    assert {frame["session_id"] for frame in host.seen[1:]} == {host.seen[-1]["session_id"]}


def test_an_error_result_is_exit_code_1(tmp_path: Path) -> None:
    with (
        ModelServer([call("Glob", pattern="*")], "So far.").in_thread() as server,
        driven("--max-turns", "1", cwd=tmp_path, server=server) as host,
    ):
        host.prompt("look")
        code, err = host.finish()

    assert code == 1
    assert host.seen[-1]["subtype"] == "error_max_turns"
    assert "Traceback" not in err


def test_a_session_that_is_not_there_is_told_before_anything_is_answered(tmp_path: Path) -> None:
    with driven(f"--resume={uuid.uuid4()}", cwd=tmp_path) as host:
        host.send({"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}})
        code, err = host.finish()

    (result,) = host.seen
    assert code == 1
    assert (result["type"], result["is_error"]) == ("result", True)
    assert "There is no session" in result["errors"][0]
    assert err.startswith("robota: There is no session")
    assert err.count("\n") == 1


def test_sessions_go_on_are_forked_and_named(tmp_path: Path) -> None:
    named = str(uuid.uuid4())
    with ModelServer("One.", "Two.", "Three.", "Four.").in_thread() as server:
        ids = []
        for arguments in (
            (f"--session-id={named}",),
            (f"--resume={named}",),
            (f"--resume={named}", "--fork-session"),
            ("--continue",),
        ):
            with driven(*arguments, cwd=tmp_path, server=server) as host:
                ids.append(host.ask("go")["session_id"])
                assert host.finish()[0] == 0
        sizes = [len(request.body["messages"]) for request in model_requests(server)]

    first, resumed, forked, last = ids
    assert first == resumed == named
    assert forked not in (named, "")
    assert last == forked  # the newest of the directory
    assert sizes == [sizes[0], sizes[0] + 2, sizes[0] + 4, sizes[0] + 6]


def test_going_on_where_nothing_is_begins_a_session(tmp_path: Path) -> None:
    with ModelServer("One.").in_thread() as server, driven("--continue", cwd=tmp_path, server=server) as host:
        assert host.ask("go")["result"] == "One."


def test_sigterm_stops_a_turn_at_once(tmp_path: Path) -> None:
    with (
        ModelServer(["Half", Stall()]).in_thread() as server,
        driven("--include-partial-messages", cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        while host.read().get("event", {}).get("type") != "content_block_delta":
            pass
        host.process.send_signal(signal.SIGTERM)
        code, err = host.finish()

    assert code == 143
    assert "Traceback" not in err


@pytest.mark.parametrize("line", ["{oops", "[]"])
def test_a_line_that_is_no_frame_is_a_sentence_and_exit_code_1(tmp_path: Path, line: str) -> None:
    with ModelServer("Never.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        host.send_line(line)
        code, err = host.finish()

    assert code == 1
    assert err.startswith("robota: A line on standard input")
    assert "Traceback" not in err


def test_the_error_is_the_last_word_when_a_line_in_the_middle_of_a_turn_cannot_be_read(
    tmp_path: Path,
) -> None:
    replies = [call("Bash", command="echo begun; sleep 60")], "Never."
    with (
        ModelServer(*replies).in_thread() as server,
        driven("--dangerously-skip-permissions", cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        host.until("assistant")
        host.send_line("{oops")
        code, _ = host.finish()

    assert code == 1
    assert [frame["type"] for frame in host.seen[-2:]] == ["user", "result"]
    assert host.seen[-1]["errors"][0].startswith("A line on standard input is not JSON")


def test_a_session_that_cannot_be_made_ends_the_process_while_the_input_is_open(tmp_path: Path) -> None:
    with driven("--agent", "nobody", "--provider", "scripted", cwd=tmp_path) as host:
        host.initialize()
        host.prompt("go")
        result = host.until("result")
        assert host.process.wait(60) == 1

    assert result["errors"][0].startswith("There is no agent 'nobody'")


def test_an_option_that_is_not_there_ends_the_process_with_a_line(tmp_path: Path) -> None:
    with driven("--frobnicate", cwd=tmp_path) as host:
        code, err = host.finish()

    assert code == 2
    assert err.count("\n") == 1
    assert "--frobnicate" in err


def test_options_of_clients_that_mean_nothing_here_are_told_of(tmp_path: Path) -> None:
    calc = {"type": "sdk", "name": "calc", "startupTimeout": 100}  # it will not answer
    servers = json.dumps({"mcpServers": {"calc": calc}})
    arguments = ("--fallback-model", "m2", "--betas", "b", "--thinking", "adaptive", "--mcp-config", servers)
    with ModelServer("One.").in_thread() as server, driven(*arguments, cwd=tmp_path, server=server) as host:
        host.ask("go")
        status = host.request("mcp_status")

    told = [frame["content"] for frame in host.seen if frame.get("subtype") == "informational"]
    assert any("--fallback-model" in words for words in told)
    init = next(frame for frame in host.seen if frame.get("subtype") == "init")
    assert [server["name"] for server in init["mcp_servers"]] == ["calc"]
    assert [server["name"] for server in status["response"]["mcpServers"]] == ["calc"]


def test_a_system_prompt_that_begins_with_dashes_and_one_that_is_empty(tmp_path: Path) -> None:
    with ModelServer("One.", "Two.").in_thread() as server:
        for words in ("---\ntitle: x", ""):
            with driven("--system-prompt", words, cwd=tmp_path, server=server) as host:
                host.ask("go")
        first, second = (request.body["messages"] for request in model_requests(server))

    assert first[0]["content"].startswith("---\ntitle: x")
    assert [message["role"] for message in second] == ["user"]


def test_a_host_that_does_not_read_can_still_interrupt(tmp_path: Path) -> None:
    flood = ["x" * 1000 for _ in range(2000)]  # far more than a pipe holds
    with (
        ModelServer([*flood, Stall()]).in_thread() as server,
        driven("--include-partial-messages", cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        host.until("init")  # from here on nothing is read, until the interrupt was sent
        host.send({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}})
        result = host.until("result")

    assert result["subtype"] == "error_during_execution"
    assert any(frame["type"] == "control_response" for frame in host.seen)


def test_a_host_that_leaves_ends_the_process_without_a_traceback(tmp_path: Path) -> None:
    with (
        ModelServer(["line\n"] * 5000).in_thread() as server,
        driven("--include-partial-messages", cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        host.until("init")
        assert host.process.stdout is not None
        assert host.process.stderr is not None
        host.process.stdout.close()
        err = host.process.stderr.read().decode()
        code = host.process.wait(60)

    assert code == 1
    assert "Traceback" not in err


def test_a_host_that_leaves_during_a_silent_turn_ends_the_process(tmp_path: Path) -> None:
    with (
        ModelServer([Stall()]).in_thread() as server,
        driven(cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        host.until("informational")  # about the model; behind it nothing is said
        assert host.process.stdout is not None
        host.process.stdout.close()
        code = host.process.wait(60)

    assert code == 1


def test_agents_of_the_host_work_for_the_model(tmp_path: Path) -> None:
    task = call("Agent", prompt="look", subagent_type="looker")
    agents = {"looker": {"description": "Looks.", "prompt": "You are the looker.", "tools": ["Glob"]}}
    with ModelServer([task], "Seen.", "It saw.").in_thread() as server:
        arguments = ("--permission-mode", "bypassPermissions")
        with driven(*arguments, cwd=tmp_path, server=server) as host:
            answer = host.initialize(agents=agents)
            result = host.ask("delegate")
        inner = model_requests(server)[1].body

    assert answer["response"]["response"]["agents"] == [{"name": "looker", "description": "Looks."}]
    assert result["result"] == "It saw."
    assert "You are the looker." in inner["messages"][0]["content"]
    assert [tool["function"]["name"] for tool in inner["tools"]] == ["Glob"]
    init = next(frame for frame in host.seen if frame.get("subtype") == "init")
    assert "looker" in init["agents"]


def answer_server(host: Driven, question: Frame) -> None:
    """What a server inside the host says, with one tool."""
    message = question["request"]["message"]
    results = {
        "initialize": {
            "protocolVersion": message.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "calc", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}]},
    }
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}
    body = {"subtype": "success", "request_id": question["request_id"], "response": {"mcp_response": answer}}
    host.send({"type": "control_response", "response": body})


def test_an_interrupt_leaves_a_server_of_the_host_that_is_connecting(tmp_path: Path) -> None:
    servers = {"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}
    with (
        ModelServer("Hello.").in_thread() as server,
        driven("--mcp-config", json.dumps(servers), cwd=tmp_path, server=server) as host,
    ):
        host.initialize()
        question = host.until("control_request")
        host.request("interrupt")
        host.prompt("go")
        while question.get("subtype") != "init":
            if question["type"] == "control_request":
                answer_server(host, question)
            question = host.read()

    assert question["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    assert "mcp__calc__add" in question["tools"]


# --- transcripts ------------------------------------------------------------------------------------------


def folder(config: Path, cwd: Path) -> Path:
    key = "".join(
        letter if letter.isalnum() and letter.isascii() else "-" for letter in os.path.realpath(cwd)
    )
    return config / "projects" / key


def read_transcript(path: Path) -> list[Frame]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_mirror_tells_of_every_line_of_the_transcript_before_the_result(tmp_path: Path) -> None:
    config, cwd = tmp_path / "config", tmp_path / "work"
    cwd.mkdir()
    with (
        ModelServer([call("Glob", pattern="*")], "None.", "Still none.").in_thread() as server,
        driven("--session-mirror", cwd=cwd, server=server, CLAUDE_CONFIG_DIR=str(config)) as host,
    ):
        given = str(uuid.uuid4())
        host.prompt("look", uuid=given)
        first = host.until("result")
        host.ask("again")
        assert host.finish()[0] == 0

    (path,) = folder(config, cwd).glob("*.jsonl")
    assert path.stem == first["session_id"]
    mirrored = [frame for frame in host.seen if frame["type"] == "transcript_mirror"]
    assert [frame["filePath"] for frame in mirrored] == [str(path)] * 2
    entries = read_transcript(path)
    assert [entry for frame in mirrored for entry in frame["entries"]] == entries
    kinds = [frame["type"] for frame in host.seen if frame["type"] in ("transcript_mirror", "result")]
    assert kinds == ["transcript_mirror", "result"] * 2
    assert [entry["type"] for entry in entries] == ["user", "assistant"] * 3
    assert entries[0]["uuid"] == given
    assert [entry["parentUuid"] for entry in entries[1:]] == [entry["uuid"] for entry in entries[:-1]]
    assert os.stat(path).st_mode & 0o077 == 0


@pytest.mark.parametrize("config", ["/proc/not-there", "a file"])
def test_a_transcript_that_cannot_be_kept_costs_the_conversation_nothing(tmp_path: Path, config: str) -> None:
    (tmp_path / "a file").write_text("")
    with (
        ModelServer("One.", "Two.").in_thread() as server,
        driven(
            "--session-mirror", cwd=tmp_path, server=server, CLAUDE_CONFIG_DIR=os.path.join(tmp_path, config)
        ) as host,
    ):
        host.initialize()
        results = [host.ask("go"), host.ask("on")]
        code, err = host.finish()

    assert [result["result"] for result in results] == ["One.", "Two."]
    assert (code, err) == (0, "")
    told = [frame["content"] for frame in host.seen if "The transcript" in frame.get("content", "")]
    assert len(told) == 1  # not with every turn
    mirrored = [entry for frame in host.seen for entry in frame.get("entries", ())]
    assert [entry["type"] for entry in mirrored] == ["user", "assistant"] * 2


def test_a_transcript_has_what_was_missing_when_its_place_is_there_again(tmp_path: Path) -> None:
    config, cwd = tmp_path / "config", tmp_path / "work"
    cwd.mkdir()
    config.write_text("in the way")
    with (
        ModelServer("One.", "Two.").in_thread() as server,
        driven("--session-mirror", cwd=cwd, server=server, CLAUDE_CONFIG_DIR=str(config)) as host,
    ):
        host.ask("go")
        config.unlink()
        host.ask("on")
        host.finish()

    (path,) = folder(config, cwd).glob("*.jsonl")
    assert [entry["type"] for entry in read_transcript(path)] == ["user", "assistant"] * 2


def test_without_a_client_that_wants_it_no_transcript_is_written(tmp_path: Path) -> None:
    config = tmp_path / "config"
    with (
        ModelServer("One.").in_thread() as server,
        driven(cwd=tmp_path, server=server, CLAUDE_CONFIG_DIR=str(config)) as host,
    ):
        host.ask("go")
        host.finish()

    assert not config.exists()


def test_a_session_goes_on_from_the_transcript_of_another_program(tmp_path: Path) -> None:
    config, cwd, session = tmp_path / "config", tmp_path / "work", str(uuid.uuid4())
    cwd.mkdir()
    folder(config, cwd).mkdir(parents=True)
    ids = [str(uuid.uuid4()) for _ in range(2)]
    common = {
        "sessionId": session,
        "cwd": str(cwd),
        "isSidechain": False,
        "timestamp": "2026-01-02T03:04:05Z",
    }
    said = {"id": "msg_1", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "7070."}]}
    lines = [
        {"type": "queue-operation", "operation": "dequeue", "sessionId": session},
        {"type": "user", "uuid": ids[0], "parentUuid": None, **common}
        | {"message": {"role": "user", "content": "The port is 7070."}},
        {"type": "assistant", "uuid": ids[1], "parentUuid": ids[0], **common, "message": said},
    ]
    path = folder(config, cwd) / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with ModelServer("It is 7070.").in_thread() as server:
        arguments = (f"--resume={session}", "--session-mirror")
        with driven(*arguments, cwd=cwd, server=server, CLAUDE_CONFIG_DIR=str(config)) as host:
            result = host.ask("Which port?")
        sent = model_requests(server)[0].body["messages"]

    assert result["session_id"] == session
    assert [message["content"] for message in sent if message["role"] != "system"] == [
        "The port is 7070.", "7070.", "Which port?",
    ]  # fmt: skip
    kept = read_transcript(path)
    assert kept[:3] == lines  # what is not ours stays as it was
    assert kept[3]["parentUuid"] == ids[1]


def test_a_fork_has_the_history_in_a_transcript_of_its_own(tmp_path: Path) -> None:
    config, cwd = tmp_path / "config", tmp_path / "work"
    cwd.mkdir()
    with ModelServer("One.", "Two.").in_thread() as server:
        more = {"CLAUDE_CONFIG_DIR": str(config)}
        with driven("--session-mirror", cwd=cwd, server=server, **more) as host:
            first = host.ask("go")["session_id"]
            host.finish()
        arguments = (f"--resume={first}", "--fork-session", "--session-mirror")
        with driven(*arguments, cwd=cwd, server=server, **more) as host:
            second = host.ask("on")["session_id"]
            host.finish()

    assert len([frame for frame in host.seen if frame["type"] == "assistant"]) == 1
    entries = read_transcript(folder(config, cwd) / f"{second}.jsonl")
    assert [entry["message"]["content"] for entry in entries if entry["type"] == "user"] == ["go", "on"]
    assert len(read_transcript(folder(config, cwd) / f"{first}.jsonl")) == 2


def test_prompts_keep_the_names_that_a_host_gave_them(tmp_path: Path) -> None:
    config, cwd, names = tmp_path / "config", tmp_path / "work", [str(uuid.uuid4()) for _ in range(3)]
    cwd.mkdir()
    more = {"CLAUDE_CONFIG_DIR": str(config)}
    with ModelServer("One.", "Two.", "Three.").in_thread() as server:
        with driven("--session-mirror", cwd=cwd, server=server, **more) as host:
            for name in names[:2]:
                host.prompt("go", uuid=name)
                result = host.until("result")
            host.finish()
        answers = [frame["uuid"] for frame in host.seen if frame["type"] == "assistant"]
        session = result["session_id"]
        at = (f"--resume={session}", f"--resume-session-at={answers[0]}", f"--resume-drops-turn={names[1]}")
        with driven(*at, "--session-mirror", cwd=cwd, server=server, **more) as host:
            host.prompt("other", uuid=names[2])
            host.until("result")
            host.finish()
        sent = model_requests(server)[-1].body["messages"]

    assert [message["content"] for message in sent if message["role"] != "system"] == ["go", "One.", "other"]
    parents = {
        entry["uuid"]: entry["parentUuid"]
        for entry in read_transcript(folder(config, cwd) / f"{session}.jsonl")
    }
    assert parents[names[1]] == parents[names[2]] == answers[0]  # a branch: nothing is lost


def test_what_others_print_and_read_does_not_mix_with_the_frames() -> None:
    code = (
        "import os, sys; from robota.cli.driven import take_streams; given, out = take_streams(); "
        "print('stray', flush=True); os.write(out, os.read(given, 9)); print(repr(sys.stdin.read()))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"a frame\n", capture_output=True, check=True)

    assert done.stdout == b"a frame\n"
    assert done.stderr.split() == [b"stray", b"''"]


def test_a_resumed_session_may_end_at_an_earlier_message(tmp_path: Path) -> None:
    with ModelServer("One.", "Two.", "Three.", "Four.").in_thread() as server:
        with driven("--replay-user-messages", cwd=tmp_path, server=server) as host:
            session = host.ask("first")["session_id"]
            host.ask("second")
            host.finish()
        answers = [frame["uuid"] for frame in host.seen if frame["type"] == "assistant"]
        prompts = [frame["uuid"] for frame in host.seen if frame.get("isReplay")]
        at = (f"--resume={session}", "--fork-session", f"--resume-session-at={answers[0]}")
        with driven(*at, f"--resume-drops-turn={prompts[0]}", cwd=tmp_path, server=server) as host:
            host.prompt("never")
            code, err = host.finish()
        with driven(*at, f"--resume-drops-turn={prompts[1]}", cwd=tmp_path, server=server) as host:
            host.ask("other")
        sent = model_requests(server)[-1].body["messages"]

    assert code == 1
    assert "Resume rejected by --resume-drops-turn:" in err
    assert [message["content"] for message in sent if message["role"] != "system"] == [
        "first", "One.", "other",
    ]  # fmt: skip


def test_a_transcript_takes_no_part_of_a_line_when_the_disk_is_full(tmp_path: Path) -> None:
    program = """
import resource, sys
from robota.transports.stream_json.transcript import append_entries
append_entries(sys.argv[1], [{"uuid": "1"}])
resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
try:
    append_entries(sys.argv[1], [{"uuid": "2"}])
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
append_entries(sys.argv[1], [{"uuid": "3"}])
"""
    path = tmp_path / "transcript.jsonl"
    done = subprocess.run([sys.executable, "-c", program, path], check=True, capture_output=True, text=True)

    assert done.stdout == "File too large\n"
    assert [entry["uuid"] for entry in read_transcript(path)] == ["1", "3"]


def test_a_prompt_that_was_answered_and_comes_again_has_the_same_answer(tmp_path: Path) -> None:
    script = [call("Bash", command="echo once >> log")], "Done.", "Another."
    with (
        ModelServer(*script).in_thread() as server,
        driven(
            "--allow", "Bash(echo *)", "--permission-mode", "acceptEdits", cwd=tmp_path, server=server
        ) as host,
    ):
        host.initialize()
        for id in (str(uuid.uuid4()),) * 2:
            host.prompt("write it down", uuid=id)
        host.prompt("and now?", uuid=str(uuid.uuid4()))
        code, err = host.finish()

    results = [frame for frame in host.seen if frame["type"] == "result"]
    assert code == 0, err
    assert [frame["result"] for frame in results] == ["Done.", "Done.", "Another."]
    assert len({frame["uuid"] for frame in results}) == 3
    assert (tmp_path / "log").read_text() == "once\n"
