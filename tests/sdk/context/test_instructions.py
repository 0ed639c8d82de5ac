"""AGENTS.md and CLAUDE.md: found from the root down, imported within bounds, each told once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sdk.context.files import Disk
from tests.support.unprivileged import bound_by_modes

from robota.sdk.context.instructions import MAX_FILE_BYTES


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_files_are_read_from_the_root_down_and_the_users_own_first(disk: Disk) -> None:
    disk.write(
        {
            "~/.robota/AGENTS.md": "own agents",
            "~/.claude/CLAUDE.md": "own notes",
            "~/.claude/rules/style.md": "own rule",
            "~/AGENTS.md": "home agents",
            "~/work/CLAUDE.md": "work notes",
            "AGENTS.md": "project agents",
            "CLAUDE.md": "project notes",
            ".claude/CLAUDE.md": "hidden notes",
            ".claude/rules/deep/api.md": "project rule",
            "CLAUDE.local.md": "local notes",
            "sub/AGENTS.md": "not from here",
        }
    )
    assert disk.texts() == {
        ".robota/AGENTS.md": "own agents",
        ".claude/CLAUDE.md": "own notes",
        ".claude/rules/style.md": "own rule",
        "AGENTS.md": "home agents",
        "work/CLAUDE.md": "work notes",
        "work/project/AGENTS.md": "project agents",
        "work/project/CLAUDE.md": "project notes",
        "work/project/.claude/CLAUDE.md": "hidden notes",
        "work/project/CLAUDE.local.md": "local notes",
        "work/project/.claude/rules/deep/api.md": "project rule",
    }
    assert list(disk.texts())[:5] == list(disk.texts(sources=("user", "project")))[:5]
    assert disk.texts(sources=()) == {}
    assert disk.texts(sources=("local",)) == {"work/project/CLAUDE.local.md": "local notes"}


def test_a_file_that_imports_the_other_counts_once(disk: Disk) -> None:
    disk.write({"AGENTS.md": "Use tabs.", "CLAUDE.md": "@AGENTS.md\n"})
    assert disk.texts() == {"work/project/AGENTS.md": "Use tabs."}
    disk.write({"CLAUDE.md": "@AGENTS.md\n\nAnd no emoji."})
    assert disk.texts() == {
        "work/project/AGENTS.md": "Use tabs.",
        "work/project/CLAUDE.md": "@AGENTS.md\n\nAnd no emoji.",
    }
    kinds = {os.path.basename(file.path): file.kind for file in disk.load().files}
    assert kinds == {"AGENTS.md": "agents", "CLAUDE.md": "notes"}


def test_a_file_that_repeats_or_is_a_link_to_the_other_counts_once(disk: Disk) -> None:
    disk.write({"AGENTS.md": "Use tabs.\n", "CLAUDE.md": "Use tabs."})
    assert disk.texts() == {"work/project/AGENTS.md": "Use tabs."}
    disk.path("CLAUDE.md").unlink()
    disk.path("CLAUDE.md").symlink_to("AGENTS.md")
    assert disk.texts() == {"work/project/AGENTS.md": "Use tabs."}
    assert disk.problems() == []


def test_imports_are_relative_to_their_file_absolute_or_in_the_home(disk: Disk) -> None:
    disk.write(
        {
            "CLAUDE.md": f"See @docs/a.md, and (@docs/my\\ notes.md). Also @{disk.path('abs.md')}!",
            "docs/a.md": "A, see @b.md.",
            "docs/b.md": "B",
            "docs/my notes.md": "N",
            "abs.md": "absolute",
            "~/.claude/CLAUDE.md": "@~/elsewhere/mine.md",
            "~/elsewhere/mine.md": "mine",
        }
    )
    assert list(disk.texts()) == [
        "elsewhere/mine.md",
        "work/project/CLAUDE.md",
        "work/project/docs/a.md",
        "work/project/docs/b.md",
        "work/project/docs/my notes.md",
        "work/project/abs.md",
    ]
    assert disk.problems() == []


def test_code_addresses_and_names_are_no_imports(disk: Disk) -> None:
    disk.write(
        {
            "CLAUDE.md": "Ask me@a.md or @alice. `@a.md` ``` `@a.md\n\n```\n@a.md\n```\n~~~~\n@a.md\n~~~\n",
            "a.md": "must not be read",
        }
    )
    assert list(disk.texts()) == ["work/project/CLAUDE.md"]
    assert disk.problems() == []


def test_comments_are_stripped_but_not_in_code(disk: Disk) -> None:
    disk.write(
        {
            "CLAUDE.md": "One.\n<!-- people\n@secret.md -->\nTwo <!-- stays -->.\n```\n<!-- code -->\n```",
            "secret.md": "hidden",
        }
    )
    assert disk.texts() == {"work/project/CLAUDE.md": "One.\nTwo <!-- stays -->.\n```\n<!-- code -->\n```"}


def test_a_comment_without_an_end_hides_nothing(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "One.\n<!-- oops\nTwo."})
    assert disk.texts() == {"work/project/CLAUDE.md": "One.\n<!-- oops\nTwo."}


def test_a_cycle_is_read_once_and_named(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "Top @a.md", "a.md": "A @b.md", "b.md": "B @a.md @CLAUDE.md"})
    assert list(disk.texts()) == [f"work/project/{name}" for name in ("CLAUDE.md", "a.md", "b.md")]
    assert disk.problems() == [
        "~/work/project/b.md: @a.md: It imports itself (CLAUDE.md → a.md → b.md → a.md); "
        "remove one of these imports.",
        "~/work/project/b.md: @CLAUDE.md: It imports itself (CLAUDE.md → a.md → b.md → CLAUDE.md); "
        "remove one of these imports.",
    ]


def test_imports_go_four_deep(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "0 @1.md", **{f"{n}.md": f"{n} @{n + 1}.md" for n in range(1, 7)}})
    assert list(disk.texts()) == [f"work/project/{name}.md" for name in ("CLAUDE", "1", "2", "3", "4")]
    assert disk.problems() == [
        "~/work/project/4.md: Its imports were left out: they are nested more than 4 deep."
    ]


def test_a_missing_import_is_named_with_its_line(disk: Disk) -> None:
    disk.write({"AGENTS.md": "Read\n@docs/gone.md\nand install @types/node."})
    assert disk.problems() == [
        "~/work/project/AGENTS.md:2: @docs/gone.md: There is no such file: correct the path."
    ]


def test_what_a_project_imports_from_outside_waits_for_consent(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "Read @~/.ssh/config.md and @../shared.md", "~/.ssh/config.md": "key"})
    disk.write({"~/work/shared.md": "shared @deeper.md", "~/work/deeper.md": "deeper"})
    context = disk.load()
    assert list(disk.texts()) == ["work/project/CLAUDE.md"]
    assert context.outside_imports == (str(disk.path("~/.ssh/config.md")), str(disk.path("~/work/shared.md")))
    assert disk.problems() == [
        f"~/work/project/CLAUDE.md: @~/{path}: ~/{path} lies outside the project and was left out: agree "
        "to such imports, or import it from your own instructions."
        for path in (".ssh/config.md", "work/shared.md")
    ]
    assert list(disk.texts(imports_allowed=True)) == [
        "work/project/CLAUDE.md", ".ssh/config.md", "work/shared.md", "work/deeper.md",
    ]  # fmt: skip


def test_a_link_is_no_way_out_of_the_project_either(disk: Disk) -> None:
    disk.write({"~/.ssh/id": "key", "~/AGENTS.md": "Read @.ssh/id"})
    disk.path("CLAUDE.md").symlink_to(disk.path("~/.ssh/id"))
    disk.path(".claude").symlink_to(disk.path("~/.ssh"))
    assert list(disk.texts()) == ["AGENTS.md"]
    assert len(disk.load().outside_imports) == 2


def test_a_users_file_does_not_vouch_for_what_a_projects_file_imports(disk: Disk) -> None:
    disk.write({"~/.claude/CLAUDE.md": "Mine, and @~/work/project/notes.md", "~/.ssh/id": "key"})
    disk.write({"notes.md": "Theirs, and @~/.ssh/id"})
    assert list(disk.texts()) == [".claude/CLAUDE.md", "work/project/notes.md"]
    assert disk.load().outside_imports == (str(disk.path("~/.ssh/id")),)


def test_excluded_files_are_left_alone(disk: Disk) -> None:
    disk.write({"~/CLAUDE.md": "home", "~/work/CLAUDE.md": "work", "CLAUDE.md": "project"})
    disk.write({".claude/rules/x.md": "rule"})
    assert list(disk.texts(excludes=["~/CLAUDE.md", "**/rules/**", "work/CLAUDE.md"])) == [
        "work/project/CLAUDE.md"
    ]
    assert disk.problems(excludes=["{a"]) == [
        "settings: claudeMdExcludes: The glob **/{a cannot be used, because there is a `{` without `}`; "
        "it was left out."
    ]


def test_a_deny_rule_binds_instructions_and_imports(disk: Disk) -> None:
    disk.write({"CLAUDE.md": "Read @secrets/keys.md", "secrets/keys.md": "key"})
    denied = str(disk.path("secrets"))
    assert list(disk.texts(is_denied=lambda path: path.startswith(denied))) == ["work/project/CLAUDE.md"]
    assert disk.problems(is_denied=lambda path: path.startswith(denied)) == [
        "~/work/project/secrets/keys.md: It was left out: a deny rule of the settings covers it."
    ]


def test_what_cannot_be_read_is_named_and_the_rest_is_used(disk: Disk) -> None:
    disk.path("AGENTS.md").mkdir()
    disk.write({"CLAUDE.md": b"\x7fELF\0\0\0", "~/work/AGENTS.md": "fine"})
    disk.path("CLAUDE.local.md").symlink_to("CLAUDE.local.md")
    os.mkfifo(disk.path("~/work/CLAUDE.md"))
    assert disk.texts() == {"work/AGENTS.md": "fine"}
    assert disk.problems() == [
        "~/work/CLAUDE.md: It is not a regular file and was left out.",
        "~/work/project/AGENTS.md: It is a directory and was left out.",
        "~/work/project/CLAUDE.md: It is not text and was left out.",
        "~/work/project/CLAUDE.local.md: It cannot be read (Too many levels of symbolic links) and was left "
        "out.",
    ]


def test_a_file_without_permission_is_named(disk: Disk) -> None:
    disk.write({"AGENTS.md": "x"})
    disk.path("AGENTS.md").chmod(0)
    with bound_by_modes():
        assert disk.problems() == [
            "~/work/project/AGENTS.md: It cannot be read (Permission denied) and was left out."
        ]


def test_a_file_of_100_mb_is_cut_at_a_line_and_says_so(disk: Disk) -> None:
    disk.write({"AGENTS.md": "A line of text.\n" * 10_000})
    with disk.path("AGENTS.md").open("r+b") as file:
        file.truncate(100_000_000)
    (text,) = disk.texts().values()
    assert text.startswith("A line of text.\n")
    assert text.endswith("A line of text.\n[The rest of AGENTS.md is left out here, because it is too long.]")
    assert len(text) < MAX_FILE_BYTES + 100
    assert disk.problems() == ["~/work/project/AGENTS.md: Only its first 64 KiB are used: split it."]


def test_all_of_them_together_are_bounded(disk: Disk) -> None:
    imports = " ".join(f"@{n}.md" for n in range(6))
    disk.write({"CLAUDE.md": imports, **{f"{n}.md": f"{n}" * 60_000 for n in range(6)}})
    assert list(disk.texts()) == [f"work/project/{n}.md" for n in range(4)]
    assert len(disk.problems()) == 2
    assert (
        "It was left out, because instructions may have 256 KiB in 200 files altogether."
        in disk.problems()[0]
    )


def test_compact_instructions_are_found_under_their_heading(disk: Disk) -> None:
    disk.write(
        {
            "CLAUDE.md": "# Notes\n\n## Compact instructions\nKeep ids.\n### Also\nAnd names.\n## Rest\nNo.",
            "AGENTS.md": "# COMPACT INSTRUCTIONS #\nKeep the plan.",
        }
    )
    assert disk.load().compact_instructions == "Keep the plan.\n\nKeep ids.\n### Also\nAnd names."


NAMES = (
    "AGENTS.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "docs/a.md",
    "docs/b.md",
    ".claude/rules/r.md",
    "~/out.md",
)
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from([f"@{name} " for name in NAMES]),
        st.sampled_from(
            [
                "@../out.md",
                "@docs",
                "```\n",
                "`",
                "<!-- ",
                "-->",
                "---\npaths: x\n---\n",
                "# Compact Instructions\n",
            ]
        ),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(NAMES), st.one_of(TEXTS, st.binary(max_size=40)), max_size=7),
    st.booleans(),
)
def test_whatever_the_files_say_each_is_told_at_most_once_and_nothing_from_outside(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str | bytes], allowed: bool
) -> None:
    disk = Disk(tmp_path_factory.mktemp("disk"))
    disk.write(
        {
            name: text if isinstance(text, bytes) else text.encode("utf-8", "replace")
            for name, text in files.items()
        }
    )
    context = disk.load(imports_allowed=allowed)
    told = [*context.files, *context.rules]
    paths = [file.path for file in told]
    assert len(paths) == len(set(paths))
    assert len({file.text for file in told}) == len(told)
    assert all(file.text.strip() for file in told)
    inside = [path for path in paths if path.startswith(f"{disk.project}/")]
    assert allowed or inside == paths
