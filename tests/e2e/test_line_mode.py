"""Line mode: the assistant on a terminal that shows lines and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal as Screen
from tests.support.command import environment, model_requests, place
from tests.support.fork_server import Forked
from tests.support.terminal import Terminal

from robota.testing import Gate, call
from robota.testing.model_server import ModelServer


def open_terminal(cwd: Path, server: ModelServer, *arguments: str, **variables: str) -> Terminal:
    terminal = Terminal(cwd, *arguments, **place(server), **variables)
    terminal.wait_for("robota> ")
    return terminal


def leave(terminal: Terminal) -> None:
    terminal.wait_for("robota> ")
    terminal.type("\x04")
    assert terminal.leave() == 0
    assert "Traceback" not in terminal.seen


def said(server: ModelServer, number: int = -1) -> str:
    """The last thing that the model was told in a request."""
    return str(model_requests(server)[number].body["messages"][-1]["content"])


def test_a_line_can_be_edited_and_earlier_ones_come_back(tmp_path: Path) -> None:
    with ModelServer("One.", "Two.", "Three.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("helo wrld\x1b[D\x1b[D\x1b[Do\x01\x1b[C\x1b[C\x1b[Cl\n")
        terminal.wait_for("One.")
        terminal.wait_for("robota> ")
        terminal.type("second\x17한글\x7f국\n")
        terminal.wait_for("Two.")
        leave(terminal)
        again = open_terminal(tmp_path, server)
        again.type("draft\x1b[A\x1b[A\n")
        again.wait_for("Three.")
        leave(again)
        prompts = [said(server, number) for number in range(3)]

    assert prompts == ["hello world", "한국", "hello world"]


def test_a_backslash_goes_on_with_the_next_line(tmp_path: Path) -> None:
    with ModelServer("Read.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("first\\\n")
        terminal.wait_for("... ")
        terminal.type("second\n")
        terminal.wait_for("Read.")
        leave(terminal)
        assert said(server) == "first\nsecond"


def test_a_line_typed_while_a_turn_runs_goes_to_the_model_or_waits(tmp_path: Path) -> None:
    gate = Gate()
    script = ["Looking.\n", gate, call("Glob", pattern="*")], "With tabs.", "Later."
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("go\n")
        terminal.wait_for("Looking.")
        terminal.type("and later this\n> use tabs\n")
        terminal.wait_for("> use tabs")
        gate.open()
        terminal.wait_for("With tabs.")
        terminal.wait_for("Later.")
        leave(terminal)
        second = [str(each["content"]) for each in model_requests(server)[1].body["messages"]]

    assert "use tabs" in second[-1]
    assert not any("and later this" in each for each in second)
    assert said(server) == "and later this"


def test_commands_are_completed_carried_out_and_listed(tmp_path: Path) -> None:
    with ModelServer("Hello.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("/ren\tmy notes\n")
        terminal.wait_for('Session renamed to "my notes".')
        terminal.wait_for("robota> ")
        terminal.type("/me\t\x15/mode plan\n")
        terminal.wait_for("Permission mode set to: plan")
        terminal.wait_for("robota> ")
        terminal.type("!echo from the shell\n")
        terminal.wait_for("from the shell\r\n")
        terminal.wait_for("robota> ")
        terminal.type("hi\n")
        terminal.wait_for("Hello.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        assert terminal.leave() == 0

    assert "my notes" in terminal.seen
    assert "robota -r " in terminal.seen


def test_resume_lists_sessions_and_shows_where_they_were(tmp_path: Path) -> None:
    with ModelServer("About pears.", "Still pears.").in_thread() as server:
        first = open_terminal(tmp_path, server)
        first.type("tell me of pears\n")
        first.wait_for("About pears.")
        leave(first)
        terminal = open_terminal(tmp_path, server)
        terminal.type("/resume\n")
        terminal.wait_for("1. tell me of pears")
        terminal.wait_for("Which? [1-1] ")
        terminal.type("pears\n")
        terminal.wait_for("> tell me of pears")
        terminal.wait_for("About pears.")
        terminal.wait_for("robota> ")
        terminal.type("go on\n")
        terminal.wait_for("Still pears.")
        leave(terminal)
        told = [message["content"] for message in model_requests(server)[-1].body["messages"][1:]]

    assert told == ["tell me of pears", "About pears.", "go on"]


def test_resume_takes_the_name_of_a_session(tmp_path: Path) -> None:
    with ModelServer("About pears.", "Still pears.").in_thread() as server:
        first = open_terminal(tmp_path, server, "--name", "the pears")
        first.type("tell me of pears\n")
        first.wait_for("About pears.")
        leave(first)
        terminal = open_terminal(tmp_path, server)
        terminal.type("/resume no such\n")
        terminal.wait_for("There is no session no such")
        terminal.wait_for("robota> ")
        terminal.type("/resume the pears\n")
        terminal.wait_for("> tell me of pears")
        terminal.wait_for("robota> ")
        terminal.type("go on\n")
        terminal.wait_for("Still pears.")
        leave(terminal)
        told = [message["content"] for message in model_requests(server)[-1].body["messages"][1:]]

    assert told == ["tell me of pears", "About pears.", "go on"]


def test_a_command_may_be_changed_before_it_runs(tmp_path: Path) -> None:
    with ModelServer([call("Bash", command="touch wrong")], "Done.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("go\n")
        terminal.wait_for("| touch wrong")
        terminal.wait_for("Change the command first (e)")
        terminal.wait_for("w] ")
        terminal.type("e\n")
        terminal.wait_for("touch wrong")
        terminal.type("\x17right\n")
        terminal.wait_for("Done.")
        leave(terminal)

    assert (tmp_path / "right").exists()
    assert not (tmp_path / "wrong").exists()


def test_a_no_may_come_with_a_word_to_the_model(tmp_path: Path) -> None:
    with ModelServer([call("Bash", command="touch one")], "I see.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("go\n")
        terminal.wait_for("w] ")
        terminal.type("maybe\n")
        terminal.wait_for("That is not one of the choices.")
        terminal.wait_for("w] ")
        terminal.type("6\n")
        terminal.wait_for("why: ")
        terminal.type("use two instead\n")
        terminal.wait_for("I see.")
        leave(terminal)
        assert "use two instead" in said(server)

    assert not (tmp_path / "one").exists()


def test_questions_of_the_model_are_numbered(tmp_path: Path) -> None:
    asked = [
        {"question": "Which colour?", "options": ["red", {"label": "blue", "description": "like the sky"}]},
        {"question": "Which fruit?", "options": ["plum", "fig", "nut"], "multiSelect": True},
        {"question": "And why?"},
    ]
    with ModelServer([call("AskUserQuestion", questions=asked)], "Good.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("go\n")
        terminal.wait_for("Which colour?")
        terminal.wait_for("2. blue  like the sky")
        terminal.wait_for("] ")
        terminal.type("2\n")
        terminal.wait_for("Which fruit?")
        terminal.wait_for("] ")
        terminal.type("1, 3\n")
        terminal.wait_for("And why?")
        terminal.wait_for("] ")
        terminal.type("it is late\n")
        terminal.wait_for("Good.")
        leave(terminal)
        answer = said(server)

    for part in ("blue", "plum", "nut", "it is late"):
        assert part in answer
    assert "fig" not in answer


@pytest.mark.parametrize(("typed", "fruit"), [("1,2,9", ""), ("2 4", ""), ("1 3", "plum"), ("1999", "1999")])
def test_numbers_of_which_one_is_no_choice_are_asked_for_again(
    tmp_path: Path, typed: str, fruit: str
) -> None:
    """`fruit` is what the first line answers; a number alone may be the user's own words."""
    asked = [{"question": "Which fruit?", "options": ["plum", "fig", "nut"], "multiSelect": True}]
    with ModelServer([call("AskUserQuestion", questions=asked)], "Good.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("go\n")
        terminal.wait_for("[1-4] ")
        terminal.type(f"{typed}\n")
        if not fruit:
            terminal.wait_for("That is not one of the choices.")
            terminal.wait_for("[1-4] ")
            terminal.type("3\n")
        terminal.wait_for("Good.")
        leave(terminal)
        answer = said(server)

    assert (fruit or "nut") in answer
    assert typed == fruit or typed not in answer


def test_a_plan_is_shown_and_approved(tmp_path: Path) -> None:
    script = [call("ExitPlanMode", plan="1. Touch *one*\n2. Rest")], [call("Bash", command="true")], "Done."
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server, "--permission-mode", "plan")
        terminal.type("plan it\n")
        terminal.wait_for("1. Touch *one*")
        terminal.wait_for("Go to work on this plan?")
        terminal.wait_for("] ")
        terminal.type("y\n")
        terminal.wait_for("Plan approved.")
        terminal.wait_for("Allow Bash?")
        terminal.wait_for("w] ")
        terminal.type("y\n")
        terminal.wait_for("Done.")
        leave(terminal)


def test_work_in_the_background_is_shown_while_somebody_types(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    run = call("Bash", command="read x < fifo", run_in_background=True)
    mode = ("--permission-mode", "bypassPermissions")
    with ModelServer([run], "Started.", "Second.", repeat=True).in_thread() as server:
        terminal = open_terminal(tmp_path, server, *mode)
        terminal.type("go\n")
        terminal.wait_for("Started.")
        terminal.wait_for("robota> ")
        terminal.type("half a li")
        terminal.wait_for("half a li")
        (tmp_path / "fifo").write_text("x\n")
        terminal.wait_for("is done.")
        terminal.wait_for("robota> half a li")
        terminal.type("ne\n")
        terminal.wait_for("Second.")
        leave(terminal)
        assert "half a line" in str(model_requests(server)[-1].body["messages"])


def test_ctrl_c_twice_leaves_a_turn_that_does_not_end(tmp_path: Path) -> None:
    with ModelServer(["Wait. ", Gate()]).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("go\n")
        terminal.wait_for("Wait.")
        terminal.type("\x03")
        terminal.wait_for("Interrupted by user.")
        terminal.wait_for("robota> ")
        terminal.type("\x03")
        assert terminal.leave() == 130
    assert "Traceback" not in terminal.seen


def test_the_interface_speaks_korean(tmp_path: Path) -> None:
    with ModelServer([call("Bash", command="true")], "Ja.").in_thread() as server:
        terminal = open_terminal(tmp_path, server, LC_ALL="ko_KR.UTF-8")
        assert "프롬프트를 입력하세요." in terminal.seen
        terminal.type("go\n")
        terminal.wait_for("무엇을 고를까요?")
        terminal.type("n\n")
        leave(terminal)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "euc-kr"])
def test_a_terminal_with_other_letters_shows_what_it_can(tmp_path: Path, encoding: str) -> None:
    with ModelServer([call("Bash", command="echo ✓ é 漢")], "Fine ✓ 漢.").in_thread() as server:
        arguments = ("--permission-mode", "bypassPermissions")
        variables = {"PYTHONIOENCODING": encoding, "LC_ALL": "ko_KR.UTF-8"}
        pid, master = os.forkpty()
        if pid == 0:
            os.chdir(tmp_path)
            command = [sys.executable, "-m", "robota", *arguments]
            os.execve(sys.executable, command, environment(TERM="dumb", **place(server)) | variables)
        seen = b""
        for typed in (b"go\n", b"\x04"):
            count = seen.count(b"robota> ")
            while seen.count(b"robota> ") == count:
                seen += os.read(master, 4096)
            os.write(master, typed)
        try:
            while data := os.read(master, 4096):
                seen += data
        except OSError:
            pass
        os.close(master)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert code == 0
    assert b"Fine " in seen
    assert b"Traceback" not in seen
    seen.decode(encoding)


@pytest.mark.parametrize(("rows", "columns"), [(24, 1), (24, 5), (1, 80), (3, 19)])
def test_a_tiny_screen_is_served_with_lines(tmp_path: Path, rows: int, columns: int) -> None:
    argv = [sys.executable, "-m", "robota"]
    with (
        ModelServer("A whole answer.").in_thread() as server,
        Screen(argv, cwd=tmp_path, rows=rows, columns=columns, **place(server)) as terminal,
    ):
        terminal.until(lambda _: b"robota> " in terminal.log)
        terminal.type("go\n")
        terminal.until(lambda _: b"A whole answer.\r\nrobota> " in terminal.log)
        terminal.type("\x04")
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.log
        assert b"Traceback" not in terminal.log


def test_an_answer_that_nobody_reads_ends_it(tmp_path: Path) -> None:
    """The keyboard is a terminal, the output a pipe whose reader goes away."""
    with ModelServer(["First line.\n", "Second line.\n"], repeat=True).in_thread() as server:
        master, slave = os.openpty()
        read, write = os.pipe()
        streams = slave, write, subprocess.PIPE
        process = Forked(["--no-tui"], streams, cwd=tmp_path, env=environment(TERM="xterm", **place(server)))
        os.close(slave)
        os.close(write)
        os.close(read)
        os.write(master, b"go\n")
        _, errors = process.communicate(timeout=60)
        os.close(master)

    assert process.returncode == 1
    assert "Traceback" not in errors


def test_the_answer_alone_goes_to_a_file(tmp_path: Path) -> None:
    with ModelServer([call("Bash", command="true")], "The *answer*.\n").in_thread() as server:
        master, slave = os.openpty()
        with open(tmp_path / "out.txt", "wb") as out:
            arguments = "--no-tui", "--permission-mode", "bypassPermissions"
            env = environment(TERM="xterm", **place(server))
            process = Forked(arguments, (slave, out, subprocess.PIPE), cwd=tmp_path, env=env)
            os.close(slave)
            os.write(master, b"go\n/exit\n")
            _, errors = process.communicate(timeout=60)
        os.close(master)

    assert process.returncode == 0, errors
    assert (tmp_path / "out.txt").read_text() == "The *answer*.\n"
    assert "Bash(true)" in errors


def test_a_session_name_and_a_reason_cannot_move_the_cursor(tmp_path: Path) -> None:
    evil = "\x1b]0;x\x07\x1b[2J\x9b1A\u202e"
    settings = {"permissions": {"deny": [f"Bash(echo {evil})"]}}
    (tmp_path / "more.json").write_text(json.dumps(settings))
    script = [call("AskUserQuestion", questions=[{"question": evil, "options": [evil, "b"]}])], evil
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server, "--name", f"n{evil}", "--settings", "more.json")
        terminal.type("go\n")
        terminal.wait_for("Which? ")
        terminal.type("1\n")
        leave(terminal)

    odd = {letter for letter in terminal.seen if not letter.isprintable()} - set("\r\n\t\b")
    assert odd == set(), sorted(map(ascii, odd))


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_prompts_may_come_through_a_pipe(tmp_path: Path, kind: str) -> None:
    """Each line is one; a question is never answered by them."""
    script = "First.", [call("Bash", command="touch one")], "Second."
    prompts = "one\ttab\n\nyes do it\ny\n/exit\n"
    (tmp_path / "prompts.txt").write_text(prompts)
    with ModelServer(*script, "Third.").in_thread() as server, open(tmp_path / "prompts.txt") as file:
        streams = file if kind == "file" else subprocess.PIPE, subprocess.PIPE, subprocess.PIPE
        process = Forked(["--no-tui"], streams, cwd=tmp_path, env=environment(TERM="xterm", **place(server)))
        out, errors = process.communicate(prompts)
        first, third = said(server, 0), said(server, 3)

    assert (process.returncode, out) == (0, "First.\nSecond.\nThird.\n"), errors
    assert (first, third) == ("one\ttab", "y")
    assert not (tmp_path / "one").exists()
    assert "robota> " not in errors


def test_a_terminal_that_was_given_to_another_program_is_taken_back(tmp_path: Path) -> None:
    with ModelServer("Back.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.type("half ")
        terminal.wait_for("half ")
        terminal.signal(signal.SIGSTOP)
        while "\nState:\tT" not in Path(f"/proc/{terminal.process.pid}/status").read_text():
            os.sched_yield()
        state = termios.tcgetattr(terminal.master)
        state[3] |= termios.ICANON | termios.ECHO  # what a shell does meanwhile
        termios.tcsetattr(terminal.master, termios.TCSANOW, state)
        terminal.signal(signal.SIGCONT)
        terminal.wait_for("robota> half ")
        terminal.type("a\x7fa line\n")
        terminal.wait_for("Back.")
        leave(terminal)
        assert said(server) == "half a line"


def test_line_mode_loads_no_toolkit() -> None:
    code = (
        "import sys, robota.tui.lines\n"
        "print(*sorted({'prompt_toolkit', 'rich', 'markdown_it', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
