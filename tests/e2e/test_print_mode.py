from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command import environment, model_requests, robota, started
from tests.support.fork_server import Forked

from robota.testing import call
from robota.testing.model_server import ModelServer


def test_one_prompt_runs_a_tool_over_http_and_prints_the_answer(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk\n")
    with ModelServer([call("Read", file_path="notes.txt")], ["You need ", "milk."]).in_thread() as server:
        done = robota("-p", "what do I need?", cwd=tmp_path, server=server)

        assert (done.returncode, done.stdout) == (0, "You need milk.\n")
        assert "Read(notes.txt)" in done.stderr
        sent = model_requests(server)[1].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert "milk" in sent[-1]["content"]


def test_a_command_that_nobody_can_approve_is_refused_and_the_model_is_told(tmp_path: Path) -> None:
    script = [call("Bash", command="touch made-by-the-model")], "I was not allowed to."
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "touch it", cwd=tmp_path, server=server)
        told = model_requests(server)[1].body["messages"][-1]["content"]

    assert done.returncode == 3
    assert "Not allowed: Bash. To allow it: --allow 'Bash(touch made-by-the-model)'" in done.stderr
    assert not (tmp_path / "made-by-the-model").exists()
    assert "Permission denied" in told


def test_an_allow_rule_lets_the_command_run(tmp_path: Path) -> None:
    script = [call("Bash", command="touch made-by-the-model")], "Done."
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "touch it", "--allow", "Bash(touch *)", cwd=tmp_path, server=server)

    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert (tmp_path / "made-by-the-model").exists()


def test_piped_input_comes_before_the_words(tmp_path: Path) -> None:
    with ModelServer("ok").in_thread() as server:
        robota("-p", "summarise", cwd=tmp_path, server=server, stdin="a long text")
        asked = model_requests(server)[0].body["messages"][-1]["content"]

    assert asked == "a long text\n\nsummarise"


def test_without_a_key_the_scripted_model_answers_and_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Hello\n")

    done = robota("-p", "hello", cwd=tmp_path)

    assert done.returncode == 0
    assert "scripted offline model" in done.stdout
    assert "scripted offline model" in done.stderr
    assert "Read(README.md)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-p",), "Nothing to do"),
        (("-p", "hi", "-c", "-r", "abc"), "leave one of them out"),
        (("modle", "list"), "did you mean robota model?"),
        (("please", "help"), "'please' is not a command; there are"),
        (("modle",), "did you mean robota model? If it is one: robota -- modle"),
        (("--verbose", "model"), "a command comes first on the line."),
        (("help",), "did you mean robota --help?"),
        (("login",), "did you mean robota setup?"),
        (("exec", "list the files"), 'did you mean robota -p "PROMPT"?'),
        (("resume", "abc"), "did you mean robota -r?"),
        (
            ("-p", "x", "--permission-mode", "yolo"),
            "one of default, acceptEdits, plan, bypassPermissions, manual, auto, dontAsk, not 'yolo'",
        ),
        (("-p", "x", "--max-turns", "-1"), "a whole number of at least 0, not '-1'"),
        (("-p", "x", "--nonsense"), "There is no option --nonsense"),
        (("-p", "x", "--allow", "Bash("), "'Bash('"),
        (("-p", "x", "--deny", ""), "--deny"),
        (("-p", "x", "--deny", "bash(rm *)"), "did you mean 'Bash'?"),
        (("-p", "x", "--deny", "rm"), "there is no tool 'rm'; there are"),
        (("hello",), "not a terminal"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = robota(*arguments, cwd=tmp_path)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_service_that_cannot_be_reached_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    done = robota("-p", "x", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", cwd=tmp_path)

    assert done.returncode == 1
    assert "robota: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_base_url_without_a_model_says_what_is_missing(tmp_path: Path) -> None:
    done = robota("-p", "x", "--base-url", "http://127.0.0.1:9/v1", cwd=tmp_path)

    assert done.returncode == 1
    assert "--model" in done.stderr


def test_control_sequences_of_the_model_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with ModelServer(["red: \x1b[31mX", "\x1b]0;title\x07 done"]).in_thread() as server:
        done = robota("-p", "x", cwd=tmp_path, server=server)

    assert done.stdout == "red: X done\n"


def test_a_reader_that_goes_away_causes_no_traceback(tmp_path: Path) -> None:
    with ModelServer(["line\n"] * 5000).in_thread() as server:
        process = started("-p", "go", cwd=tmp_path, server=server)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        process.stderr.close()
        process.wait(30)

    assert "Traceback" not in errors


def test_the_version_is_answered_without_loading_the_command_line() -> None:
    code = "import sys, robota.__main__ as m; sys.argv[1:] = ['--version']; m.main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    version, modules = done.stdout.splitlines()

    assert version.startswith("robota 0.")
    assert not {"click", "msgspec", "asyncio", "typing"} & set(modules.split())


def test_one_prompt_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    code = (
        "import sys, robota.__main__ as m; sys.argv[1:] = {arguments}\n"
        "try: m.main()\nfinally: print(*sys.modules)"
    )
    with ModelServer("Hello.").in_thread() as server:
        arguments = ["-p", "hi", "--base-url", f"{server.url}/v1", "--model", "m"]
        done = subprocess.run(
            [sys.executable, "-c", code.format(arguments=arguments)],
            cwd=tmp_path,
            env=environment(ROBOTA_HOME=str(tmp_path / "home")),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    answer, modules = done.stdout.splitlines()

    assert answer == "Hello."
    heavy = {"click", "rich", "prompt_toolkit", "mcp", "starlette", "pydantic", "httpx2", "sqlite3", "yaml"}
    unneeded = {"ctypes", "difflib", "json", "robota.core.shell.grammar", "robota.core.permissions.evaluate"}
    assert not (heavy | unneeded) & set(modules.split())


def test_a_command_that_fails_says_so_once(tmp_path: Path) -> None:
    with ModelServer().in_thread() as server:
        done = robota("-p", "/model", cwd=tmp_path, server=server)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "robota: The model is scripted. Usage: /model <id>\n"


def test_a_model_without_a_service_is_an_error_and_not_the_offline_model(tmp_path: Path) -> None:
    done = robota("-p", "x", "--model", "gpt-5.2", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "--base-url" in done.stderr


@pytest.mark.parametrize(
    ("redirection", "said"),
    [("> /dev/full", "could not be written"), (">&-", "could not be written"), ("2>&-", "")],
)
def test_output_that_cannot_be_written_causes_no_traceback(
    tmp_path: Path, redirection: str, said: str
) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m robota -p hi {redirection}"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "Traceback" not in done.stdout + done.stderr
    assert said in done.stderr
    assert (done.returncode == 0) == (said == "")


@pytest.mark.parametrize(
    "arguments", ["--version", "--help", "config show", "doctor --offline", "permissions why ls"]
)
def test_a_full_disk_is_named_whatever_was_printed(tmp_path: Path, arguments: str) -> None:
    with open("/dev/full", "w") as full:
        streams = subprocess.DEVNULL, full, subprocess.PIPE
        process = Forked(arguments.split(), streams, cwd=tmp_path, env=environment(ROBOTA_MODEL="m"))
        _, said = process.communicate()

    assert process.returncode == 1
    assert said == "robota: The output could not be written: No space left on device.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "-p hi",
        "-p hi --output-format json",
        "-p hi --output-format stream-json",
        "-h",
        "--help --bare",
        "doctor --offline",
    ],
)
@pytest.mark.parametrize(
    ("redirection", "why"),
    [(">&-", "Bad file descriptor"), ("> /dev/full", "No space left on device")],
)
def test_an_answer_that_nobody_gets_is_one_sentence_and_no_success(
    tmp_path: Path, arguments: str, redirection: str, why: str
) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m robota {arguments} {redirection}"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if "could not be written" in line]

    assert done.returncode == 1
    assert len(told) == 1
    assert told[0].endswith(f"could not be written: {why}.")


def test_a_terminal_that_knows_only_ascii_gets_the_whole_answer(tmp_path: Path) -> None:
    with ModelServer(["snow: \u2603", " done"]).in_thread() as server:
        done = robota("-p", "x", cwd=tmp_path, server=server, PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stdout) == (0, "snow: ? done\n")


def test_a_working_directory_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["bash", "-c", f"cd gone && rmdir ../gone && {sys.executable} -m robota -p hi"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "working directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_session_goes_on_after_a_crash_and_says_what_was_cut(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ModelServer("First answer.", "Second answer.", repeat=True).in_thread() as server:
        first = robota("-p", "one", cwd=tmp_path, server=server, ROBOTA_HOME=str(home))
        [journal] = (home / "sessions").glob("*.jsonl")
        journal.with_suffix(".json").unlink()
        journal.write_bytes(journal.read_bytes()[:-20])
        second = robota("-c", "-p", "two", cwd=tmp_path, server=server, ROBOTA_HOME=str(home))
        sent = model_requests(server)[-1].body["messages"]

    assert (first.returncode, second.returncode) == (0, 0)
    assert second.stdout == "Second answer.\n"
    assert "incomplete" in second.stderr
    assert [(each["role"], each["content"]) for each in sent][1:] == [
        ("user", "one"),
        ("assistant", "First answer."),
        ("user", "two"),
    ]


def test_nothing_is_kept_when_nothing_is_to_be_saved(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ModelServer("Hello.").in_thread() as server:
        done = robota("--no-save", "-p", "one", cwd=tmp_path, server=server, ROBOTA_HOME=str(home))

    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert not home.exists()


def test_a_session_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with ModelServer("Hello.").in_thread() as server:
        done = robota("-r", "no-such-session", "-p", "x", cwd=tmp_path, server=server)

    assert done.returncode == 1
    assert "There is no session no-such-session" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_that_cannot_be_written_costs_the_session_and_not_the_answer(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a directory should be")
    with ModelServer("Hello.").in_thread() as server:
        done = robota("-p", "hi", cwd=tmp_path, server=server, ROBOTA_HOME=str(tmp_path / "home"))

    last = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (1, "Hello.\n")
    assert last.startswith("robota: This session was not saved: ")
    assert "goes on" not in last
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/reset", "Nothing is deleted here: robota --reset --yes deletes your settings."),
        ("/resume fruit", "No other session is opened here: robota -p PROMPT -r ID goes on with one."),
        ("/mode yolo", "Invalid mode. Valid: plan | default | acceptEdits | bypassPermissions"),
    ],
)
def test_a_command_that_does_nothing_here_fails_and_says_so_once(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "home").mkdir()
    settings = tmp_path / "home" / "settings.json"
    settings.write_text("{}")
    with ModelServer().in_thread() as server:
        done = robota("-p", line, cwd=tmp_path, server=server, ROBOTA_HOME=str(settings.parent))

    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"robota: {said}\n")
    assert settings.exists()
