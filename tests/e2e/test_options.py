"""Options of the command line, each seen where it takes effect."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest
from tests.support.command import model_requests, robota
from tests.support.terminal import Terminal

from robota.core.messages import Json
from robota.testing import call
from robota.testing.model_server import ModelServer


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def kept(tmp_path: Path) -> list[dict[str, Json]]:
    files = sorted((tmp_path / "home" / ".robota" / "sessions").glob("*.json"), key=os.path.getmtime)
    return [json.loads(file.read_text()) for file in files]


def asked(server: ModelServer, number: int = -1) -> dict[str, Json]:
    body: dict[str, Json] = model_requests(server)[number].body
    return body


@pytest.mark.parametrize("option", ["--system-prompt-file", "--append-system-prompt-file", "--json-schema"])
def test_a_file_that_is_no_text_is_refused(project: Path, option: str) -> None:
    (project / "picture").write_bytes(b"\x89PNG\xff\xfe")

    done = robota("-p", "hi", option, "picture", cwd=project)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"robota: {option} takes UTF-8 text, which picture is not: name another file.\n"


def test_a_credential_is_passed_by_its_name(project: Path) -> None:
    done = robota("-p", "hi", "--pass-env", "TOKEN=secret", cwd=project)

    assert done.returncode == 2
    assert "--pass-env takes the name of a variable, such as TOKEN" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("wrong", ["--foo", "--xy"])
def test_an_option_that_is_like_none_is_not_corrected(project: Path, wrong: str) -> None:
    assert "did you mean" not in robota("-p", "hi", wrong, cwd=project).stderr


def test_the_system_prompt_is_replaced_added_to_or_left_out(project: Path) -> None:
    (project / "CLAUDE.md").write_text("Say please.\n")
    (project / "role.md").write_text("From a file.\n")
    seen = []
    with ModelServer("ok", repeat=True).in_thread() as server:
        for arguments in (
            ["--system-prompt", "Be brief."],
            ["--system-prompt-file", "role.md", "--append-system-prompt", "-- and kind"],
            ["--system-prompt", ""],
            ["--append-system-prompt", "Be kind."],
        ):
            done = robota("-p", "hi", *arguments, cwd=project, server=server)
            assert done.returncode == 0, done.stderr
            first = asked(server)["messages"][0]
            seen.append(first["content"] if first["role"] == "system" else None)

    assert seen[0] == "Be brief."
    assert seen[1] == "From a file.\n\n\n## Further Instructions\n-- and kind"
    assert seen[2] is None
    assert "Say please." in seen[3]
    assert seen[3].endswith("## Further Instructions\nBe kind.")


def test_only_the_tools_that_were_asked_for_are_offered(project: Path) -> None:
    with ModelServer("ok", repeat=True).in_thread() as server:
        robota("-p", "hi", "--tools", "Read,Grep", cwd=project, server=server)
        some = [tool["function"]["name"] for tool in asked(server)["tools"]]
        robota("-p", "hi", "--tools", "", cwd=project, server=server)
        none = asked(server).get("tools", [])
        wrong = robota("-p", "hi", "--tools", "Raed", cwd=project, server=server)

    assert some == ["Read", "Grep"]
    assert none == []
    assert wrong.returncode == 2
    assert wrong.stderr == "robota: There is no built-in tool 'Raed'; did you mean 'Read'?\n"


def test_a_session_has_the_id_and_the_name_it_is_given_and_is_found_by_both(
    project: Path, tmp_path: Path
) -> None:
    id = str(uuid.uuid4())
    with ModelServer("one", "two", "three", "four").in_thread() as server:
        robota("-p", "first", "--session-id", id, "--name", "the ports, 한글", cwd=project, server=server)
        again = robota("-p", "x", "--session-id", id, cwd=project, server=server)
        robota("-p", "second", "-r", "the ports, 한글", cwd=project, server=server)
        robota("-p", "third", f"--resume={id}", "--fork-session", "-n", "other", cwd=project, server=server)
        said = [message["content"] for message in asked(server)["messages"][1:]]

    assert again.returncode == 1
    assert f"There is a session {id} already" in again.stderr
    assert said == ["first", "one", "second", "two", "third"]
    records = kept(tmp_path)
    assert [(record["name"], len(record["messages"])) for record in records] == [
        ("the ports, 한글", 5),
        ("other", 7),
    ]
    assert records[0]["id"] == id


def test_a_name_that_nobody_has_is_an_error_that_names_the_nearest(project: Path) -> None:
    with ModelServer("one").in_thread() as server:
        robota("-p", "first", "--name", "ports", cwd=project, server=server)
        done = robota("-p", "x", "-r", "prots", cwd=project, server=server)

    assert done.returncode == 1
    assert "Did you mean ports?" in done.stderr


def test_continue_where_there_is_nothing_begins_a_new_session_and_says_so(project: Path) -> None:
    with ModelServer("hello").in_thread() as server:
        done = robota("-p", "hi", "-c", cwd=project, server=server)

    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "There is no session to continue in" in done.stderr


def test_a_session_is_chosen_from_a_list(project: Path) -> None:
    with ModelServer("one", "two", "three").in_thread() as server:
        variables = {"ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted"}
        robota("-p", "about apples", cwd=project, server=server)
        robota("-p", "about pears", cwd=project, server=server)
        terminal = Terminal(project, "-r", "--no-tui", **variables)
        terminal.wait_for("about pears")
        terminal.wait_for("about apples")
        terminal.wait_for("Which? [1-2]")
        terminal.type("2\n")
        terminal.wait_for("robota>")
        terminal.type("go on\n")
        terminal.wait_for("three")
        terminal.type("/exit\n")
        assert terminal.leave() == 0
        said = [message["content"] for message in asked(server)["messages"][1:]]

    assert said == ["about apples", "one", "go on"]


def test_settings_of_the_command_line_count_more_than_files(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".robota"
    home.mkdir(parents=True)
    (home / "settings.json").write_text('{"language": "German"}')
    (project / "mine.json").write_text('{"language": "Korean"}')
    seen = []
    with ModelServer("ok", repeat=True).in_thread() as server:
        for arguments in (
            [],
            ["--settings", "mine.json"],
            ["--settings", '{"language": "French"}'],
            ["--settings", "mine.json", "--language", "Spanish"],
            ["--setting-sources", ""],
            ["--bare"],
        ):
            robota("-p", "hi", *arguments, cwd=project, server=server)
            prompt = asked(server)["messages"][0]["content"]
            languages = ("German", "Korean", "French", "Spanish")
            seen.append(next((each for each in languages if f"answer in {each}" in prompt), None))
        missing = robota("-p", "hi", "--settings", "nowhere.json", cwd=project, server=server)
        broken = robota("-p", "hi", "--settings", "{", cwd=project, server=server)

    assert seen == ["German", "Korean", "French", "Spanish", None, None]
    assert missing.returncode == 2
    assert "There is no settings file" in missing.stderr
    assert broken.returncode == 2
    assert "Invalid settings in --settings" in broken.stderr


def test_a_directory_that_is_added_belongs_to_the_workspace(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    script = [call("Write", file_path=str(other / "new.txt"), content="x")], "Written."
    with ModelServer(*script, *script).in_thread() as server:
        without = robota("-p", "go", "--permission-mode", "acceptEdits", cwd=project, server=server)
        before = (other / "new.txt").exists()
        done = robota(
            "-p", "go", "--permission-mode", "acceptEdits", "--add-dir", str(other),
            cwd=project, server=server,
        )  # fmt: skip

    assert "Write" in without.stderr
    assert not before
    assert done.returncode == 0
    assert (other / "new.txt").read_text() == "x"


def test_an_agent_of_the_command_line_works(project: Path) -> None:
    agents = json.dumps({"poet": {"description": "Writes verse.", "prompt": "You rhyme."}})
    script = [call("Agent", description="verse", prompt="a line", subagent_type="poet")], "A rose.", "Done."
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "go", "--agents", agents, "--allow", "Agent", cwd=project, server=server)
        prompt = asked(server, 1)["messages"][0]["content"]

    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "You rhyme." in prompt


def test_effort_is_what_the_model_is_asked_for(project: Path) -> None:
    with ModelServer("ok").in_thread() as server:
        robota("-p", "hi", "--effort", "high", cwd=project, server=server)

        assert asked(server)["reasoning_effort"] == "high"


def test_an_answer_of_a_schema_is_asked_again_until_it_fits(project: Path) -> None:
    schema = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
    with ModelServer("none", '{"n": 3}').in_thread() as server:
        done = robota("-p", "how many?", "--json-schema", schema, cwd=project, server=server)

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == '{"n": 3}'


def test_a_dry_run_changes_nothing(project: Path) -> None:
    with ModelServer([call("Write", file_path="a.txt", content="x")], "ok").in_thread() as server:
        robota("-p", "go", "--dry-run", cwd=project, server=server)

    assert not (project / "a.txt").exists()


def test_debug_tells_what_goes_on_inside(project: Path) -> None:
    with ModelServer("ok", repeat=True).in_thread() as server:
        plain = robota("-p", "hi", cwd=project, server=server)
        told = robota("-p", "hi", "--debug", cwd=project, server=server)

    assert "DEBUG robota" not in plain.stderr
    assert "DEBUG robota" in told.stderr


def test_reset_asks_or_needs_a_yes(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "home" / ".robota" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")

    refused = robota("--reset", cwd=project)
    assert (refused.returncode, file.exists()) == (2, True)
    assert "add --yes" in refused.stderr

    terminal = Terminal(project, "--reset")
    terminal.wait_for("[y/N]")
    terminal.type("\n")
    assert (terminal.leave(), file.exists()) == (1, True)

    done = robota("--reset", "--yes", cwd=project)
    assert (done.returncode, file.exists()) == (0, False)
    assert "is deleted" in done.stdout


def test_the_last_line_has_the_cost_and_the_command_that_resumes(project: Path, tmp_path: Path) -> None:
    with ModelServer("one").in_thread() as server:
        variables = {"ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "gpt-4o"}
        terminal = Terminal(project, "--no-tui", "hello", **variables)
        terminal.wait_for("one")
        terminal.wait_for("robota>")
        terminal.type("/exit\n")
        assert terminal.leave() == 0
    last = terminal.seen.splitlines()[-1]

    [record] = kept(tmp_path)
    assert last.startswith("Cost: $0.00")
    assert last.endswith(f"Continue this session: robota -r {record['id']}")


def test_verbose_tells_calls_in_full(project: Path) -> None:
    (project / "a.txt").write_text("first\nsecond\n")
    script = [call("Grep", pattern="second", path="a.txt", output_mode="content")], "Found."
    with ModelServer(*script, *script).in_thread() as server:
        plain = robota("-p", "go", cwd=project, server=server)
        told = robota("-p", "go", "--verbose", cwd=project, server=server)

    assert "output_mode" not in plain.stderr
    assert "  pattern: second\n  path: a.txt\n  output_mode: content\n" in told.stderr
    assert "✓ Grep\n  " in told.stderr


def test_a_session_may_have_a_worktree_of_its_own(project: Path) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *command], cwd=project, check=True)
    script = [call("Write", file_path="new.txt", content="x")], "Written."
    with ModelServer("Looked.", *script).in_thread() as server:
        looked = robota("-p", "look", "--worktree", "try", cwd=project, server=server)
        trees = project / ".robota" / "worktrees"
        left = [path.name for path in trees.iterdir() if path.is_dir()]
        wrote = robota(
            "-p", "write", "--worktree=try", "--permission-mode", "acceptEdits", cwd=project, server=server
        )
    [tree] = [path for path in trees.iterdir() if path.is_dir()]

    assert (looked.returncode, left) == (0, [])
    assert (tree / "new.txt").read_text() == "x"
    assert not (project / "new.txt").exists()
    assert tree.name.startswith("try-")
    assert f"The worktree is {tree}" in wrote.stderr


def test_settings_of_the_command_line_count_for_a_worktree_too(project: Path) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *command], cwd=project, check=True)
    (project / "deps").mkdir()
    (project / "mine.json").write_text('{"worktree": {"symlinkDirectories": ["deps"]}}')
    script = [call("Glob", pattern="*")], [call("Bash", command="ls")], "Looked."
    with ModelServer(*script).in_thread() as server:
        more = ("--settings", "mine.json", "--allow", "Bash", "--output-format", "stream-json")
        looked = robota("-p", "look", "--worktree", "try", *more, cwd=project, server=server)
        told = server.requests[-1].conversation.texts("tool")
    missing = '{"worktree": {"baseRef": "gone"}}'
    wrong = robota("-p", "look", "--worktree", "try", "--settings", missing, cwd=project)

    assert (looked.returncode, "deps" in told[-1]) == (0, True)
    assert (wrong.returncode, "has no commit 'gone', as worktree.baseRef says" in wrong.stderr) == (1, True)


def test_a_prompt_behind_worktree_is_no_name(project: Path) -> None:
    done = robota("-p", "--worktree", "fix the bug", cwd=project)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--worktree takes a name without blanks: put a prompt in front" in done.stderr


def test_a_worktree_needs_a_repository(project: Path) -> None:
    done = robota("-p", "go", "--worktree", cwd=project)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "needs a git repository" in done.stderr


def test_a_transcript_of_claude_code_is_resumed_by_its_id(project: Path, tmp_path: Path) -> None:
    key = "".join(letter if letter.isalnum() else "-" for letter in str(project.resolve()))
    folder = tmp_path / "config" / "projects" / key
    folder.mkdir(parents=True)
    id = "7a1e1c9a-55d1-4f6e-9a53-2f0c1f7d8e22"
    line = {
        "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-03-01T10:00:00.000Z",
        "sessionId": id, "cwd": str(project), "message": {"role": "user", "content": "what is this?"},
    }  # fmt: skip
    (folder / f"{id}.jsonl").write_text(json.dumps(line))
    with ModelServer("A test.").in_thread() as server:
        done = robota(
            "-p", "well?", f"--resume={id}", cwd=project, server=server,
            CLAUDE_CONFIG_DIR=str(tmp_path / "config"),
        )  # fmt: skip
        said = [message["content"] for message in asked(server)["messages"][1:]]

    assert (done.returncode, done.stdout) == (0, "A test.\n")
    assert said == ["what is this?", "well?"]


@pytest.mark.parametrize(
    ("option", "wrong", "said"),
    [("--tools", "Raed", "did you mean 'Read'?"), ("--provider", "antropic", "did you mean anthropic?")],
)
def test_a_name_that_nothing_has_is_a_mistake_on_the_command_line(
    project: Path, option: str, wrong: str, said: str
) -> None:
    done = robota("-p", "go", option, wrong, cwd=project)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]
