"""Commands of their own: each driven as a user does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.command import model_requests, place, robota
from tests.support.driven import driven
from tests.support.terminal import Terminal

from robota.cli.subcommands import SUBCOMMANDS
from robota.testing import call
from robota.testing.model_server import ModelServer


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".robota").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def talk(project: Path) -> str:
    """A kept session about apples in which a file was read; its id."""
    (project / "fruit.txt").write_text("apples\n")
    script = [call("Read", file_path="fruit.txt")], "You have apples."
    id = "0b7e1c9a-55d1-4f6e-9a53-2f0c1f7d8e11"
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "which fruit?", "--session-id", id, "--name", "fruit", cwd=project, server=server)
    assert done.returncode == 0, done.stderr
    return id


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sessions show", "robota: Missing argument 'SESSION'. robota sessions show --help tells more.\n"),
        ("sessions frob", "robota: No such command 'frob'. robota sessions --help tells more.\n"),
        (
            "sessions shwo",
            "robota: No such command 'shwo'. Did you mean 'show'? robota sessions --help tells more.\n",
        ),
        ("completions", "robota: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish. robota"),
        ("tour", "robota: The tour is for people: run it in a terminal. robota tour --help tells more.\n"),
    ],
)
def test_what_is_wrong_behind_a_subcommand_is_one_line(project: Path, words: str, said: str) -> None:
    done = robota(*words.split(), cwd=project)

    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


# --- sessions ---------------------------------------------------------------------------------------------


def test_a_session_is_one_row_whatever_it_is_called(project: Path) -> None:
    with ModelServer("Ok.").in_thread() as server, driven(cwd=project, server=server) as host:
        host.initialize(title="a\nb")
        host.ask("hi")
        host.finish()
    listed = robota("sessions", "list", cwd=project)

    assert listed.stdout.count("\n") == 1
    assert "a b: hi" in listed.stdout


def test_sessions_are_listed_shown_and_searched(project: Path, tmp_path: Path, talk: str) -> None:
    listed = robota("sessions", "list", cwd=project)
    elsewhere = robota("sessions", "list", cwd=tmp_path)
    everywhere = robota("sessions", "list", "--all", "--json", cwd=tmp_path)
    shown = robota("sessions", "show", "fruit", cwd=project)
    found = robota("sessions", "search", "have", "APPLES", cwd=project)
    nothing = robota("sessions", "search", "pears", cwd=project)

    assert listed.stdout.startswith(talk)
    assert "fruit: which fruit?" in listed.stdout
    assert "There are no sessions" in elsewhere.stderr
    assert json.loads(everywhere.stdout)["id"] == talk
    assert f"id         {talk}" in shown.stdout
    assert "You have apples." in shown.stdout
    assert f"{talk}  " in found.stdout
    assert "assistant: " in found.stdout
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "--all" in nothing.stderr


def test_a_session_is_exported_deleted_and_imported_again(project: Path, home: Path, talk: str) -> None:
    page = robota("sessions", "export", talk, "--format", "html", "-o", "talk.html", cwd=project)
    artifact = robota("sessions", "export", "fruit", "--format", "json", "-o", "talk.json", cwd=project)
    again = robota("sessions", "export", "fruit", "-o", "talk.json", cwd=project)
    gone = robota("sessions", "rm", "fruit", cwd=project)
    missing = robota("sessions", "show", talk, cwd=project)
    back = robota("sessions", "import", "talk.json", cwd=project)
    twice = robota("sessions", "import", "talk.json", cwd=project)
    shown = robota("sessions", "show", "fruit", cwd=project)
    emptied = robota("sessions", "gc", cwd=project)

    assert (page.returncode, artifact.returncode, gone.returncode) == (0, 0, 0)
    assert "<html" in (project / "talk.html").read_text()
    assert again.returncode == 1
    assert "talk.json cannot be written (File exists)" in again.stderr
    assert (missing.returncode, "There is no session" in missing.stderr) == (1, True)
    assert (back.returncode, back.stdout.split()[0]) == (0, talk)
    assert (twice.returncode, "already" in twice.stderr) == (0, True)
    assert "You have apples." in shown.stdout
    assert emptied.returncode == 0
    assert not (home / ".robota" / "sessions" / ".trash").exists()


def test_sessions_of_the_original_in_the_project_are_imported_with_their_events(
    project: Path, home: Path
) -> None:
    records, logs = project / ".robota" / "sessions", project / ".robota" / "logs"
    records.mkdir(parents=True)
    logs.mkdir()
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    (records / "one.json").write_text(
        json.dumps({
            "id": "one", "cwd": str(project), "createdAt": "2026-01-02T03:04:05.000Z",
            "updatedAt": "2026-01-02T03:04:06.000Z", "messages": messages,
            "history": [
                {"id": "a", "timestamp": "2026-01-02T03:04:05.000Z", "category": "chat", "type": "user",
                 "data": messages[0]},
                {"id": "b", "timestamp": "2026-01-02T03:04:05.500Z", "category": "event",
                 "type": "skill-activation", "data": {"name": "greet"}},
                {"id": "c", "timestamp": "2026-01-02T03:04:06.000Z", "category": "chat", "type": "assistant",
                 "data": messages[1]},
            ],
        })
    )  # fmt: skip
    lines = [
        {"event": "session_init", "cwd": str(project), "model": "m"},
        {"event": "history_mutation", "message": {"role": "user", "content": "only a log"}},
        {"event": "history_mutation", "message": {"role": "assistant", "content": "I see"}},
    ]
    (logs / "two.jsonl").write_text(
        "\n".join(
            json.dumps({"timestamp": "2026-02-02T03:04:05.000Z", "sessionId": "two", **line})
            for line in lines
        )
    )
    (records / "broken.json").write_text("{")

    done = robota("sessions", "import", cwd=project)
    listed = robota("sessions", "list", cwd=project)
    with ModelServer("again").in_thread() as server:
        robota("-p", "go on", "-r", "two", cwd=project, server=server)
        said = [message["content"] for message in model_requests(server)[0].body["messages"][1:]]

    assert done.returncode == 1
    assert "broken.json was not imported" in done.stderr
    assert "2 of 3 imported." in done.stderr
    assert "hello" in listed.stdout
    kept = json.loads((home / ".robota" / "sessions" / "one.json").read_text())
    assert [entry["type"] for entry in kept["history"]] == ["user", "skill-activation", "assistant"]
    assert said == ["only a log", "I see", "go on"]


def test_transcripts_of_claude_code_are_imported_and_continued(project: Path, home: Path) -> None:
    key = "".join(letter if letter.isalnum() else "-" for letter in str(project.resolve()))
    folder = home / ".claude" / "projects" / key
    folder.mkdir(parents=True)
    id = "7a1e1c9a-55d1-4f6e-9a53-2f0c1f7d8e22"
    shared = {"sessionId": id, "cwd": str(project), "isSidechain": False, "version": "2.1.0"}
    lines = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-03-01T10:00:00.000Z",
         "message": {"role": "user", "content": "what is this?"}},
        {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "timestamp": "2026-03-01T10:00:02.000Z",
         "message": {"id": "m1", "role": "assistant", "model": "x",
                     "content": [{"type": "text", "text": "A test."}]}},
    ]  # fmt: skip
    (folder / f"{id}.jsonl").write_text("\n".join(json.dumps({**shared, **line}) for line in lines))

    done = robota("sessions", "import", "--claude", cwd=project)
    with ModelServer("Still one.").in_thread() as server:
        going_on = robota("-p", "and now?", "-c", cwd=project, server=server)
        said = [message["content"] for message in model_requests(server)[0].body["messages"][1:]]

    assert (done.returncode, done.stdout.split()[0]) == (0, id), done.stderr
    assert (going_on.returncode, going_on.stdout) == (0, "Still one.\n")
    assert said == ["what is this?", "A test.", "and now?"]


def test_nothing_to_import_is_said(project: Path) -> None:
    done = robota("sessions", "import", cwd=project)

    assert (done.returncode, done.stderr) == (
        1,
        "There is nothing to import here: name a file, or add --claude.\n",
    )


def test_old_records_get_their_timeline(project: Path, home: Path) -> None:
    (home / ".robota" / "sessions").mkdir()
    (home / ".robota" / "sessions" / "old.json").write_text(
        json.dumps({"id": "old", "cwd": str(project), "messages": [{"role": "user", "content": "hello"}]})
    )

    first = robota("sessions", "migrate", cwd=project)
    second = robota("sessions", "migrate", cwd=project)

    assert (first.stdout, first.stderr) == ("old\n", "1 migrated, 0 as they were.\n")
    assert second.stderr == "0 migrated, 1 as they were.\n"


def test_an_export_on_the_screen_moves_no_cursor(project: Path) -> None:
    with ModelServer("red \x1b[2J\x1b]0;title\x07 apple").in_thread() as server:
        robota("-p", "which?", "--name", "odd", cwd=project, server=server)
    terminal = Terminal(project, "sessions", "export", "odd", "--format", "json")

    assert terminal.leave() == 0
    assert "apple" in terminal.seen
    assert "\x1b" not in terminal.seen


# --- replay -----------------------------------------------------------------------------------------------


def test_a_session_is_replayed_without_a_network(project: Path, talk: str) -> None:
    same = robota("replay", talk, cwd=project)
    part = robota("replay", "fruit", "--at", "3", cwd=project)
    events = robota("replay", talk, "--events", cwd=project)
    (project / "fruit.txt").write_text("pears\n")
    other = robota("replay", talk, "--against", "tools", cwd=project)

    assert (same.returncode, same.stderr) == (0, "5 messages, as they were recorded.\n")
    assert [line[:3] for line in part.stdout.splitlines() if line.startswith("[")] == ["[1]", "[2]", "[3]"]
    assert "[2] user: which fruit?" in part.stdout
    assert [json.loads(line)["event"] for line in events.stdout.splitlines()][-1] == "complete"
    assert other.returncode == 1
    assert "apples" in other.stderr
    assert "pears" in other.stderr


def test_a_replay_shows_how_far_it_is_on_a_terminal(project: Path, talk: str) -> None:
    terminal = Terminal(project, "replay", talk)

    assert terminal.leave() == 0
    assert "replay: 5 of 5 (100%)" in terminal.seen
    assert terminal.seen.rstrip().endswith("5 messages, as they were recorded.")


def test_a_session_begins_anew_from_the_middle_of_another(project: Path, talk: str) -> None:
    new = robota("replay", "fruit", "--fork-at", "2", cwd=project)
    id = new.stdout.strip()
    with ModelServer("Pears.").in_thread() as server:
        robota("-p", "and now?", "-r", id, cwd=project, server=server)
        said = [message["content"] for message in model_requests(server)[0].body["messages"][1:]]
    old = robota("replay", talk, cwd=project)
    beyond = robota("replay", talk, "--fork-at", "99", cwd=project)

    assert new.stderr == f"Go on with it: robota -r {id}\n"
    assert said == ["which fruit?", "and now?"]
    assert old.returncode == 0
    assert (beyond.returncode, "There is no step 99" in beyond.stderr) == (1, True)


def test_a_replay_by_the_rules_of_today_says_what_they_change(project: Path, talk: str) -> None:
    same = robota("replay", talk, "--against", "rules", cwd=project)
    (project / ".robota").mkdir()
    rules = {"permissions": {"deny": ["Read(fruit.txt)"]}}
    (project / ".robota" / "settings.json").write_text(json.dumps(rules))
    other = robota("replay", talk, "--against", "rules", cwd=project)

    assert (same.returncode, same.stderr) == (0, "5 messages, as they were recorded.\n")
    assert other.returncode == 1
    assert "permission_decided.decision was 'allow', now it is 'deny'" in other.stderr


def test_the_rounds_of_a_session_are_put_to_another_model(project: Path, talk: str) -> None:
    other = [call("Grep", pattern="fruit")], "You have pears."
    same = [call("Read", file_path="fruit.txt")], "You have pears."
    with ModelServer(*other, *same).in_thread() as server:
        differs = robota("replay", talk, "--against", "model", cwd=project, server=server)
        agrees = robota("replay", talk, "--against", "model", "--model", "m2", cwd=project, server=server)
        asked = model_requests(server)

    assert (differs.returncode, agrees.returncode) == (1, 0)
    assert differs.stdout == '[2] Read {"file_path":"fruit.txt"}\n -> Grep {"pattern":"fruit"}\n'
    assert "decides otherwise in 1 of 2 rounds" in differs.stderr
    assert asked[-1].body["model"] == "m2"
    assert [each["role"] for each in asked[1].body["messages"]] == ["system", "user", "assistant", "tool"]


def test_a_fork_goes_on_where_there_is_a_terminal(project: Path, talk: str, tmp_path: Path) -> None:
    """And no file of the directory takes the place of a module."""
    (project / "shlex.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    with ModelServer("Pears.").in_thread() as server:
        terminal = Terminal(project, "replay", talk, "--fork-at", "2", "--model", "m2", **place(server))
        terminal.wait_for("which fruit?")
        terminal.wait_for("robota> ")
        terminal.type("and now?\n")
        terminal.wait_for("Pears.")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        assert terminal.leave() == 0
        [asked] = model_requests(server)

    assert asked.body["model"] == "m2"
    assert [each["content"] for each in asked.body["messages"][1:]] == ["which fruit?", "and now?"]
    assert not (tmp_path / "sprung").exists()


# --- permissions ------------------------------------------------------------------------------------------


def test_why_names_the_rule_the_part_and_the_file(project: Path, home: Path) -> None:
    (home / ".robota" / "settings.json").write_text(
        '{\n  "permissions": {\n    "allow": ["Bash(git log *)"],\n    "deny": ["Read(.env)"]\n  }\n}\n'
    )

    refused = robota("permissions", "why", "cat .env", cwd=project)
    runs = robota("permissions", "why", "git log --oneline", cwd=project)
    asks = robota("permissions", "why", "git push", cwd=project)
    other = robota("permissions", "why", "Write(a.txt)", "--permission-mode", "acceptEdits", cwd=project)
    wrong = robota("permissions", "why", "x", "--permission-mode", "yolo", cwd=project)

    assert (refused.returncode, refused.stdout.splitlines()[0]) == (1, "refused")
    assert "rule: Read(.env) (~/.robota/settings.json:4)" in refused.stdout
    assert (runs.returncode, runs.stdout.splitlines()[0]) == (0, "runs")
    assert (asks.returncode, asks.stdout.splitlines()[0]) == (3, "asks")
    assert (other.returncode, other.stdout.splitlines()[0]) == (0, "runs")
    assert (wrong.returncode, "takes one of default" in wrong.stderr) == (2, True)


def test_rules_are_checked_with_examples(project: Path) -> None:
    (project / ".robota").mkdir()
    (project / ".robota" / "settings.json").write_text('{"permissions": {"deny": ["Bash(rm *)"]}}')
    (project / "good.txt").write_text("# what we want\nrefused rm -r build\nasks make\nruns Read(a.txt)\n")
    (project / "bad.txt").write_text("runs rm -r build\n")
    (project / "worse.txt").write_text("perhaps rm\n")

    good = robota("permissions", "test", "good.txt", cwd=project)
    bad = robota("permissions", "test", "bad.txt", cwd=project)
    worse = robota("permissions", "test", "worse.txt", cwd=project)
    (project / "remarks.txt").write_text("# refused rm -r build\n\n")
    none = robota("permissions", "test", "remarks.txt", cwd=project)
    (project / "picture").write_bytes(b"\x89PNG")
    binary = robota("permissions", "test", "picture", cwd=project)
    gone = robota("permissions", "test", "gone.txt", cwd=project)
    editor = robota("config", "edit", cwd=project, EDITOR="/gone", VISUAL="")
    assert "picture cannot be read (it is not UTF-8 text): name" in binary.stderr
    assert "gone.txt cannot be read (No such file or directory): name" in gone.stderr
    assert "'/gone' cannot be started (No such file or directory): set" in editor.stderr

    assert (good.returncode, good.stdout) == (0, "")
    assert "3 of 3 as expected." in good.stderr
    assert bad.returncode == 1
    assert "bad.txt:1: rm -r build: expected runs, refused by Bash(rm *)" in bad.stdout
    assert (none.returncode, "remarks.txt has no examples: write runs" in none.stderr) == (1, True)
    assert (worse.returncode, "worse.txt:1 is not an example" in worse.stderr) == (1, True)


def test_past_calls_are_judged_by_the_rules_of_today(project: Path, talk: str) -> None:
    same = robota("permissions", "replay", cwd=project)
    stricter = robota(
        "permissions", "replay", "--settings", '{"permissions": {"deny": ["Read(*.txt)"]}}', cwd=project
    )

    assert (same.returncode, same.stdout) == (0, "")
    assert "0 of 1 calls in 1 sessions" in same.stderr
    assert stricter.stdout == f"runs -> refused  Read(fruit.txt)  {talk}\n"


# --- settings, keys, providers ----------------------------------------------------------------------------


def test_settings_are_shown_with_their_origin_changed_and_taken_out(project: Path, home: Path) -> None:
    file = home / ".robota" / "settings.json"
    file.write_text('{\n  // mine\n  "language": "German"\n}\n')

    shown = robota("config", "show", "--origin", cwd=project, ROBOTA_MODEL="m")
    local = robota("config", "set", "language", "Korean", "--scope", "local", cwd=project)
    number = robota("config", "set", "budget.maxCostUsd", "2.5", cwd=project)
    text = robota("config", "set", "model", "3", cwd=project)
    got = robota("config", "get", "budget.maxCostUsd", cwd=project)
    default = robota("config", "get", "permissions.defaultMode", cwd=project)
    none = robota("config", "get", "effortLevel", cwd=project)
    unknown = robota("config", "get", "lanugage", cwd=project)
    wrong = robota("config", "set", "effortLevel", "lots", cwd=project)
    gone = robota("config", "unset", "language", cwd=project)

    assert "language  German  ~/.robota/settings.json" in shown.stdout
    assert "the environment" in shown.stdout
    assert local.returncode == number.returncode == 0
    assert "settings.local.json" in local.stdout
    assert json.loads((project / ".robota" / "settings.local.json").read_text()) == {"language": "Korean"}
    assert (got.stdout, default.stdout, none.returncode) == ("2.5\n", "default\n", 1)
    assert (unknown.returncode, "did you mean 'language'?" in unknown.stderr) == (1, True)
    assert (wrong.returncode, "no value for effortLevel" in wrong.stderr) == (1, True)
    assert gone.returncode == 0
    written = file.read_text()
    assert "// mine" in written
    assert '"model": "3"' in written, text.stderr
    assert "German" not in written


def test_a_settings_file_is_opened_in_the_editor(project: Path, home: Path) -> None:
    without = robota("config", "edit", cwd=project)
    done = robota("config", "edit", cwd=project, EDITOR='sh -c \'echo "{" > "$1"\' edit')

    assert (without.returncode, "Neither $VISUAL nor $EDITOR is set" in without.stderr) == (1, True)
    assert done.returncode == 1
    assert "Invalid settings in" in done.stderr
    assert (home / ".robota" / "settings.json").read_text() == "{\n"


def test_keys_are_kept_listed_and_forgotten_without_being_shown(project: Path) -> None:
    none = robota("auth", "list", cwd=project)
    kept = robota("auth", "set", "anthropic", cwd=project, stdin="sk-secret-1234567890\n")
    listed = robota("auth", "list", cwd=project, OPENAI_API_KEY="sk-other-1234567890")
    gone = robota("auth", "rm", "anthropic", cwd=project)
    again = robota("auth", "rm", "anthropic", cwd=project)

    assert (none.returncode, "There are no keys" in none.stderr) == (1, True)
    assert (kept.returncode, "The key of anthropic is kept in" in kept.stdout) == (0, True)
    assert listed.stdout.startswith("anthropic  in ")
    assert "openai     in the variable OPENAI_API_KEY" in listed.stdout
    assert "secret" not in kept.stdout + listed.stdout
    assert (gone.returncode, again.returncode) == (0, 1)


def test_a_provider_and_a_model_are_chosen_for_good(project: Path, home: Path) -> None:
    added = robota("provider", "add", "home", "--type", "ollama", "--model", "qwen3", cwd=project)
    twice = robota("provider", "add", "home", "--type", "ollama", cwd=project)
    unknown = robota("provider", "add", "x", "--type", "olama", cwd=project)
    used = robota("provider", "use", "home", cwd=project)
    wrong = robota("provider", "use", "nobody", cwd=project)
    model = robota("model", "use", "qwen3:8b", cwd=project)

    assert (added.returncode, used.returncode, model.returncode) == (0, 0, 0), added.stderr
    assert (twice.returncode, "already" in twice.stderr) == (1, True)
    assert (unknown.returncode, "ollama" in unknown.stderr) == (1, True)
    assert (wrong.returncode, 'There is no provider profile "nobody"' in wrong.stderr) == (1, True)
    assert json.loads((home / ".robota" / "settings.json").read_text()) == {
        "providers": {"home": {"type": "ollama", "model": "qwen3"}},
        "currentProvider": "home",
        "model": "qwen3:8b",
    }


# --- all of them ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_command_explains_itself(project: Path, name: str) -> None:
    done = robota(name, "--help", cwd=project)

    assert done.returncode == 0
    assert f"robota {name}" in done.stdout


def test_a_value_may_begin_with_a_dash(tmp_path: Path) -> None:
    home = {"ROBOTA_HOME": str(tmp_path / "home")}
    done = robota("config", "set", "model", "-1", cwd=tmp_path, **home)
    wrong = robota("config", "set", "autoCompactThreshold", "-1", cwd=tmp_path, **home)

    assert (done.returncode, wrong.returncode) == (0, 1)
    assert robota("config", "get", "model", cwd=tmp_path, **home).stdout == "-1\n"
    assert "no value for autoCompactThreshold" in wrong.stderr


def test_an_export_and_a_search_show_how_far_they_are_on_a_terminal(project: Path, talk: str) -> None:
    exporting = Terminal(project, "sessions", "export", talk, "-o", "talk.md")
    assert exporting.leave() == 0
    searching = Terminal(project, "sessions", "search", "apples")
    assert searching.leave() == 0

    assert "export: " in exporting.seen
    assert "(100%)" in exporting.seen
    assert "index: 1 of 1 (100%)" in searching.seen
