"""Rules, questions and answers. Hooks have a file of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sessions.enforced_agent import ConfiguredHooks, EnforcedAgent, Person, Strict, hook
from tests.support.session_options import enforcer_ports

from robota.core.errors import ConfigurationError
from robota.core.events import ToolEnded
from robota.core.hooks import HookOutcome
from robota.core.messages import JsonObject, ToolCall
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall, invoke_tool
from robota.sessions.permissions.judgement import Judgement
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer, PermissionRules
from robota.testing import call
from robota.tools.builtins.bash import bash_tool
from robota.tools.function_tool import tool
from robota.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.anyio

REFUSED = "Error: Permission denied. The user did not approve this action."


@tool
async def mcp__notes__add(text: str) -> str:
    """Add a note."""
    return f"added {text}"


@tool
async def refresh() -> str:
    """Takes no arguments."""
    return "fresh"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "project"
    path.mkdir()
    path.joinpath("notes.txt").write_text("milk\n")
    return path


def write(name: str = "made.txt", content: str = "x", id: str | None = None) -> ToolCall:
    return call("Write", id or f"write_{name}", file_path=name, content=content)


# --- rules and modes -------------------------------------------------------------------------------


async def test_what_only_looks_runs_without_a_question(project: Path) -> None:
    person = Person(False)
    [content] = await EnforcedAgent(project, handler=person).run(call("Read", file_path="notes.txt"))
    assert "milk" in content
    assert person.asked == []


async def test_without_a_handler_a_question_is_a_denial(project: Path) -> None:
    agent = EnforcedAgent(project)
    [content] = await agent.run(write())
    assert content.startswith("Error: Permission denied. Nobody can be asked here;")
    assert not (project / "made.txt").exists()
    assert (agent.records[0]["decision"], agent.records[0]["by"]) == ("deny", "nobody")


@pytest.mark.parametrize(
    ("rules", "outcome", "by"),
    [
        (PermissionRules(mode="plan"), "denied", "mode"),
        (PermissionRules(mode="acceptEdits"), "success", "mode"),
        (PermissionRules(mode="bypassPermissions"), "success", "mode"),
        (PermissionRules(allow=("Write(made.*)",)), "success", "rule"),
        (PermissionRules(mode="bypassPermissions", deny=("Write(made.*)",)), "denied", "rule"),
        (PermissionRules(mode="bypassPermissions", ask=("Write(made.*)",)), "denied", "nobody"),
    ],
)
async def test_rules_and_mode_decide(project: Path, rules: PermissionRules, outcome: str, by: str) -> None:
    agent = EnforcedAgent(project, rules=rules)
    await agent.run(write())
    assert [event.outcome for event in agent.ended] == [outcome]
    assert [record["by"] for record in agent.records] == [by]
    assert (project / "made.txt").exists() == (outcome == "success")


async def test_the_mode_can_be_changed_and_is_checked(project: Path) -> None:
    agent = EnforcedAgent(project)
    agent.enforcer.rules.replace(PermissionRules(mode="acceptEdits"))
    await agent.run(write())
    assert (project / "made.txt").exists()
    with pytest.raises(ConfigurationError, match="no permission mode 'yolo'; there are acceptEdits, "):
        agent.enforcer.rules.replace(PermissionRules(mode="yolo"))  # type: ignore[arg-type]
    assert agent.enforcer.rules.rules == PermissionRules(mode="acceptEdits")
    with pytest.raises(ConfigurationError):
        PermissionEnforcer(PermissionRules(mode="yolo"), cwd="/")  # type: ignore[arg-type]


async def test_a_call_without_a_directory_runs_where_it_was_judged(project: Path) -> None:
    enforcer = PermissionEnforcer(PermissionRules(allow=(f"Write({project}/made.txt)",)), cwd=str(project))
    agent = EnforcedAgent(project)
    prepared = PreparedCall(
        index=0,
        call_id="c",
        request=write(),
        tool=agent.tools[1],
        arguments={"file_path": "made.txt", "content": "x"},
    )
    result = await enforcer.run_tool(prepared, ToolContext())
    assert result.ok
    assert (project / "made.txt").exists()


# --- answers ---------------------------------------------------------------------------------------


async def test_the_question_shows_what_would_happen(project: Path) -> None:
    person = Person(True)
    agent = EnforcedAgent(project, handler=person, agent_id="helper")
    await agent.run(call("Edit", file_path="notes.txt", old_string="milk", new_string="oat milk"))
    [request] = person.asked
    path = project / "notes.txt"
    assert request == PermissionQuestion(
        id=request.call_id,
        tool_name="Edit",
        tool_input={"file_path": "notes.txt", "old_string": "milk", "new_string": "oat milk"},
        cwd=str(project),
        reason="No rule covers it, and the mode default asks before changing files.",
        part="notes.txt",
        rule="Edit(notes.txt)",
        diff=f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-milk\n+oat milk\n",
        agent_id="helper",
        call_id=str(agent.records[0]["callId"]),
    )
    assert path.read_text() == "oat milk\n"


@pytest.mark.parametrize(
    ("answer", "ran", "remembered", "saved"),
    [
        (True, True, (), []),
        (False, False, (), []),
        ("allow-session", True, ("Write(made.txt)",), []),
        ("allow-project", True, ("Write(made.txt)",), ["Write(made.txt)"]),
        (PermissionAnswer(allow=True), True, (), []),
        (PermissionAnswer(allow=True, scope="session"), True, ("Write(made.txt)",), []),
        (PermissionAnswer(allow=False, scope="session"), False, (), []),
        (1, False, (), []),
        ("yes", False, (), []),
        (None, False, (), []),
        (ToolResult(), False, (), []),
    ],
)
async def test_answers(
    project: Path, answer: object, ran: bool, remembered: tuple[str, ...], saved: list[str]
) -> None:
    kept: list[str] = []
    agent = EnforcedAgent(project, handler=Person(answer), save_rule=kept.append)
    [content] = await agent.run(write())
    assert (project / "made.txt").exists() == ran
    assert content.startswith("Written" if ran else "Error: Permission denied.")
    assert agent.enforcer.rules.granted == remembered
    assert kept == saved


async def test_a_no_is_told_in_the_words_of_the_specification(project: Path) -> None:
    agent = EnforcedAgent(project, handler=Person(False))
    assert await agent.run(write()) == [REFUSED]
    assert agent.ended[0].error_code == "denied"


async def test_a_comment_with_a_no_reaches_the_model(project: Path) -> None:
    answer = PermissionAnswer(allow=False, message="Use the other file.")
    agent = EnforcedAgent(project, handler=Person(answer))
    assert await agent.run(write()) == ["Error: Permission denied. The user says: Use the other file."]
    assert agent.records[0]["answer"] == {"allow": False, "message": "Use the other file."}


async def test_for_this_session_means_the_narrowest_rule_and_not_the_tool(project: Path) -> None:
    person = Person("allow-session", "allow-session", False)
    agent = EnforcedAgent(project, handler=person)
    first, again, _, other = await agent.run(
        call("Bash", "a", command="echo one"),
        call("Bash", "b", command="echo one"),
        write(),
        call("Bash", "d", command="echo two"),
    )
    assert [first, again, other] == ["one", "one", REFUSED]
    assert [request.rule for request in person.asked] == [
        "Bash(echo one)",
        "Write(made.txt)",
        "Bash(echo two)",
    ]
    assert agent.enforcer.rules.granted == ("Bash(echo one)", "Write(made.txt)")
    agent.enforcer.rules.granted = ()
    assert await agent.run(call("Bash", command="echo one")) == [REFUSED]


async def test_for_this_session_means_these_arguments_of_a_tool_of_the_user(project: Path) -> None:
    person = Person("allow-session", False)
    agent = EnforcedAgent(project, handler=person, tools=[mcp__notes__add])
    asked = [call("mcp__notes__add", text, text=text) for text in ("a", "a", "b")]
    results = await agent.run(*(msgspec.structs.replace(each, id=str(n)) for n, each in enumerate(asked)))
    assert [result == REFUSED for result in results] == [False, False, True]
    assert agent.enforcer.rules.granted == ('mcp__notes__add({"text":"a"})',)


@pytest.mark.parametrize(
    ("asking", "rules"),
    [
        (call("Bash", command="$X"), PermissionRules()),
        (call("Bash", command="ls"), PermissionRules(ask=("Bash(ls)",))),
        (call("Bash", command="ls *"), PermissionRules()),
        (call("mcp__notes__add", text="a*"), PermissionRules()),
    ],
)
async def test_where_no_narrow_rule_can_be_offered_a_yes_counts_once(
    project: Path, asking: ToolCall, rules: PermissionRules
) -> None:
    person = Person("allow-project")
    kept: list[str] = []
    agent = EnforcedAgent(
        project, rules=rules, handler=person, save_rule=kept.append, tools=[mcp__notes__add]
    )
    await agent.run(asking, msgspec.structs.replace(asking, id="again"))
    assert [request.rule for request in person.asked] == [None, None]
    assert (agent.enforcer.rules.granted, kept) == ((), [])


async def test_a_tool_whose_calls_cannot_differ_may_be_allowed_by_name(project: Path) -> None:
    person = Person("allow-session")
    agent = EnforcedAgent(project, handler=person, tools=[refresh])
    assert await agent.run(call("refresh", "a"), call("refresh", "b")) == ["fresh", "fresh"]
    assert [request.rule for request in person.asked] == ["refresh"]


async def test_several_parts_are_offered_and_saved_as_one_rule_each(project: Path) -> None:
    saved: list[str] = []

    async def save(rule: str) -> None:
        saved.append(rule)

    person = Person("allow-project")
    await EnforcedAgent(project, handler=person, save_rule=save).run(call("Bash", command="echo a && true"))
    assert person.asked[0].rule == "Bash(echo a), Bash(true)"
    assert saved == ["Bash(echo a)", "Bash(true)"]


async def test_a_rule_that_cannot_be_saved_counts_for_the_session(project: Path) -> None:
    def save(rule: str) -> None:
        raise OSError("read-only file system")

    agent = EnforcedAgent(project, handler=Person("allow-project"), save_rule=save)
    [content] = await agent.run(write())
    assert content.startswith("Written")
    assert agent.enforcer.rules.granted == ("Write(made.txt)",)
    assert agent.notices == [
        "The rule Write(made.txt) counts for this session only, it could not be saved: "
        "OSError: read-only file system"
    ]


async def test_without_a_place_for_rules_the_project_is_the_session(project: Path) -> None:
    agent = EnforcedAgent(project, handler=Person("allow-project"))
    await agent.run(write())
    assert agent.enforcer.rules.granted == ("Write(made.txt)",)
    assert "there is no place to save it in" in agent.notices[0]


# --- another input ---------------------------------------------------------------------------------


async def test_a_changed_input_runs_in_the_place_of_the_first_and_is_allowed_once(project: Path) -> None:
    changed = {"file_path": "other.txt", "content": "y"}
    answer = PermissionAnswer(allow=True, scope="project", updated_input=changed)
    saved: list[str] = []
    agent = EnforcedAgent(project, handler=Person(answer), save_rule=saved.append)
    await agent.run(write())
    assert not (project / "made.txt").exists()
    assert (project / "other.txt").read_text() == "y"
    assert (agent.enforcer.rules.granted, saved) == ((), [])
    assert len(agent.records[0]["judged"]) == 3


async def test_an_input_that_came_back_unchanged_is_the_one_that_was_shown(project: Path) -> None:
    answer = PermissionAnswer(
        allow=True, scope="session", updated_input={"file_path": "made.txt", "content": "x"}
    )
    agent = EnforcedAgent(project, handler=Person(answer))
    await agent.run(write())
    assert agent.enforcer.rules.granted == ("Write(made.txt)",)


async def test_a_changed_input_may_still_be_forbidden(project: Path) -> None:
    answer = PermissionAnswer(allow=True, updated_input={"file_path": "secret.txt", "content": "y"})
    agent = EnforcedAgent(project, rules=PermissionRules(deny=("Write(secret.*)",)), handler=Person(answer))
    [content] = await agent.run(write())
    assert content.startswith("Error: Permission denied. The rule Write(secret.*) denies")
    assert not (project / "secret.txt").exists()
    assert agent.records[0]["by"] == "rule"


async def test_a_changed_input_must_fit_the_schema(project: Path) -> None:
    answers = Person(
        PermissionAnswer(allow=True, updated_input={"n": "two"}),
        PermissionAnswer(allow=True, updated_input={"n": 2}),
    )
    agent = EnforcedAgent(project, handler=answers, tools=[Strict()])
    bad, good = await agent.run(call("strict", "a", n=1), call("strict", "b", n=1))
    assert bad.startswith("Error: strict was not run: the user changed its arguments, and they do not fit:")
    assert good == "got {'n': 2}"
    assert agent.ended[0].error_code == "invalid_arguments"


async def test_nobody_can_change_the_input_behind_the_evaluation(project: Path) -> None:
    given: JsonObject = {"file_path": "agreed.txt", "content": "y"}

    async def handler(request: PermissionQuestion) -> PermissionAnswer:
        request.tool_input["file_path"] = "stolen.txt"
        return PermissionAnswer(allow=True, updated_input=given)

    def before_effects(prepared: PreparedCall) -> None:
        given["file_path"] = "stolen.txt"

    await EnforcedAgent(project, handler=handler, before_effects=before_effects).run(write())
    assert (project / "agreed.txt").exists()
    assert not (project / "stolen.txt").exists()


# --- several calls at once -------------------------------------------------------------------------


async def test_only_one_question_is_open_at_a_time(project: Path) -> None:
    open_questions = peak = 0

    async def handler(request: PermissionQuestion) -> bool:
        nonlocal open_questions, peak
        open_questions += 1
        peak = max(peak, open_questions)
        await anyio.lowlevel.checkpoint()
        open_questions -= 1
        return True

    agent = EnforcedAgent(project, handler=handler)
    await agent.run([write(f"{n}.txt") for n in range(5)])
    assert peak == 1
    assert len(list(project.glob("?.txt"))) == 5


async def test_an_answer_for_the_session_settles_the_questions_that_wait(project: Path) -> None:
    person = Person("allow-session")
    agent = EnforcedAgent(project, handler=person)
    contents = await agent.run([call("Bash", str(n), command="echo same") for n in range(4)])
    assert contents == ["same"] * 4
    assert len(person.asked) == 1
    assert [record["by"] for record in agent.records] == ["user", "rule", "rule", "rule"]


async def test_a_mode_chosen_while_a_question_is_open_settles_those_that_wait(project: Path) -> None:
    agent = EnforcedAgent(project, handler=lambda request: answer())

    async def answer() -> bool:
        agent.enforcer.rules.rules = PermissionRules(mode="plan")
        return True

    first, second = await agent.run([write("a.txt"), write("b.txt")])
    assert first.startswith("Written")
    assert second.startswith("Error: Permission denied. No rule covers it, and the mode plan forbids")


async def test_a_question_does_not_hold_up_a_call_that_needs_none(project: Path) -> None:
    read = anyio.Event()
    agent = EnforcedAgent(project, handler=lambda request: wait())

    async def wait() -> bool:
        await read.wait()
        return True

    robota = agent.start([write(), call("Read", file_path="notes.txt")])
    robota.events.on(ToolEnded, lambda event: read.set() if event.tool_name == "Read" else None)
    await robota.run("go")
    assert [event.tool_name for event in agent.ended] == ["Read", "Write"]


class Announcement:
    """A hook that takes for ever to call somebody."""

    def has(self, event: str) -> bool:
        return event == "Notification"

    async def fire(self, *args: object, **named: object) -> HookOutcome:
        await anyio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize("hooks", [None, Announcement()])
async def test_an_abort_while_a_question_is_open_ends_it(project: Path, hooks: Announcement | None) -> None:
    closed: list[str] = []
    agent = EnforcedAgent(project, handler=lambda request: hesitate(request), hooks=hooks)

    async def hesitate(request: PermissionQuestion) -> bool:
        try:
            robota.abort()
            await anyio.sleep_forever()
        finally:
            closed.append(request.tool_name)
        return True

    robota = agent.start([write("a.txt"), write("b.txt")])
    result = await robota.run("go")
    assert result.interrupted
    assert closed == ["Write"]
    assert [event.error for event in agent.ended] == ["Execution interrupted by user"] * 2
    assert [(record["decision"], record["answer"]) for record in agent.records] == [
        ("deny", {"interrupted": True})
    ] * 2
    assert not list(project.glob("?.txt"))

    agent.enforcer.rules.rules = PermissionRules(mode="acceptEdits")
    [content] = await agent.run(write("c.txt"))
    assert content.startswith("Written")


# --- outside the workspace -------------------------------------------------------------------------


class Guard:
    """Everything below `root` is the workspace; readers are let into a directory once."""

    def __init__(self, root: Path) -> None:
        self.roots = [str(root)]

    def outside(self, call: PreparedCall) -> str | None:
        path = str(call.arguments.get("file_path", self.roots[0]))
        inside = not path.startswith("/") or any(path.startswith(root) for root in self.roots)
        return None if inside else str(Path(path).parent)

    def remember(self, call: PreparedCall, directory: str) -> None:
        self.roots.append(directory)


async def test_reading_elsewhere_asks_once_per_directory(project: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    person = Person(True)
    agent = EnforcedAgent(project, handler=person, guard=Guard(project))
    one, two = await agent.run(
        [call("Read", name, file_path=str(tmp_path.resolve() / name)) for name in ("one", "two")]
    )
    assert ["one" in one, "two" in two, len(person.asked)] == [True, True, 1]
    assert person.asked[0].reason == f"{tmp_path.resolve()} is outside the working directory."
    assert agent.records[0]["judged"][-1]["by"] == "guard"


@pytest.mark.parametrize(
    ("rules", "asked"),
    [
        (PermissionRules(), 1),
        (PermissionRules(mode="plan"), 1),
        (PermissionRules(mode="bypassPermissions"), 0),
        (PermissionRules(allow=("Read(/**)",)), 0),
    ],
)
async def test_a_rule_of_the_users_own_goes_before_the_question_about_elsewhere(
    project: Path, tmp_path: Path, rules: PermissionRules, asked: int
) -> None:
    secret = tmp_path.resolve() / "secret"
    secret.write_text("hush")
    person = Person(False)
    agent = EnforcedAgent(project, rules=rules, handler=person, guard=Guard(project))
    [content] = await agent.run(call("Read", file_path=str(secret)))
    assert (len(person.asked), "hush" in content) == (asked, not asked)


# --- the sandbox -----------------------------------------------------------------------------------


class WorkingSandbox(Sandbox):
    """Says that it works; what it would confine is not the question here."""

    async def find_backend(self) -> Any:
        return ("bubblewrap", "") if self.mode == "auto" else (None, "none works here")


@pytest.mark.parametrize(
    ("mode", "wished", "rules", "arguments", "by"),
    [
        ("auto", True, PermissionRules(), {}, "sandbox"),
        ("auto", True, PermissionRules(), {"working_directory": "sub"}, "sandbox"),
        ("auto", True, PermissionRules(), {"workingDirectory": "/"}, "nobody"),
        ("auto", True, PermissionRules(), {"working_directory": ".."}, "nobody"),
        ("auto", True, PermissionRules(), {"working_directory": 1}, "nobody"),
        ("auto", False, PermissionRules(), {}, "nobody"),
        ("required", True, PermissionRules(), {}, "nobody"),
        ("auto", True, PermissionRules(ask=("Bash(true)",)), {}, "nobody"),
        ("auto", True, PermissionRules(deny=("Bash(true)",)), {}, "rule"),
        ("auto", True, PermissionRules(mode="plan"), {}, "mode"),
    ],
)
async def test_a_confined_command_needs_no_approval_if_the_user_wishes_so(
    project: Path, mode: Any, wished: bool, rules: PermissionRules, arguments: JsonObject, by: str
) -> None:
    (project / "sub").mkdir()
    bash = bash_tool(sandbox=WorkingSandbox(mode), auto_allow_bash_if_sandboxed=wished)

    async def run_nothing(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        return ToolResult(content="ran")

    agent = EnforcedAgent(project, rules=rules, run_tool=run_nothing)
    agent.tools = (bash,)
    [content] = await agent.run(call("Bash", command="true", **arguments))
    assert [record["by"] for record in agent.records] == [by]
    assert (content == "ran") == (by == "sandbox")


LEAVING = {"dangerouslyDisableSandbox": True}


@pytest.mark.parametrize(
    ("mode", "rules", "arguments", "asked", "by"),
    [
        ("auto", PermissionRules(allow=("Bash(true)",)), LEAVING, True, "user"),
        ("auto", PermissionRules(mode="bypassPermissions"), LEAVING, True, "user"),
        ("auto", PermissionRules(mode="acceptEdits"), LEAVING, True, "user"),
        ("auto", PermissionRules(ask=("Bash",)), LEAVING, True, "user"),
        ("auto", PermissionRules(deny=("Bash(true)",)), LEAVING, False, "rule"),
        ("auto", PermissionRules(mode="plan", allow=("Bash(true)",)), LEAVING, False, "sandbox"),
        ("auto", PermissionRules(allow=("Bash(true)",)), {"dangerouslyDisableSandbox": False}, False, "rule"),
        ("required", PermissionRules(allow=("Bash(true)",)), {}, False, "rule"),
    ],
)
async def test_leaving_the_sandbox_is_a_question_whatever_else_allows(
    project: Path, mode: Any, rules: PermissionRules, arguments: JsonObject, asked: bool, by: str
) -> None:
    bash = bash_tool(sandbox=WorkingSandbox(mode), auto_allow_bash_if_sandboxed=True)

    async def run_nothing(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        return ToolResult(content="ran")

    person = Person(True)
    agent = EnforcedAgent(project, rules=rules, run_tool=run_nothing, handler=person)
    agent.tools = (bash,)
    [content] = await agent.run(call("Bash", command="true", **arguments))
    assert [record["by"] for record in agent.records] == [by]
    assert len(person.asked) == int(asked)
    assert all("outside the sandbox" in question.reason and not question.rule for question in person.asked)
    assert (content == "ran") == (by == "user" or (by == "rule" and not rules.deny))


async def test_no_hook_answers_for_the_way_out_of_the_sandbox(project: Path) -> None:
    said = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}'
    hooks = ConfiguredHooks({"PreToolUse": [hook(f"echo '{said}'")]}, project)
    person = Person(False)
    agent = EnforcedAgent(project, hooks=hooks, handler=person)
    agent.tools = (bash_tool(sandbox=WorkingSandbox("auto")),)
    [content] = await agent.run(call("Bash", command="touch ran", **LEAVING))
    assert (content, len(person.asked)) == (REFUSED, 1)
    assert not (project / "ran").exists()


# --- what surrounds the tool -----------------------------------------------------------------------


async def test_the_journal_is_told_before_a_tool_may_change_anything(project: Path) -> None:
    order: list[str] = []

    async def run_tool(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        order.append(f"run {prepared.request.name}")
        return await invoke_tool(prepared, context)

    agent = EnforcedAgent(
        project,
        rules=PermissionRules(mode="bypassPermissions"),
        tools=[mcp__notes__add],
        record=lambda record: order.append(f"record {record['toolName']}"),
        before_effects=lambda prepared: order.append(f"sync {prepared.request.name}"),
        run_tool=run_tool,
    )
    await agent.run(call("Read", file_path="notes.txt"), write(), call("mcp__notes__add", text="a"))
    assert order == [
        "record Read",
        "run Read",
        "record Write",
        "sync Write",
        "run Write",
        "record mcp__notes__add",
        "sync mcp__notes__add",
        "run mcp__notes__add",
    ]


@pytest.mark.parametrize("port", ["before_effects", "record"])
async def test_what_cannot_be_put_on_record_does_not_run(project: Path, port: str) -> None:
    def refuse(value: object) -> None:
        raise OSError("disk full")

    agent = EnforcedAgent(project, rules=PermissionRules(mode="acceptEdits"), **{port: refuse})
    assert await agent.run(write()) == ["Error: Write was not run: OSError: disk full"]
    assert not (project / "made.txt").exists()


async def test_a_long_output_is_cut_in_the_middle(project: Path) -> None:
    (project / "long.txt").write_text("first\n" + "x" * 1_000 + "\n" + "y" * 1_000 + "\nlast\n")
    agent = EnforcedAgent(project, output_limit=1_000)
    [content] = await agent.run(call("Read", file_path="long.txt"))
    assert "first" in content
    assert "last" in content
    assert "characters left out" in content
    assert len(content) <= 1_000
    assert agent.ended[0].metadata["truncated"] is True


# --- requirements of the seeds, by their numbers in the inventory ----------------------------------


class Broken:
    """Raises whatever it is given, wherever it is asked."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def has(self, event: str) -> bool:
        return True

    async def fire(self, *args: object, **named: object) -> HookOutcome:
        raise self.error

    async def judge(self, *args: object) -> Judgement:
        raise self.error

    offer = remember = has

    def __call__(self, *args: object) -> Any:
        raise self.error


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


ERRORS = st.sampled_from(
    [
        ValueError("x"),
        KeyError(),
        SystemExit(3),
        asyncio.CancelledError(),
        TimeoutError(),
        ExceptionGroup("several", [OSError(5, "io")]),
        RecursionError(),
        Unprintable(),
    ]
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just([]), st.just({}))
PORTS = ["handler", "hooks", "judge", "run_tool", "record", "record_original", "before_effects", "save_rule"]


@settings(max_examples=60, deadline=None)
@given(
    broken=st.sets(st.sampled_from(PORTS), min_size=1),
    error=ERRORS,
    mode=st.sampled_from(["plan", "default"]),
)
async def test_whatever_breaks_a_call_gets_a_result(  # §20.89
    broken: set[str], error: BaseException, mode: Any
) -> None:
    ports: dict[str, Any] = {name: Broken(error) for name in broken}
    ports.setdefault("handler", Person("allow-project"))
    enforcer = PermissionEnforcer(cwd="/", **enforcer_ports(rules=PermissionRules(mode=mode), **ports))
    for name in ("Bash", "refresh"):
        prepared = PreparedCall(
            index=0, call_id="c", request=call(name, command="x"), tool=refresh, arguments={"command": "x"}
        )
        result = await enforcer.run_tool(prepared, ToolContext())
        assert isinstance(result, ToolResult)
        if {"judge", "hooks", "handler"} & broken or mode == "plan":
            assert (result.ok, result.denied) == (False, True)


@settings(max_examples=60, deadline=None)
@given(value=VALUES, port=st.sampled_from(["handler", "judge", "run_tool", "hooks"]))
async def test_whatever_a_port_answers_a_call_gets_a_result(value: object, port: str) -> None:  # §20.89
    class Odd(Broken):
        async def fire(self, *args: object, **named: object) -> Any:
            return value

        async def judge(self, *args: object) -> Any:
            return value

        async def __call__(self, *args: object) -> Any:
            return value

    enforcer = PermissionEnforcer(
        cwd="/", **enforcer_ports(**{"handler": Person(True), port: Odd(ValueError())})
    )
    prepared = PreparedCall(index=0, call_id="c", request=call("refresh"), tool=refresh)
    result = await enforcer.run_tool(prepared, ToolContext())
    assert isinstance(result, ToolResult)
    assert result.ok == (port == "handler" and value is True)


async def test_whoever_runs_tools_may_break_and_the_model_is_told(project: Path) -> None:  # §20.89
    agent = EnforcedAgent(project, run_tool=Broken(ConnectionError("no container")))
    assert await agent.run(call("Read", file_path="notes.txt")) == [
        "Error: Read failed: ConnectionError: no container"
    ]


async def test_a_permission_check_that_breaks_denies(project: Path) -> None:  # §20.89
    class Hooks(Broken):
        def has(self, event: str) -> bool:
            raise self.error

    agent = EnforcedAgent(project, hooks=Hooks(ValueError()), rules=PermissionRules(mode="bypassPermissions"))
    assert await agent.run(write()) == [
        "Error: Permission denied. The permission rules could not be evaluated; the fault is in the log."
    ]
    assert agent.records[0]["by"] == "fault"


async def test_a_cancellation_from_outside_is_not_swallowed(project: Path) -> None:
    asked = anyio.Event()

    async def handler(request: PermissionQuestion) -> bool:
        asked.set()
        await anyio.sleep_forever()
        return True

    enforcer = PermissionEnforcer(cwd="/", **enforcer_ports(handler=handler))
    prepared = PreparedCall(index=0, call_id="c", request=call("refresh"), tool=refresh)
    task = asyncio.create_task(enforcer.run_tool(prepared, ToolContext()))
    await asked.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_the_end_of_a_call_tells_that_it_was_denied_and_what_came_out(project: Path) -> None:  # §20.90
    agent = EnforcedAgent(project, handler=Person(True, False))
    await agent.run(write("a.txt"), write("b.txt"))
    ran, denied = agent.ended
    assert (ran.outcome, ran.content) == ("success", f"Written 1 bytes to {project / 'a.txt'}")
    assert (denied.outcome, denied.error) == ("denied", REFUSED.removeprefix("Error: "))


async def test_an_unknown_tool_is_reported_once_without_hooks_or_questions(project: Path) -> None:  # §20.91
    person = Person(True)
    agent = EnforcedAgent(project, handler=person, hooks=Broken(AssertionError("no hook may run")))
    await agent.run([call("Nothing", a=1)])
    [event] = agent.ended
    assert (event.tool_name, event.outcome, event.error_code) == ("Nothing", "error", "unknown_tool")
    assert event.metadata["errorCode"] == "unknown_tool"
    assert (person.asked, agent.records) == ([], [])


async def test_invalid_arguments_are_answered_without_a_question(project: Path) -> None:
    person = Person(True)
    agent = EnforcedAgent(project, handler=person)
    [content] = await agent.run([ToolCall("a", "Write", '{"file_path": ')])
    assert "not valid JSON" in content
    assert person.asked == []
