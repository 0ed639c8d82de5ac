from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robota.sdk.frontmatter import read_head
from robota.sdk.skills.render import Surroundings, make_prompt, render_skill
from robota.sdk.skills.skill import Dialect, Skill, SkillError

SURROUNDINGS = Surroundings(
    session_id="s-1",
    project="/work",
    home="/home/me",
    model="big",
    effort="high",
)


def skill_of(
    path: Path, body: str, head: str = "", *, dialect: Dialect = "claude", trusted: bool = True
) -> Skill:
    file = path / "audit" / "SKILL.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"---\ndescription: Look for mistakes.\n{head}---\n{body}")
    return Skill(
        name="audit",
        path=str(file),
        description="Look for mistakes.",
        head=read_head(str(file)),
        dialect=dialect,
        in_project=not trusted,
        trusted=trusted,
        variables={"CLAUDE_PLUGIN_ROOT": "/p"},
    )


async def run_nothing(command: str) -> str:
    raise AssertionError(f"{command} was run")


async def echo(command: str) -> str:
    return f"<{command}>"


async def render(skill: Skill, args: str = "") -> str:
    return await render_skill(skill, args, SURROUNDINGS, echo)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "args", "expected"),
    [
        ("Fix $ARGUMENTS now.", "a 'b c'", "Fix a 'b c' now."),
        ("$ARGUMENTS[1]|$0|$1|$2", "a 'b c'", "b c|a|b c|$2"),
        ("Costs $100, $1.5, $x, ${HOME}", "", "Costs $100, $1.5, $x, ${HOME}"),
        (r"\$0 \$ARGUMENTS \${PROJECT_DIR}", "a", "$0 $ARGUMENTS ${PROJECT_DIR}\n\nARGUMENTS: a"),
        ("it's $0", "it's", "it's it's"),
        ("No place.", "a b", "No place.\n\nARGUMENTS: a b"),
        ("No place.", "", "No place."),
        ("$0", "$1 ${PROJECT_DIR}", "$1"),
        (
            "${CLAUDE_SESSION_ID} ${CLAUDE_EFFORT} ${CLAUDE_MODEL} ${CLAUDE_PROJECT_DIR} ${PROJECT_DIR} "
            "${USER_HOME} ${CLAUDE_PLUGIN_ROOT}",
            "",
            "s-1 high big /work /work /home/me /p",
        ),
    ],
)
async def test_arguments_and_variables_are_put_in(
    tmp_path: Path, body: str, args: str, expected: str
) -> None:
    assert await render(skill_of(tmp_path, body), args) == expected


@pytest.mark.anyio
async def test_the_directory_of_a_skill_is_known(tmp_path: Path) -> None:
    assert await render(skill_of(tmp_path, "${CLAUDE_SKILL_DIR}/run.sh")) == f"{tmp_path}/audit/run.sh"


@pytest.mark.anyio
async def test_named_arguments_are_empty_when_they_are_missing(tmp_path: Path) -> None:
    skill = skill_of(tmp_path, "$file at $files[$depth]", "arguments: [file, depth, files]\n")

    assert await render(skill, "a.py 2") == "a.py at [2]"


@pytest.mark.anyio
async def test_a_skill_of_robota_splits_at_blanks_and_leaves_nothing_open(tmp_path: Path) -> None:
    body = "$0|$1|$5|$100|$ARGUMENTS[7] !`awk '{print $1}' ${PROJECT_DIR}`"
    skill = skill_of(tmp_path, body, dialect="robota")

    assert await render(skill, "'a b") == "'a|b||$100| <awk '{print $1}' /work>"
    assert await render(skill_of(tmp_path, "No place.", dialect="robota"), "a") == "No place."


@pytest.mark.anyio
async def test_commands_give_their_output_in_their_place(tmp_path: Path) -> None:
    body = (
        "Status: !`git status $0`\n!`pwd`\nnot here:!`ls`, nor `!ls` nor !``\n"
        "```!\ncd src\nls $0\n```\n```bash\nls\n```\n"
    )

    assert await render(skill_of(tmp_path, body), "x") == (
        "Status: <git status x>\n<pwd>\nnot here:!`ls`, nor `!ls` nor !``\n<cd src\nls x>\n```bash\nls\n```"
    )


@pytest.mark.anyio
async def test_neither_arguments_nor_outputs_bring_commands_in(tmp_path: Path) -> None:
    commands: list[str] = []

    async def run(command: str) -> str:
        commands.append(command)
        return "!`second` $0"

    skill = skill_of(tmp_path, "!`first`\n$ARGUMENTS")

    assert await render_skill(skill, "!`third`", SURROUNDINGS, run) == "!`second` $0\n!`third`"
    assert commands == ["first"]


@pytest.mark.anyio
async def test_a_skill_that_nobody_trusts_runs_nothing(tmp_path: Path) -> None:
    with pytest.raises(SkillError, match="not trusted"):
        await render_skill(skill_of(tmp_path, "!`ls`", trusted=False), "", SURROUNDINGS, run_nothing)

    plain = skill_of(tmp_path, "Look at $0.", trusted=False)
    assert await render_skill(plain, "this", SURROUNDINGS, run_nothing) == "Look at this."


@pytest.mark.anyio
async def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    skill = skill_of(tmp_path, "Look.")
    Path(skill.path).unlink()

    with pytest.raises(SkillError, match="No such file"):
        await render(skill)


def test_the_prompt_has_the_instructions_and_the_task(tmp_path: Path) -> None:
    skill = skill_of(tmp_path, "Look.")

    assert make_prompt(skill, "Look.", "at this") == (
        '<skill name="audit">\nLook.\n</skill>\n\nExecute the "audit" skill: at this'
    )
    assert make_prompt(skill, "Look.", "").endswith('Execute the "audit" skill: Look for mistakes.')
    assert make_prompt(skill, "", "") == 'Use the "audit" skill: Look for mistakes.'


def test_the_prompt_says_where_other_files_of_a_skill_are(tmp_path: Path) -> None:
    skill = skill_of(tmp_path, "Look.")
    (tmp_path / "audit" / "checklist.md").write_text("- all of it\n")

    assert f"The files of this skill are in {tmp_path}/audit\n" in make_prompt(skill, "Look.", "")


@given(
    body=st.text(st.sampled_from("$ARGUMENTS[]0129{}\\!`\n ab"), max_size=60),
    args=st.text(st.sampled_from("$0\\'\"!` ab"), max_size=20),
    dialect=st.sampled_from(["claude", "robota"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@pytest.mark.anyio
async def test_any_text_can_be_rendered(tmp_path: Path, body: str, args: str, dialect: Dialect) -> None:
    assert isinstance(await render(skill_of(tmp_path, body, dialect=dialect), args), str)
