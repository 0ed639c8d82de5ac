from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.errors import ConfigurationError
from robota.sdk.frontmatter import (
    HEAD_BYTES,
    MAX_BYTES,
    list_markdown,
    parse_document,
    read_document,
    read_head,
    read_within,
    split_words,
)
from robota.sdk.places import find_places
from robota.sdk.problems import Problem
from robota.tools.yaml_text import read_yaml


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


_VALUES = st.one_of(
    st.sampled_from(
        ["true", "No", "null", "a: b", "a #b", "a#b", "x:", "'it''s'", '"q"', '"a\\n"', "[a]", "1", "<<", "~"]
    ),
    st.text(st.sampled_from("aZ09 :#'\"\\-,.$/([{&*!|>%@`~\t\u00e9\u2028"), max_size=12),
)


@given(st.lists(st.tuples(st.sampled_from(["name", "allowed-tools", "true", "x1"]), _VALUES), max_size=4))
def test_a_simple_head_means_what_yaml_says(lines: list[tuple[str, str]]) -> None:
    head = "".join(f"{key}: {value}\n" for key, value in lines)
    try:
        expected = read_yaml(head) or {}
    except ValueError:
        return

    assert parse_document(f"---\n{head}---\n", "a.md").fields == expected


def test_only_the_head_of_a_long_file_is_read(tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("---\nname: x\n---\n" + "word " * 10_000)
    deep = tmp_path / "deep.md"
    deep.write_text("---\nname: x\ndescription: " + "word " * 2_000 + "\n---\nbody\n")

    assert read_head(str(long)).text("name") == "x"
    assert len(read_head(str(long)).body) < 5_000
    assert len(read_head(str(deep)).text("description").split()) == 2_000


@pytest.mark.parametrize("size", [0, 1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 3 * HEAD_BYTES])
def test_a_file_is_read_whole_whatever_its_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"x" * size)
    assert read_document(str(path)).body == "x" * size
    for limit in (1, HEAD_BYTES, HEAD_BYTES + 2):
        with path.open("rb") as file:
            assert len(read_within(file, limit)) == min(size, limit)


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.md"
    binary.write_bytes(b"---\nname: x\n---\n\x00\x01")
    huge = tmp_path / "huge.md"
    huge.write_bytes(b"---\nname: x\n---\n" + b"x" * (MAX_BYTES + 1))

    assert "not a text" in str(read_head(str(binary)).problem)
    assert "larger than" in str(read_head(str(huge)).problem)


def test_what_looks_like_yaml_and_is_none_is_mended_field_by_field() -> None:
    head = "argument-hint: [file] [depth]\ndescription: Use when\n  it is: late\ntools: Read\nmodel: @fast\n"

    document = parse_document(f"---\n{head}---\n", "a.md")

    assert document.fields == {
        "argument-hint": "[file] [depth]",
        "description": "Use when it is: late",
        "tools": "Read",
        "model": "@fast",
    }
