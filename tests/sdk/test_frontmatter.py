from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.errors import ConfigurationError
from robota.sdk.frontmatter import MAX_BYTES, list_markdown, parse_document, read_document, split_words
from robota.sdk.places import find_places
from robota.sdk.problems import Problem


def test_a_head_and_a_body() -> None:
    document = parse_document("---\nname: audit\ntools: [Read, Grep]\n---\nLook closely.\n", "a.md")

    assert document.text("name") == "audit"
    assert document.words("tools") == ("Read", "Grep")
    assert document.body == "Look closely.\n"
    assert document.problem is None


def test_a_file_without_a_head_is_all_body() -> None:
    document = parse_document("# Title\n\n---\nno: head\n---\n", "a.md")

    assert document.fields == {}
    assert document.body.startswith("# Title")


def test_a_value_with_a_colon_is_mended() -> None:
    document = parse_document("---\nname: x\ndescription: Use when: it's late\n---\nbody", "a.md")

    assert document.problem is None
    assert document.text("description") == "Use when: it's late"


def test_a_head_that_cannot_be_read_is_named_and_the_body_kept() -> None:
    document = parse_document("---\nname: [unclosed\n---\nbody\n", "a.md")

    assert document.body == "body\n"
    assert document.problem is not None
    assert document.problem.source == "a.md"
    assert "not YAML" in document.problem.message


def test_a_head_that_is_a_list_is_named() -> None:
    document = parse_document("---\n- one\n- two\n---\nbody\n", "a.md")

    assert document.problem is not None
    assert document.body == "body\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("true", True),
        ("yes", True),
        ("On", True),
        ("1", True),
        ("no", False),
        ("off", False),
        ("maybe", None),
    ],
)
def test_flags_in_all_spellings(written: str, read: bool | None) -> None:
    document = parse_document(f"---\nflag: {written}\n---\n", "a.md")

    assert document.flag("flag", default=False) is bool(read)
    assert document.flag("flag", default=True) is (read is not False)


def test_words_keep_what_is_in_parentheses_together() -> None:
    assert split_words("Read, Bash(git log *) Grep") == ("Read", "Bash(git log *)", "Grep")
    assert split_words("[a, 'b']") == ("a", "b")
    assert parse_document("---\nx: 1\n---\n", "a").words("tools") is None


def test_files_are_read_with_any_line_ends_and_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nname: x\r\n---\r\nbody\r\n")
    assert read_document(str(path)).text("name") == "x"
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    problem = read_document(str(path)).problem
    assert problem is not None
    assert "larger than" in problem.message


def test_markdown_below_a_directory(tmp_path: Path) -> None:
    for name in ("b.md", "a/c.md", ".hidden/d.md", "e.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    assert [Path(each).name for each in list_markdown(str(tmp_path))] == ["b.md", "c.md"]
    assert list_markdown(str(tmp_path / "missing")) == []


def test_a_problem_says_where() -> None:
    assert str(Problem("a.json", "is wrong", 3, "model")) == "a.json:3: model: is wrong"
    assert str(Problem("a.json", "is wrong")) == "a.json: is wrong"


def test_places_follow_the_environment(tmp_path: Path) -> None:
    places = find_places(tmp_path, {"HOME": "/home/x", "CLAUDE_CONFIG_DIR": "/c"})

    assert places.cwd == str(tmp_path)
    assert places.user("skills") == "/home/x/.robota/skills"
    assert places.claude("agents") == "/c/agents"
    assert places.project(".robota", "settings.json") == f"{tmp_path}/.robota/settings.json"
    assert places.shown(f"{tmp_path}/a/b") == "a/b"
    assert places.shown("/home/x/notes") == "~/notes"
    assert places.shown("/etc/passwd") == "/etc/passwd"
    assert find_places(tmp_path, {"HOME": "/home/x", "ROBOTA_HOME": "/r"}).user("a") == "/r/a"


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        find_places(tmp_path / "nowhere")


def test_examples_below_a_description_and_words_in_bold_are_mended() -> None:
    example = "\n<example>\nContext: Slow\n</example>\n"
    document = parse_document(
        f"---\ndescription: **Use**: for queues\n{example}model: opus\n---\nbody", "a.md"
    )

    assert document.problem is None
    assert (document.text("description"), document.text("model")) == ("**Use**: for queues", "opus")
