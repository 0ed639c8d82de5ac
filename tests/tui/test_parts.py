"""The parts of the interface that need no terminal."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import subprocess
import tracemalloc
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from robota.core.messages import ImagePart, TextPart
from robota.core.questions import ChoiceQuestion, FormQuestion, PermissionQuestion, QuestionOption
from robota.sdk import BuiltinCommandSource, CommandRegistry
from robota.sdk.fuzzy import find, score
from robota.sdk.interactive import InteractiveSession
from robota.sdk.project_files import ProjectFiles
from robota.sdk.view.model import Status
from robota.testing import ScriptedProvider
from robota.tui import status_script
from robota.tui.asking import (
    choice_answer,
    choice_dialog,
    field_dialog,
    permission_dialog,
    permission_lines,
)
from robota.tui.capture import Capture
from robota.tui.cells import count_cells
from robota.tui.complete import CommandCompleter, FileCompleter
from robota.tui.dialog_rows import dialog_rows
from robota.tui.dialogs import Dialog, Dialogs, Line, Option
from robota.tui.history import history_path, keep_prompt, load_prompts
from robota.tui.images import Images, dropped_image
from robota.tui.keys import name_keys
from robota.tui.live import Region
from robota.tui.memory import YOUNG, keep_what_is_loaded
from robota.tui.paste import Pastes
from robota.tui.pickers import list_dialog
from robota.tui.preferences import read_keys
from robota.tui.signs import copied, notification, title
from robota.tui.status import status_row, styled_row
from robota.tui.status_script import describe, run_script
from robota.tui.words import load_words

WORDS = load_words("en")
pytestmark = pytest.mark.anyio


async def test_a_dialog_that_nobody_opened_takes_no_key_at_first() -> None:
    armed = asyncio.Event()
    dialogs = Dialogs(lambda: armed.set() if dialogs.armed else None)
    asking = asyncio.ensure_future(
        dialogs.ask(Dialog([Line("?")], [Option(label="Yes", key="y", value=True)]))
    )
    await asyncio.sleep(0)
    assert not dialogs.armed
    dialogs.key_pressed()
    assert not dialogs.armed
    await armed.wait()
    assert dialogs.current is not None
    dialogs.current.type("y")

    assert await asking is True
    assert dialogs.current is None


async def test_a_second_question_waits_for_the_first_and_is_not_armed_by_it() -> None:
    armed = asyncio.Event()
    dialogs = Dialogs(lambda: armed.set() if dialogs.armed else None)
    first = Dialog([Line("1")], [Option(label="Yes", key="y", value=1)])
    second = Dialog([Line("2")], [Option(label="Yes", key="y", value=2)])
    answers = [asyncio.ensure_future(dialogs.ask(first)), asyncio.ensure_future(dialogs.ask(second))]
    await armed.wait()
    assert dialogs.current is first
    first.choose()
    assert await answers[0] == 1
    assert dialogs.current is second
    assert not dialogs.armed
    answers[1].cancel()
    await asyncio.gather(*answers, return_exceptions=True)
    assert dialogs.current is None


async def test_the_marked_answer_about_a_call_is_no() -> None:
    question = PermissionQuestion(tool_name="Bash", tool_input={"command": "ls"}, cwd="/", rule="Bash(ls)")
    dialog = permission_dialog(question, WORDS, 12)
    dialog.choose()
    answer = await dialog.answer

    assert not answer.allow
    assert [option.key for option in dialog.options] == ["y", "a", "p", "e", "n d", "w"]


@pytest.mark.parametrize(
    ("reason", "count"), [("No rule allows this part: tail -3.", 1), ("It asks about rm.", 1), ("", 1)]
)
def test_the_part_that_made_a_command_ask_is_named_once(reason: str, count: int) -> None:
    question = PermissionQuestion(
        tool_name="Bash", tool_input={"command": "ls | tail -3"}, cwd="/", part="tail -3", reason=reason
    )
    rows = [line.text for line in permission_lines(question, WORDS, 12)]

    assert sum("tail -3" in row for row in rows) == 1 + count, "in the command, and as the part"


@pytest.mark.parametrize("room", [4, 6, 10])
async def test_a_question_with_little_room_shows_what_it_is_about_and_the_marked_answer(room: int) -> None:
    question = PermissionQuestion(
        tool_name="Bash", tool_input={"command": "ls"}, cwd="/", rule="Bash(ls)", reason="No rule decided."
    )
    dialog = permission_dialog(question, WORDS, 12)
    rows = ["".join(text for _, text, *_ in row) for row in dialog_rows(dialog, WORDS, 40, room, armed=True)]

    assert len(rows) <= room
    assert "  | ls" in rows
    assert "› n  No" in rows


async def test_answers_that_are_out_of_sight_are_counted() -> None:
    question = PermissionQuestion(tool_name="Bash", tool_input={"command": "ls"}, cwd="/", rule="Bash(ls)")
    dialog = permission_dialog(question, WORDS, 12)
    last = dialog_rows(dialog, WORDS, 60, 6, armed=True)[-1]

    assert "".join(text for _, text, *_ in last).startswith("↑3 ↓1 Up, Down and Enter")


async def test_all_answers_are_in_sight_on_a_small_screen() -> None:
    command = "cat /etc/passwd | sort > out.txt && rm -rf build"
    question = PermissionQuestion(
        tool_name="Bash",
        tool_input={"command": command},
        cwd="/",
        rule="Bash(cat)",
        reason="No rule decided.",
    )
    dialog = permission_dialog(question, WORDS, 12)
    rows = ["".join(text for _, text, *_ in row) for row in dialog_rows(dialog, WORDS, 19, 12, armed=True)]

    assert len(rows) == 12
    assert [row[2] for row in rows[-7:-1]] == ["y", "a", "p", "e", "n", "w"]


async def test_an_answer_that_is_written_says_how_it_is_given_and_left() -> None:
    question = PermissionQuestion(tool_name="Bash", tool_input={"command": "ls"}, cwd="/")
    dialog = permission_dialog(question, WORDS, 12)
    dialog.type("e")
    rows = dialog_rows(dialog, WORDS, 80, 12, armed=True)

    assert "".join(text for _, text, *_ in rows[-1]) == (
        "Change the command first  Enter answers; Esc goes back"
    )


async def test_a_list_says_when_nothing_fits() -> None:
    dialog = list_dialog("Which model?", [Option(label="small"), Option(label="large")])
    for letter in "zz":
        dialog.type(letter)
    rows = ["".join(text for _, text, *_ in row) for row in dialog_rows(dialog, WORDS, 40, 12, armed=True)]

    assert rows[1:3] == ["/zz", "  (no match)"]


async def test_values_in_a_question_are_written_as_the_model_wrote_them() -> None:
    given = {"command": "make", "run_in_background": True, "env": {"A": None}}
    lines = permission_lines(PermissionQuestion(tool_name="Bash", tool_input=given, cwd="/"), WORDS, 12)

    assert [line.text for line in lines[2:4]] == ["run_in_background: true", 'env: {"A": null}']


def test_keys_are_named_as_on_a_keyboard() -> None:
    names = ("enter", "c-j", "escape,enter", "s-tab", "c-x,c-s", "f2", "escape")
    assert [name_keys(each) for each in names] == [
        "Enter", "Ctrl-J", "Alt-Enter", "Shift-Tab", "Ctrl-X Ctrl-S", "F2", "Esc",
    ]  # fmt: skip


async def test_the_rule_that_an_answer_would_add_is_shown_whole() -> None:
    rule = "Bash(git push --force origin master), Bash(rm -rf build/cache/of/everything)"
    question = PermissionQuestion(
        tool_name="Bash", tool_input={"command": "x"}, cwd="/", rule=rule, reason=""
    )
    dialog = permission_dialog(question, WORDS, 12)
    rows = ["".join(text for _, text, *_ in row) for row in dialog_rows(dialog, WORDS, 60, 30, armed=True)]

    assert " ".join(" ".join(rows).split()).count(rule) == 2
    assert not any(row.endswith("…") for row in rows)


async def test_several_options_can_be_chosen() -> None:
    question = ChoiceQuestion(
        question="Which?",
        options=(QuestionOption("a"), QuestionOption("b"), QuestionOption("c")),
        multi_select=True,
    )
    dialog = choice_dialog(question, WORDS)
    dialog.type(" ")
    dialog.move(2)
    dialog.type(" ")
    dialog.choose()

    assert choice_answer(await dialog.answer).chosen == ("a", "c")


async def test_several_options_are_chosen_by_number_and_own_words_go_with_them() -> None:
    options = QuestionOption("a"), QuestionOption("b")
    question = ChoiceQuestion(question="Which?", options=options, multi_select=True, allow_free_text=True)
    dialog = choice_dialog(question, WORDS)
    dialog.type("2")
    dialog.type("1")
    dialog.type("2")
    dialog.move(1)
    dialog.type(" ")
    assert dialog.entry is not None
    dialog.write("and c")

    assert choice_answer(await dialog.answer).chosen == ("a", "and c")


async def test_a_long_question_is_shown_whole_and_the_marked_answer_with_what_is_said_about_it() -> None:
    words = " ".join(f"word{number}" for number in range(20))
    options = QuestionOption("하나", "설명이 아주 긴 답입니다 " * 4), QuestionOption("둘", words)
    dialog = choice_dialog(ChoiceQuestion(question=words, options=options), WORDS)
    for at in range(2):
        dialog.at = at
        rows = dialog_rows(dialog, WORDS, 50, 20, armed=True)
        shown = ["".join(text for _, text, *_ in row) for row in rows]

        assert " ".join(shown).count("word19") == 1 + at
        assert all(count_cells(row) <= 50 for row in shown)
        assert len(shown) <= 20


async def test_closing_a_question_is_no_answer_to_it() -> None:
    dialog = choice_dialog(ChoiceQuestion(question="Which?", options=(QuestionOption("a"),)), WORDS)
    dialog.close()

    assert choice_answer(await dialog.answer).dismissed


async def test_a_field_of_a_form_is_of_its_type() -> None:
    form = FormQuestion(message="Fill in", schema={})
    number = field_dialog(form, "count", {"type": "integer"}, WORDS)
    number.choose()
    number.write("42")
    flag = field_dialog(form, "flag", {"type": "boolean"}, WORDS)
    flag.choose()

    assert await number.answer == 42
    assert await flag.answer is True


async def test_a_list_is_searched_by_words() -> None:
    dialog = Dialog(
        [], [Option(label="first talk", value=1), Option(label="second talk", value=2)], filtered=True
    )
    for letter in "talk sec":
        dialog.type(letter)
    assert [each.value for each in dialog.shown] == [2]
    dialog.erase()
    dialog.choose()
    assert await dialog.answer == 2


def test_better_names_come_first() -> None:
    names = ["compact", "permissions", "mode", "model", "cost", "commit"]

    assert find("mo", names, str, 2) == ["mode", "model"]
    assert find("prms", names, str, 5) == ["permissions"]
    assert score("xyz", "mode") is None


def test_commands_and_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "a b.py").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "deep.py").touch()
    (tmp_path / "bad\x1b[2J.py").touch()
    commands = CommandCompleter(CommandRegistry(BuiltinCommandSource()))
    files = FileCompleter(ProjectFiles(str(tmp_path)))

    def offered(completer: CommandCompleter | FileCompleter, text: str) -> list[str]:
        return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]

    assert "/rename" in offered(commands, "/rena")
    assert offered(commands, "not /rena") == []
    assert "acceptEdits" in offered(commands, "/mode acc")
    assert offered(files, "see @deep") == ["@src/deep.py"]
    assert offered(files, "see @a b") == []
    assert '@"a b.py"' in offered(files, "@a")
    assert not any("\x1b" in each for each in offered(files, "@"))
    assert offered(files, "me@deep") == []


def test_files_that_git_ignores_are_not_offered(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("secret.txt\n")
    (tmp_path / "secret.txt").touch()
    (tmp_path / "open.txt").touch()

    assert sorted(ProjectFiles(str(tmp_path)).paths()) == [".gitignore", "open.txt"]


def test_prompts_are_kept_whole_and_only_for_their_project(tmp_path: Path) -> None:
    path = history_path(str(tmp_path), "/work/one")
    for prompt in ("first\nwith two lines", "x" * 30_000, "last"):
        keep_prompt(path, prompt, InteractiveSession(cwd=tmp_path, provider=ScriptedProvider("Hello.")))
    with open(path, "ab") as file:
        file.write(b"broken {\n")

    assert load_prompts(path) == ["first\nwith two lines", "last"]
    assert history_path(str(tmp_path), "/other/one") != path
    assert os.stat(path).st_mode & 0o077 == 0


async def test_prompts_are_kept_without_the_secrets_in_them(tmp_path: Path) -> None:
    path, shaped = history_path(str(tmp_path), "/work"), "sk-ant-api03-" + "Ab1-" * 24
    provider = ScriptedProvider("Hello.")
    async with InteractiveSession(cwd=tmp_path, provider=provider, secrets=("zq9-Fh27xKpLw04m",)) as session:
        await session.ready()
        keep_prompt(path, f"log in with {shaped} or zq9-Fh27xKpLw04m", session)

    assert load_prompts(path) == ["log in with [REDACTED] or [REDACTED]"]


async def test_the_home_is_private_whatever_is_made_first_in_it(tmp_path: Path) -> None:
    async with InteractiveSession(cwd=tmp_path, provider=ScriptedProvider()) as session:
        keep_prompt(str(tmp_path / "one" / "prompts" / "p.jsonl"), "hello", session)
    with Capture(str(tmp_path / "two" / "logs" / "terminal.log"), lambda _: None):
        pass

    assert [os.stat(tmp_path / name).st_mode & 0o777 for name in ("one", "two")] == [0o700, 0o700]


def test_long_pastes_are_folded_and_unfolded() -> None:
    pastes = Pastes(WORDS)
    long, wide = "line\n" * 20, "x" * 1001

    assert pastes.fold("short\r\ntext") == "short\ntext"
    marks = pastes.fold(long), pastes.fold(wide)
    assert marks == ("[Pasted text #1 +21 lines]", "[Pasted text #2 +1 line]")
    assert pastes.unfold(f"a {marks[1]} b {marks[0]}") == f"a {wide} b {long}"
    assert pastes.fold(long) == "[Pasted text #3 +21 lines]"


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def test_an_image_goes_along_while_its_mark_is_there(tmp_path: Path) -> None:
    path = tmp_path / "my picture.png"
    path.write_bytes(base64.b64decode(PNG))
    images = Images()
    found = dropped_image(str(path).replace(" ", "\\ "))
    assert found == ImagePart(PNG, "image/png")
    assert dropped_image(path.as_uri()) == found
    assert dropped_image(f"look at {path}") is None
    assert dropped_image("'unclosed") is None
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "endless.png").symlink_to("/dev/zero")
    assert dropped_image(str(tmp_path / "pipe.png")) is None
    assert dropped_image(str(tmp_path / "endless.png")) is None
    mark = images.add(found)

    assert images.attach("no mark") == "no mark"
    assert images.attach(f"see {mark}") == (TextPart(f"see {mark}"), found)


@pytest.mark.parametrize("data", [b"", b"words", base64.b64decode(PNG)[:40]])
def test_a_damaged_image_stays_a_path(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(data)
    assert dropped_image(str(path)) is None


def test_keys_of_the_settings_count_if_there_are_such() -> None:
    given = {"mode": "f2", "steer": ["c-x,c-s", "f4"], "unknown": "f3", "send": "no-such-key"}

    assert read_keys(given) == {"mode": ("f2",), "steer": ("c-x,c-s", "f4")}


def test_what_is_loaded_is_not_looked_at_again_until_the_interface_ends() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    undo = keep_what_is_loaded()
    try:
        kept, young = gc.get_freeze_count(), gc.get_threshold()[0]
    finally:
        undo()

    assert kept > frozen
    assert young == YOUNG
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


def test_what_the_terminal_is_told_holds_no_control_of_others() -> None:
    assert title("a\x1b]0;evil\x07b").count("\x07") == 1
    assert notification("osc9", "a\x07b").count("\x07") == 1
    assert notification("off", "x") == ""
    assert copied("x" * 200_000) is None


def test_the_status_line_drops_what_does_not_fit() -> None:
    status = Status(
        model="model-x", mode="plan", max_tokens=1000, used_tokens=950, context_percent=95, branch="main"
    )
    whole = status_row(status, 80, WORDS)

    assert "".join(text for _, text, *_ in whole) == "Mode: plan · model-x · Context: 95% (950/1K) · main"
    assert ("class:context.hot", "Context: 95% (950/1K)") in whole
    assert len("".join(text for _, text, *_ in status_row(status, 20, WORDS))) <= 20


def test_the_status_line_is_measured_in_cells() -> None:
    status = Status(model="모델", branch="가지", name="아주 긴 이름을 가진 세션입니다")
    row = "".join(text for _, text, *_ in status_row(status, 30, WORDS))
    scripted = "".join(text for _, text, *_ in styled_row("상태 \x1b[31m줄은 스크립트가 정합니다", 20))

    assert row.endswith("…")
    assert count_cells(row) in (29, 30)
    assert count_cells(scripted) in (19, 20)


async def test_a_script_is_told_and_its_failure_is_no_line() -> None:
    about = describe(Status(model="m", used_tokens=250_000, session_id="s"))

    assert json.loads((await run_script("cat", about))[0])["exceeds_200k_tokens"] is True
    assert await run_script("exit 3", about) == ()
    assert await run_script("printf '1\\n2\\n3\\n4\\n'", about) == ("1", "2", "3")


async def test_a_script_that_never_stops_printing_costs_no_memory_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_script, "SCRIPT_SECONDS", 0.3)
    mark = f"87120.{os.getpid()}"
    tracemalloc.start()
    try:
        assert await run_script(f"sleep {mark} & yes", describe(Status())) == ()
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert mark not in (await anyio.run_process(["ps", "-ef"])).stdout.decode()


async def test_a_script_gets_no_key_but_those_that_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "of-the-user")
    command, about = 'echo "[$SHOP_API_KEY]"', describe(Status())

    assert await run_script(command, about) == ("[]",)
    assert await run_script(command, about, ("SHOP_API_KEY",)) == ("[of-the-user]",)


@pytest.mark.parametrize(
    "hidden", ["\x01\x1b]0;title\x07\x02", "\x1b]0;title\x07", "\x1b[2J", "\x9b2J", "\x07", "\b"]
)
def test_of_what_a_script_prints_only_colours_reach_the_terminal(hidden: str) -> None:
    row = styled_row(f"\x1b[31ma{hidden}b\x1b[0m \u202ec", 40)

    assert "".join(text for _, text, *_ in row) == "ab \\u202ec"
    assert {style for style, *_ in row} == {"ansired", ""}


async def test_typing_leaves_nothing_behind_in_the_layout() -> None:
    dialogs = Dialogs(lambda: None)
    region = Region(Buffer(), Buffer(), dialogs, WORDS)
    before = len(region.layout._stack)
    for letter in "words":
        region.input.insert_text(letter)
        region.focus()
    assert len(region.layout._stack) == before

    region.input.reset()
    answer = asyncio.create_task(dialogs.ask(Dialog([], [Option(label="a")], guarded=False)))
    await asyncio.sleep(0)
    region.focus()
    assert region.layout.has_focus(region.dialog_keys)
    answer.cancel()
