from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command import robota

from robota.cli.flags import GROUPS, UsageError, all_flags, parse
from robota.cli.help import render_help
from robota.cli.options import Options, read_options


def read(*arguments: str, **variables: str) -> Options:
    return read_options(parse(list(arguments)), variables)


def wrong(*arguments: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(*arguments)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_a_value_is_the_next_argument_whatever_it_looks_like() -> None:
    options = read(
        "--system-prompt", "-terse", "--append-system-prompt", "---\ntitle: x", "--model", "--fast"
    )

    assert options.system_prompt == "-terse"
    assert options.append_system_prompt == "---\ntitle: x"
    assert options.model == "--fast"


def test_a_value_may_stand_behind_an_equals_sign_and_have_others() -> None:
    assert read("--resume=a=b").resume == "a=b"
    assert read("-rabc").resume == "abc"
    assert read("-r=abc").resume == "abc"


def test_an_empty_system_prompt_is_none_at_all_and_no_option_is_robotas_own() -> None:
    assert read("--system-prompt", "").system_prompt == ""
    assert read().system_prompt is None


def test_a_value_that_may_be_missing_is_not_an_option() -> None:
    options = read("-r", "--name", "x")

    assert options.resume == ""
    assert options.name == "x"
    assert read("-r").resume == ""


def test_letters_may_stand_together() -> None:
    options = read("-pc")

    assert options.print_mode
    assert options.continue_last


def test_behind_two_dashes_and_with_blanks_there_are_words() -> None:
    assert parse(["-p", "--", "--model"]).words == ["--model"]
    assert parse(["- a list\n- of things"]).words == ["- a list\n- of things"]
    assert parse(["-"]).words == ["-"]


def test_no_option_is_known_by_its_beginning() -> None:
    assert "There is no option --perm;" in wrong("--perm", "plan")
    assert "did you mean --permission-mode?" in wrong("--permission-mod", "plan")


def test_rules_of_lists_are_split_outside_parentheses() -> None:
    options = read(
        "--allowedTools", "Bash(git log *),Read Grep,mcp__x__y", "--allow", "Write", "--disallowedTools",
        "Bash(rm -rf *)",
    )  # fmt: skip

    assert options.allow == ("Write", "Bash(git log *)", "Read", "Grep", "mcp__x__y")
    assert options.deny == ("Bash(rm -rf *)",)


def test_tools_may_be_none_some_or_all() -> None:
    assert read("--tools", "").tools == ()
    assert read("--tools", "Read,Grep").tools == ("Read", "Grep")
    assert read("--tools", "default").tools is None


def test_setting_sources_may_be_none() -> None:
    assert read("--setting-sources=").setting_sources == ()
    assert read("--setting-sources=user,project").setting_sources == ("user", "project")
    assert read("--bare").setting_sources == ()
    assert read().setting_sources is None


def test_numbers_are_read_as_programs_write_them() -> None:
    options = read("--max-budget-usd", "1e-07", "--max-turns", "3", "--context-window", "8000")

    assert (options.max_budget_usd, options.max_turns, options.context_window) == (1e-07, 3, 8000)


def test_a_name_has_one_line() -> None:
    assert (read("--name", " the\n pears ").name, read("-p", "hi").name) == ("the pears", None)


def test_the_environment_counts_less_than_the_command_line() -> None:
    options = read("--model", "mine", ROBOTA_MODEL="other", ROBOTA_BASE_URL="http://localhost:1/v1")

    assert (options.model, options.base_url) == ("mine", "http://localhost:1/v1")
    assert options.typed == {"model"}


def test_what_the_client_of_the_control_protocol_passes_is_understood() -> None:
    options = read(
        "--output-format", "stream-json", "--verbose", "--system-prompt", "", "--tools", "default",
        "--allowedTools", "Bash(git *),Skill(name)", "--max-turns", "5", "--permission-prompt-tool", "stdio",
        "--permission-mode", "acceptEdits", "--resume=0b7e1c9a-55d1-4f6e-9a53-2f0c1f7d8e11",
        "--settings", '{"sandbox": {"enabled": true}}', "--add-dir", "/tmp", "--add-dir", "/",
        "--mcp-config", '{"mcpServers": {}}', "--include-partial-messages", "--fork-session",
        "--setting-sources=", "--replay-user-messages", "--effort", "high", "--input-format", "stream-json",
    )  # fmt: skip

    assert options.is_driven
    assert options.add_dirs == ("/tmp", "/")
    assert options.resume == "0b7e1c9a-55d1-4f6e-9a53-2f0c1f7d8e11"
    assert options.fork
    assert options.settings == '{"sandbox": {"enabled": true}}'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--effort", "lots"), "one of minimal, low, medium, high, xhigh, max, not 'lots'"),
        (("-p", "--output-format", "yaml"), "one of text, json, stream-json, not 'yaml'"),
        (("--max-turns", "many"), "a whole number of at least 0, not 'many'"),
        (("--max-budget-usd", "nan"), "a number of at least 0, such as 2.50, not 'nan'"),
        (("--context-window", "10"), "at least 1000"),
        (("--session-id", "mine"), "takes a UUID"),
        (("--model",), "--model needs a value: --model NAME"),
        (("--model", ""), "--model needs a value that is not empty"),
        (("--name", " "), "--name needs a value that is not empty"),
        (("--add-dir", "/nowhere"), "--add-dir /nowhere is no directory"),
        (("--settings", "nowhere.json"), "There is no settings file"),
        (("--settings", "[]"), "a list and not an object of settings (line 1). Settings are an object"),
        (("--settings", '"x"'), "Settings are an object, such as {"),
        (("--print=yes",), "--print takes no value"),
        (("-x",), "There is no option -x"),
        (("-v",), "There is no option -v; did you mean -V?"),
        (("-m", "some-model"), "did you mean --model?"),
        (("-mgpt", "hi"), "did you mean --model?"),
        (("--full-auto",), "did you mean --permission-mode acceptEdits?"),
        (("-C", "/tmp"), "did you mean cd DIR, and robota there?"),
        (("-c", "-r", "a"), "leave one of them out"),
        (("-p", "-r"), "needs a terminal"),
        (("--fork-session",), "add -c or -r"),
        (("-c", "--no-session-persistence"), "leave one of the two out"),
        (("--dry-run", "--permission-mode", "acceptEdits"), "leave one out"),
        (("--output-format", "json"), "is for -p"),
        (("--include-partial-messages",), "needs --output-format stream-json"),
        (("--input-format", "stream-json"), "goes with --output-format stream-json"),
        (("--permission-prompt-tool", "stdio"), "needs --input-format stream-json"),
        (("--permission-prompt-tool", "approve"), "takes stdio or a tool of an MCP server"),
        (("--permission-prompt-tool", "mcp__x__y"), "--permission-prompt-tool is for -p"),
        (("-p", "--json-schema", "{"), "--json-schema is not JSON"),
        (("-p", "--json-schema", '{"type": "nonsense"}'), "is not a JSON schema"),
        (("-p", "--json-schema", "[]"), "takes a JSON object"),
        (("-p", "--json-schema", '{"$ref": "#/$defs/cat"}'), "Pointer '/$defs/cat' does not exist"),
        (("-p", "--json-schema", '{"pattern": "["}'), "is not a JSON schema"),
        (("-p", "--json-schema", '{"$schema": "http://127.0.0.1:1/s"}'), "Unknown meta-schema"),
        (("--agents", '{"a": {}}'), "description and prompt, which 'a' is not"),
        (("--agents", "missing.json"), "cannot read missing.json: No such file"),
        (("--setting-sources", "team"), "some of user, project, local, not 'team'"),
        (("--system-prompt", "a", "--system-prompt-file", "b"), "leave one of them out"),
        (("--mcp-config", '{"mcpServers": {"calc": 1}}'), '{"mcpServers": {"name": {"command":'),
        (("--plugin-dir", "x"), "--plugin-dir x is no directory"),
        (("--dangerously-skip-permissions", "--permission-mode", "plan"), "leave one out"),
        (("--yes",), "the question of --reset"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_would_be_right(arguments: tuple[str, ...], words: str) -> None:
    assert words in wrong(*arguments)


def test_every_option_has_one_meaning_and_reaches_its_place() -> None:
    names = [name for flag in all_flags() for name in flag.names]
    assert len(names) == len(set(names))
    elsewhere = {
        "allow_list", "append_system_prompt_file", "bare", "bypass", "deny_list", "dry_run", "help",
        "mcp_config", "system_prompt_file", "version",
    }  # fmt: skip
    assert {flag.key for flag in all_flags()} - elsewhere <= set(Options.__struct_fields__)


@pytest.mark.parametrize("width", [1, 68, 80, 100, 300])
def test_help_names_every_option_in_lines_that_fit(width: int) -> None:
    text = render_help(max(width, 68))

    assert all(name in text for _, flags in GROUPS for flag in flags for name in flag.names)
    assert max(map(len, text.splitlines()[5:])) <= min(max(width, 68), 100)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("--nonsense",)])
def test_an_answer_that_needs_nothing_loads_nothing(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "robota", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}

    assert "robota._version" in loaded
    assert loaded.isdisjoint(("asyncio", "click", "inspect", "msgspec", "prompt_toolkit", "rich"))


def test_help_is_the_same_however_it_is_asked_for(tmp_path: Path) -> None:
    alone, among = robota("--help", cwd=tmp_path), robota("--verbose", "-h", cwd=tmp_path)

    assert alone.stdout == among.stdout == f"{render_help()}\n"
    assert alone.stdout.isascii()
    assert (alone.returncode, among.returncode) == (0, 0)
