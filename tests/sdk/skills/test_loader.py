from __future__ import annotations

import os
from pathlib import Path

import pytest

from robota.sdk.places import Places
from robota.sdk.skills.loader import find_homes, load_skills
from robota.sdk.skills.skill import SkillError, Skills
from robota.sdk.wishes import find_wishes

AUDIT = "---\nname: audit\ndescription: Look for mistakes.\n---\nLook closely.\n"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    return Places(
        cwd=str(project), home=str(home), robota_home=str(home / ".robota"), claude_home=str(home / ".claude")
    )


def write(path: str, text: str = AUDIT) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text(text)
    return path


def write_skill(places: Places, name: str, text: str = AUDIT) -> str:
    return write(places.project(".claude", "skills", name, "SKILL.md"), text)


def complaints(skills: Skills) -> list[str]:
    return [problem.message for problem in skills.problems]


def test_the_first_skill_of_a_name_counts_in_the_order_of_the_homes(places: Places) -> None:
    files = [
        write(os.path.join(home.path, "audit.md" if home.is_commands else "audit/SKILL.md"))
        for home in find_homes(places)
    ]

    for path in files:
        skills = load_skills(places)
        assert skills.require("audit").path == path
        os.remove(path)
    assert not load_skills(places)


def test_the_homes_are_those_of_the_three_formats(places: Places) -> None:
    assert [places.shown(home.path) for home in find_homes(places)] == [
        ".robota/skills",
        ".claude/skills",
        ".claude/commands",
        "~/.robota/skills",
        ".agents/skills",
        "~/.claude/skills",
        "~/.claude/commands",
        "~/.agents/skills",
    ]


def test_a_skill_that_comes_second_is_named(places: Places) -> None:
    first = write_skill(places, "audit")
    second = write(places.claude("skills", "audit", "SKILL.md"))

    (problem,) = load_skills(places).problems
    assert (problem.source, problem.subject) == (second, "audit")
    assert first in problem.message


def test_a_skill_is_called_by_its_directory_and_by_its_name_if_that_is_free(places: Places) -> None:
    write_skill(places, "check")
    write_skill(places, "lint", "---\nname: check\ndescription: Style.\n---\nBe strict.")

    skills = load_skills(places)

    assert skills.require("audit") is skills.require("check")
    assert skills.require("check").name == "check"
    assert [skill.name for skill in skills] == ["check", "lint"]


def test_every_field_of_the_head_is_read(places: Places) -> None:
    write_skill(
        places,
        "audit",
        "---\nname: audit\ndescription: Look.\nwhen_to_use: Late.\nargument-hint: [file] [depth]\n"
        "arguments: file depth\ndisable-model-invocation: yes\nuser-invocable: off\n"
        "allowed-tools: Read, Bash(git log *) Grep\ndisallowed-tools: [Write]\nmodel: inherit\neffort: high\n"
        "context: fork\nagent: Explore\nmax-turns: 7\npaths: ['src/**', 'docs/*.md']\nlicense: MIT\n"
        "hooks: {Stop: [{hooks: [{type: command, command: ls}]}]}\nown-key: kept\n---\nLook closely.\n",
    )

    skill = load_skills(places).require("audit")

    assert skill.when_to_use == "Late."
    assert skill.argument_hint == "[file] [depth]"
    assert skill.arguments == ("file", "depth")
    assert not skill.for_model
    assert not skill.for_user
    assert skill.allowed_tools == ("Read", "Bash(git log *)", "Grep")
    assert skill.disallowed_tools == ("Write",)
    assert (skill.model, skill.effort) == ("", "high")
    assert (skill.forks, skill.agent, skill.max_turns) == (True, "Explore", 7)
    assert skill.paths == ("src/**", "docs/*.md")
    assert list(skill.hooks) == ["Stop"]
    assert skill.head.fields["own-key"] == "kept"
    assert skill.read_body() == "Look closely.\n"


def test_a_head_that_cannot_be_read_leaves_the_body_and_its_first_line(places: Places) -> None:
    path = write_skill(places, "audit", "---\nname: [audit\n  x: }\n---\n\n# Look for mistakes\n\nClosely.\n")

    skills = load_skills(places)

    assert skills.require("audit").description == "Look for mistakes"
    assert "Closely." in skills.require("audit").read_body()
    (problem,) = skills.problems
    assert (problem.source, problem.subject, problem.line > 0) == (path, "audit", True)


def test_a_skill_without_description_is_described_by_its_first_line_and_named(places: Places) -> None:
    write_skill(places, "audit", "---\nname: audit\n---\nLook closely.\n")

    skills = load_skills(places)

    assert skills.require("audit").description == "Look closely."
    assert "no `description`" in complaints(skills)[0]


def test_a_file_without_a_head_follows_its_own_format(places: Places) -> None:
    write(places.project(".robota", "skills", "ours", "SKILL.md"), "Look closely.\n")
    write(places.project(".claude", "commands", "theirs.md"), "# Look closely\n")

    skills = load_skills(places)

    assert skills.require("ours").description == "Skill: ours"
    assert skills.require("theirs").description == "Look closely"


def test_broken_rules_of_the_format_are_told_and_the_skill_is_there(places: Places) -> None:
    long = "very-" * 13 + "long"
    write_skill(places, "Odd_Name", "---\ndescription: x\n---\n.")
    write_skill(places, long, "---\ndescription: x\n---\n.")
    write_skill(places, "wordy", f"---\ndescription: {'x' * 1025}\ncompatibility: {'y' * 501}\n---\n.")
    write_skill(places, "two words", "---\nname: two-words\ndescription: x\n---\n.")
    write_skill(places, "spoon", "---\ndescription: x\ncontext: spoon\n---\n.")

    skills = load_skills(places)

    assert len(skills) == 5
    assert skills.require("two-words").name == "two words"
    told = "\n".join(map(str, skills.problems))
    for said in ("64 characters", "1,024", "500", "cannot be typed", "'spoon' has no meaning"):
        assert said in told


def test_what_a_head_says_in_vain_is_named_with_its_line(places: Places) -> None:
    lines = (
        "description: x",
        "user-invokable: false",
        "disable-model-invocation: maybe",
        "hooks:",
        "  Setup: [{hooks: [{type: command, command: 'true'}]}]",
        "  PreToolUse: 3",
        "version: 2",
    )
    path = write_skill(places, "odd", "\n".join(("---", *lines, "---", ".")))
    assert [str(problem) for problem in load_skills(places).problems] == [
        f"{path}:5: odd: hooks.Setup: its hooks never run: there is no such event here.",
        f"{path}:5: odd: hooks.PreToolUse: expected a list of groups, got a value of type int.",
        f"{path}:3: odd: `user-invokable` is not known; did you mean `user-invocable`?",
        f"{path}:4: odd: `disable-model-invocation` is 'maybe', neither true nor false; it was left out.",
    ]


def test_what_is_no_file_of_text_is_left_out_and_named(places: Places) -> None:
    os.makedirs(places.project(".claude", "skills", "folder", "SKILL.md"))
    binary = write_skill(places, "binary")
    Path(binary).write_bytes(b"\x7fELF\x00\x00")
    huge = write_skill(places, "huge")
    with open(huge, "ab") as file:
        file.truncate(10 << 20)
    os.makedirs(places.project(".claude", "skills", "dangling"))
    os.symlink("/nowhere", places.project(".claude", "skills", "dangling", "SKILL.md"))
    write_skill(places, "audit")

    skills = load_skills(places)

    assert [skill.name for skill in skills] == ["audit"]
    assert sorted(problem.subject for problem in skills.problems) == ["binary", "dangling", "folder", "huge"]


def test_a_home_that_cannot_be_read_is_named(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(places, "audit")
    write(places.claude("skills", "mine", "SKILL.md"))
    home = places.project(".claude", "skills")
    monkeypatch.setattr(os, "access", lambda path, mode: path != os.path.realpath(home))  # root may read all

    skills = load_skills(places)

    assert (home, "The directory cannot be read") in [
        (problem.source, problem.message.partition(",")[0]) for problem in skills.problems
    ]
    assert skills.find("mine") is not None


def test_groups_and_links_are_followed(places: Places, tmp_path: Path) -> None:
    write(str(tmp_path / "elsewhere" / "SKILL.md"), "---\ndescription: Linked.\n---\n.")
    write_skill(places, "team/review", "---\ndescription: Of the team.\n---\n.")
    write_skill(places, "review", "---\ndescription: Mine.\n---\n.")
    write_skill(places, "team/deploy", "---\ndescription: Of the team.\n---\n.")
    os.symlink(tmp_path / "elsewhere", places.project(".claude", "skills", "linked"))
    os.symlink(
        places.project(".claude", "skills", "team"), places.project(".claude", "skills", "team", "again")
    )

    skills = load_skills(places)

    assert skills.require("linked").description == "Linked."
    assert skills.require("deploy").description == "Of the team."
    assert skills.require("review").description == "Mine."
    assert skills.require("team:review").description == "Of the team."


def test_commands_in_directories_have_their_names_before_them(places: Places) -> None:
    write(places.project(".claude", "commands", "front", "component.md"), "Make one.")
    write(places.project(".claude", "commands", "back", "component.md"), "Make another.")
    write(places.project(".claude", "commands", "front", "page.md"), "Make a page.")
    write(places.project(".claude", "commands", "notes.txt"), "No command.")

    skills = load_skills(places)

    assert sorted(skill.name for skill in skills) == ["back:component", "front:component", "front:page"]
    assert skills.require("/page").name == "front:page"
    assert skills.require("component").name == "back:component"


def test_overrides_hide_skills_or_keep_them_from_models(places: Places) -> None:
    for name in ("a", "b", "c", "d"):
        write_skill(places, name, "---\ndescription: x\n---\n.")

    skills = load_skills(
        places, overrides={"a": "off", "b": "user-invocable-only", "c": "name-only", "d": "loud"}
    )

    assert [skill.name for skill in skills] == ["b", "c", "d"]
    assert [skill.for_model for skill in skills] == [False, True, True]
    assert "'loud' has no meaning" in complaints(skills)[-1]


def test_a_skill_of_a_project_that_nobody_trusts_is_only_text(places: Places) -> None:
    head = "description: x\nallowed-tools: Bash\nmodel: big\neffort: max\ncontext: fork\nhooks: {Stop: []}"
    write_skill(places, "theirs", f"---\n{head}\n---\n.")
    write(places.claude("skills", "mine", "SKILL.md"), f"---\n{head}\n---\n.")

    skills = load_skills(places, trusted=False)
    theirs, mine = skills.require("theirs"), skills.require("mine")

    assert (theirs.for_model, theirs.for_user, theirs.forks) == (False, True, False)
    assert (theirs.allowed_tools, theirs.model, theirs.effort, theirs.hooks) == ((), "", "", {})
    assert (mine.for_model, mine.forks, mine.allowed_tools) == (True, True, ("Bash",))


def test_whatever_acts_is_shown_before_the_project_is_trusted(places: Places, tmp_path: Path) -> None:
    write_skill(places, "quoted", '---\n"allowed-tools": Bash\n---\n.')
    write_skill(places, "group/deep", "---\ndescription: x\n---\n```!\nmake\n```\n")
    write(str(tmp_path / "elsewhere" / "SKILL.md"), "---\ndescription: x\n---\n!`make all`")
    os.symlink(tmp_path / "elsewhere", places.project(".claude", "skills", "linked"))
    write(places.claude("skills", "mine", "SKILL.md"), "---\nallowed-tools: Bash\n---\n.")

    shown = find_wishes(places, []).of("skills")

    acting = {("quoted", "Bash"), ("deep", "make"), ("linked", "make all")}
    assert len(shown) == len(acting)
    assert all(any(name in wish and does in wish for wish in shown) for name, does in acting)


def test_a_wrong_name_is_answered_with_the_nearest(places: Places) -> None:
    write_skill(places, "audit")

    with pytest.raises(SkillError, match="did you mean 'audit'"):
        load_skills(places).require("audti")


def test_only_heads_are_read_however_many_there_are(places: Places) -> None:
    for number in range(300):
        write_skill(places, f"skill-{number}", f"---\ndescription: Number {number}.\n---\n" + "word " * 5_000)

    skills = load_skills(places)

    assert len(skills) == 300
    assert skills.problems == ()
    assert not any(skill.head.body for skill in skills)
