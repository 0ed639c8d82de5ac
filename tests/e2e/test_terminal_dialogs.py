"""Questions, lists and what a session says beside its answers, in a real terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal, idle, leave, open_terminal, ready, robota_terminal
from tests.support.command import model_requests

from robota.testing import Gate, call
from robota.testing.model_server import ModelServer


def asked(terminal: Terminal) -> None:
    terminal.until(lambda seen: "or the letter" in seen.text or "Esc closes" in seen.text, "an armed dialog")


def results(server: ModelServer) -> list[str]:
    """What the model was told of its calls."""
    messages = model_requests(server)[-1].body["messages"]
    return [str(each["content"]) for each in messages if each["role"] == "tool"]


def test_a_command_can_be_changed_before_it_is_allowed(tmp_path: Path) -> None:
    script = [call("Bash", command="touch one")], "Done."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("go\r")
        asked(terminal)
        terminal.type("e")
        terminal.until("Change the command first")
        terminal.until(lambda seen: seen.screen.row(seen.cursor[0]).strip() == "touch one")
        terminal.type("\x7f\x7f\x7ftwo\r")
        terminal.until("Done.")
        idle(terminal)
        assert leave(terminal) == 0

    assert not (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()
    assert "✓ Bash(touch two)" in terminal.text
    assert "Bash(touch one)" not in terminal.text
    assert results(server)[0].startswith("[The user changed the command before it ran: touch two]")


def test_a_no_may_come_with_a_word_to_the_model(tmp_path: Path) -> None:
    script = [call("Bash", command="touch one")], "Sorry."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("go\r")
        asked(terminal)
        terminal.type("w")
        terminal.until(lambda seen: "or the letter" not in seen.text)
        terminal.type("use the other directory\r")
        terminal.until("Sorry.")
        idle(terminal)

    assert not (tmp_path / "one").exists()
    assert "use the other directory" in results(server)[0]


def test_a_yes_for_the_project_names_its_rule_and_is_kept(tmp_path: Path) -> None:
    script = (
        [call("Bash", "a", command="touch one")],
        "One.",
        [call("Bash", "b", command="touch one")],
        "Two.",
    )
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        asked(terminal)
        assert "don't ask again in this project for Bash(touch one)" in terminal.text
        assert f"in {tmp_path}" in terminal.text.replace("\n", "")
        terminal.type("p")
        terminal.until("One.")
        idle(terminal)
        terminal.type("second\r")
        terminal.until("Two.")
        idle(terminal)
        assert leave(terminal) == 0

    saved = json.loads((tmp_path / ".robota" / "settings.local.json").read_text())
    assert saved == {"permissions": {"allow": ["Bash(touch one)"]}}


def test_an_edit_is_approved_by_its_diff_and_all_of_it_can_be_printed(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(40)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    new = "\n".join(f"new {number}" for number in range(40)) + "\n"
    script = (
        [call("Read", "r", file_path="a.txt")],
        [call("Write", "w", file_path="a.txt", content=new)],
        "Done.",
    )
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("Allow Write?")
        asked(terminal)
        assert "-line 0" in terminal.text
        assert "a.txt" in terminal.text
        assert "+new 39" not in terminal.text
        terminal.type("\x05")
        terminal.until("+new 39")
        assert "Allow Write?" in terminal.text
        terminal.type("y")
        terminal.until("Done.")
        idle(terminal)
        assert leave(terminal) == 0

    assert (tmp_path / "a.txt").read_text() == new


def test_a_question_of_the_model_is_answered_from_a_list_or_in_own_words(tmp_path: Path) -> None:
    colour = {
        "question": "Which colour?",
        "header": "Colour",
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
        "multiSelect": False,
    }
    script = (
        [call("AskUserQuestion", "a", questions=[colour])],
        [call("AskUserQuestion", "b", questions=[{**colour, "question": "Which shade?"}])],
        "Thanks.",
    )
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("ask\r")
        terminal.until("Which colour?")
        asked(terminal)
        terminal.type("2")
        terminal.until("Which shade?")  # not what the first question left on the screen
        asked(terminal)
        terminal.type("o")
        terminal.until(lambda seen: "Esc closes" not in seen.text)
        terminal.type("a warm green\r")
        terminal.until("Thanks.")
        idle(terminal)

    assert "Blue" in results(server)[0]
    assert "a warm green" in results(server)[1]
    assert "· Which colour?\n  > Blue" in terminal.text
    assert "AskUserQuestion" not in terminal.text  # what the model is told is not for the screen


@pytest.mark.parametrize("steps", [0, 200], ids=["short", "long"])
def test_a_plan_is_shown_and_approved(tmp_path: Path, steps: int) -> None:
    plan = "# The plan\n\n" + "".join(f"1. Step {number} of many\n" for number in range(steps))
    script = [call("ExitPlanMode", plan=f"{plan}1. Paint it blue")], "Off to work."
    with (
        ModelServer(*script).in_thread() as server,
        open_terminal(tmp_path, server, "--permission-mode", "plan") as terminal,
    ):
        ready(terminal)
        terminal.until("Mode: plan")
        terminal.type("plan it\r")
        terminal.until("Go to work on this plan?")
        assert "Paint it blue" in terminal.text
        asked(terminal)
        terminal.type("y")
        terminal.until("Off to work.")
        idle(terminal)
        terminal.until(lambda seen: "Mode: plan" not in seen.lines[-1])
        assert "ExitPlanMode" not in terminal.text


def test_esc_twice_goes_back_to_before_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before\n")
    script = (
        [call("Read", "r", file_path="a.txt")],
        [call("Edit", "e", file_path="a.txt", old_string="before", new_string="after")],
        "Changed.",
        "Again.",
    )
    allowed = ("--permission-mode", "acceptEdits")
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server, *allowed) as terminal:
        ready(terminal)
        terminal.type("change the file\r")
        terminal.until("Changed.")
        idle(terminal)
        assert (tmp_path / "a.txt").read_text() == "after\n"
        terminal.type("\x1b")
        terminal.until("Esc again")
        terminal.type("\x1b")
        terminal.until("Back to before which prompt?")
        terminal.type("\r")
        terminal.until("What should go back?")
        terminal.type("\r")
        terminal.until("restored a.txt")
        idle(terminal)
        assert (tmp_path / "a.txt").read_text() == "before\n"
        terminal.until(lambda seen: seen.screen.row(seen.cursor[0]) == "> change the file")
        terminal.type("\r")
        terminal.until("Again.")
        idle(terminal)
        roles = [each["role"] for each in model_requests(server)[-1].body["messages"]]

    assert roles.count("user") == 1


def test_an_earlier_session_is_picked_and_recalled(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with ModelServer("Answer to one.", "Answer to two.", "Third.", repeat=False).in_thread() as server:
        for words, answer in (("first talk", "Answer to one."), ("second talk", "Answer to two.")):
            with open_terminal(tmp_path, server, ROBOTA_HOME=home) as terminal:
                ready(terminal)
                terminal.type(f"{words}\r")
                terminal.until(answer)
                idle(terminal)
                assert leave(terminal) == 0
                assert re.search(r"robota -r \S+", terminal.text)
        with open_terminal(tmp_path, server, ROBOTA_HOME=home) as terminal:
            ready(terminal)
            terminal.type("/resume\r\r")
            terminal.until("Which session?")
            terminal.until("second talk")
            terminal.press("first")
            terminal.until(lambda seen: "second talk" not in seen.text)
            terminal.type("\r")
            terminal.until("Answer to one.")
            terminal.type("go on\r")
            terminal.until("Third.")
            idle(terminal)
            said = [str(each["content"]) for each in model_requests(server)[-1].body["messages"][1:]]
            assert leave(terminal) == 0

    assert said == ["first talk", "Answer to one.", "go on"]


def test_a_session_goes_on_with_a_recap(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with ModelServer("The **first** answer.", "Second.").in_thread() as server:
        with open_terminal(tmp_path, server, ROBOTA_HOME=home) as terminal:
            ready(terminal)
            terminal.type("remember this\r")
            terminal.until("answer.")
            idle(terminal)
            assert leave(terminal) == 0
        with open_terminal(tmp_path, server, "-c", ROBOTA_HOME=home) as terminal:
            terminal.until("The first answer.")
            assert "> remember this" in terminal.text
            ready(terminal)
            assert leave(terminal) == 0
        with open_terminal(tmp_path, server, "-r", ROBOTA_HOME=home) as terminal:
            terminal.until("Which session?")
            terminal.until("remember this")
            terminal.type("\r")
            terminal.until("The first answer.")
            terminal.settle()
            assert leave(terminal) == 0


def test_commands_change_what_the_screen_says(tmp_path: Path) -> None:
    with ModelServer("Hello.", "Bonjour.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("/rename the release\r\r")
        terminal.until(lambda seen: "the release" in seen.lines[-1])
        assert terminal.screen.emulator.titles[-1] == "Robota — the release"
        terminal.type("/model another-one\r\r")
        terminal.until(lambda seen: "another-one" in seen.lines[-1])
        terminal.type("/language fr\r\r")
        terminal.until("fr")
        terminal.type("hello\r")
        terminal.until("Hello.")
        idle(terminal)
        body = model_requests(server)[-1].body
        terminal.type("/clear\r\r")
        terminal.until("cleared")
        terminal.type("again\r")
        terminal.until("Bonjour.")
        idle(terminal)
        after = model_requests(server)[-1].body["messages"]
        terminal.type("/exit\r\r")
        assert terminal.wait() == 0

    assert body["model"] == "another-one"
    assert "fr" in str(body["messages"][0]["content"])
    assert [each["content"] for each in after if each["role"] == "user"] == ["again"]


def test_the_model_is_picked_from_those_that_the_service_has(tmp_path: Path) -> None:
    models = ("scripted", "the-large-one", "the-small-one")
    with (
        ModelServer("Hello.", models=models).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("/model\r\r")
        terminal.until("Which model?")
        assert "answers now" in terminal.text
        terminal.type("small\r")
        terminal.until(lambda seen: "the-small-one" in seen.lines[-1])
        terminal.type("hello\r")
        terminal.until("Hello.")
        idle(terminal)
        body = next(each.body for each in model_requests(server) if "messages" in each.body)
        assert leave(terminal) == 0

    assert body["model"] == "the-small-one"


def test_a_service_that_lists_no_models_is_named_a_model_by_hand(tmp_path: Path) -> None:
    with robota_terminal(tmp_path, ROBOTA_PROVIDER="scripted") as terminal:
        ready(terminal)
        terminal.type("/model\r\r")
        terminal.until("/model NAME chooses another.")
        assert leave(terminal) == 0


def test_settings_are_reset_after_a_question(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.json").write_text('{"language": "en"}')
    with (
        ModelServer("never").in_thread() as server,
        open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        ready(terminal)
        terminal.type("/reset\r\r")
        terminal.until("Delete your settings and leave?")
        asked(terminal)
        terminal.type("y")
        assert terminal.wait() == 0

    assert not (home / "settings.json").exists()


def test_shortened_output_is_expanded_by_a_key(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("\n".join(f"row {number}" for number in range(60)))
    script = [call("Bash", command="cat many.txt")], "Done."
    allowed = ("--permission-mode", "bypassPermissions")
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server, *allowed) as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("Done.")
        idle(terminal)
        assert "row 59" not in terminal.text
        terminal.type("\x0f")
        terminal.until("row 59")
        assert leave(terminal) == 0


def test_a_running_command_shows_its_last_lines(tmp_path: Path) -> None:
    command = "for n in 1 2 3; do echo step $n; done; while [ ! -e go ]; do sleep 0.05; done"
    script = [call("Bash", command=command)], "Done."
    allowed = ("--permission-mode", "bypassPermissions")
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server, *allowed) as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("│ step 3")
        (tmp_path / "go").touch()
        terminal.until("Done.")
        idle(terminal)
        assert leave(terminal) == 0


def test_the_list_of_things_to_do_is_in_sight(tmp_path: Path) -> None:
    gate = Gate()
    todos = [
        {"content": "Dig a hole", "status": "completed", "activeForm": "Digging"},
        {"content": "Plant a tree", "status": "in_progress", "activeForm": "Planting"},
    ]
    script = [call("TodoWrite", todos=todos)], ["Planting", gate, "."]
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("▸ Plant a tree")
        gate.open()
        idle(terminal)


def test_a_bell_rings_when_something_is_asked_and_at_the_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.json").write_text('{"notifications": "bell"}')
    script = [call("Bash", command="touch one")], "Done."
    with (
        ModelServer(*script).in_thread() as server,
        open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        asked(terminal)
        assert terminal.screen.emulator.bells == 1
        terminal.type("n")
        terminal.until("Done.")
        idle(terminal)
        terminal.until(lambda seen: seen.screen.emulator.bells == 2)


def test_a_script_says_what_the_status_line_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    command = (
        "python3 -c \"import json,sys; d=json.load(sys.stdin); print('\\033[31mmine:', d['model']['id'])\""
    )
    (home / "settings.json").write_text(json.dumps({"statusLine": {"type": "command", "command": command}}))
    with (
        ModelServer("never").in_thread() as server,
        open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        terminal.until("mine: scripted")
        assert leave(terminal) == 0


def test_a_script_sets_no_title_by_what_it_repeats(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "a\x01\x1b]0;taken over\x07\x02b"
    home.mkdir()
    project.mkdir()
    settings = {"statusLine": {"type": "command", "command": "printf 'in %s\\n' \"${PWD##*/}\""}}
    (home / "settings.json").write_text(json.dumps(settings))
    with (
        ModelServer("never").in_thread() as server,
        open_terminal(project, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        terminal.until("in ab")
        assert leave(terminal) == 0
    assert not any("taken over" in title for title in terminal.screen.emulator.titles)


def test_ctrl_z_goes_to_the_shell_and_fg_comes_back(tmp_path: Path) -> None:
    import sys

    from tests.e2e.terminal import Terminal as AnyTerminal

    with ModelServer("Hello.").in_thread() as server:
        variables = {"ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted", "PS1": "shell$ "}
        with AnyTerminal(["/bin/bash", "--norc", "-i"], cwd=tmp_path, **variables) as terminal:
            terminal.until("shell$")
            terminal.type(f"{sys.executable} -m robota\n")
            ready(terminal)
            terminal.type("half a line")
            terminal.until("> half a line")
            terminal.type("\x1a")
            terminal.until("Stopped")
            terminal.type("echo in the $((40+2)) shell\n")
            terminal.until("in the 42 shell")
            terminal.type("fg\n")
            terminal.until(lambda seen: seen.screen.row(seen.cursor[0]).startswith("> half a line"))
            terminal.type(" more\r")
            terminal.until("Hello.")
            idle(terminal)
            terminal.type("\x04")
            terminal.until(lambda seen: seen.lines[-1].strip() == "shell$")
            terminal.type("exit\n")
            terminal.wait()

        asked_for = model_requests(server)[-1].body["messages"][-1]["content"]
    assert asked_for == "half a line more"


def test_what_a_project_wants_is_asked_before_it_acts(tmp_path: Path) -> None:
    (tmp_path / ".robota").mkdir()
    (tmp_path / ".robota" / "settings.json").write_text('{"permissions": {"allow": ["Bash(touch *)"]}}')
    script = [call("Bash", command="touch one")], "Done."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        terminal.until("Trust this directory?")
        asked(terminal)
        terminal.type("y")
        terminal.until(lambda seen: "Trust this directory?" not in seen.text)
        terminal.type("go\r")
        terminal.until("Done.")
        idle(terminal)
        assert leave(terminal) == 0

    assert (tmp_path / "one").exists()


def test_no_part_of_a_long_command_is_out_of_sight_without_a_sign(tmp_path: Path) -> None:
    long = "echo " + " ".join(f"word{number}" for number in range(60)) + " && touch one"
    many = "\n".join(f"echo row{number}" for number in range(30))
    script = [call("Bash", "a", command=long)], [call("Bash", "b", command=many)], "Refused."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server, rows=24) as terminal:
        ready(terminal)
        terminal.type("go\r")
        asked(terminal)
        assert "word59 && touch one" in " ".join(terminal.text.replace("| ", "").split())
        terminal.type("n")
        terminal.until("echo row0")
        asked(terminal)
        assert "more lines (Ctrl-E prints all)" in terminal.text
        terminal.type("\x05")
        terminal.until("echo row15")
        asked(terminal)
        terminal.type("n")
        terminal.until("Refused.")
        idle(terminal)
