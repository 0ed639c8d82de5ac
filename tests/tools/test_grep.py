from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robota.core.tool import ToolContext, tool_class
from robota.tools.builtins.search import grep_tool
from robota.tools.search import (
    DEFAULT_LIMIT,
    MAX_LINE_CHARACTERS,
    MAX_OUTPUT_CHARACTERS,
    MAX_PATTERN_CHARACTERS,
)
from robota.tools.search.results import MAX_LINE_BYTES

pytestmark = pytest.mark.anyio

POEM = "one fish\ntwo fish\nred\nblue\n\nold fish\nnew fish\n"


@pytest.fixture(params=[True, False], ids=["ripgrep", "python"])
def ripgrep(request) -> bool:
    return request.param


@pytest.fixture
def grep(tmp_path, ripgrep):
    async def grep(pattern: str, denied=None, timeout: float = 60, **arguments: Any) -> str:
        tool = grep_tool(ripgrep=ripgrep, timeout=timeout)
        named = {name.replace("_flag", "").replace("dash_", "-"): value for name, value in arguments.items()}
        rules: Any = SimpleNamespace(path_filter=lambda _: denied)
        context = ToolContext(cwd=str(tmp_path), rules=rules)
        return (await tool.run({"pattern": pattern, **named}, context)).text

    return grep


@pytest.fixture
def make(tmp_path):
    """Files by path and content, each a second older than the one before."""

    def make(**files: bytes | str) -> Path:
        return make_named(files)

    def make_named(files: dict[str, bytes | str]) -> Path:
        for age, (path, content) in enumerate(files.items()):
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            os.utime(file, (1_000_000_000 - age,) * 2)
        return tmp_path

    make.named = make_named
    return make


# --- what it shows -------------------------------------------------------------------------------------


async def test_files_with_a_match_come_newest_first(grep, make):
    make.named({"new.txt": "fish", "a/old.txt": "fish\nfish", "other.txt": "bird"})
    assert await grep("fish") == "new.txt\na/old.txt"


async def test_content_shows_lines_in_the_order_of_paths(grep, make):
    make.named({"b.txt": "fish\n", "a.txt": POEM, "a/c.txt": "x\nfish"})
    assert await grep("fish", output_mode="content") == (
        "a/c.txt:2:fish\na.txt:1:one fish\na.txt:2:two fish\na.txt:6:old fish\na.txt:7:new fish\nb.txt:1:fish"
    )


async def test_count_shows_how_many_lines_match(grep, make):
    make.named({"b.txt": "fish fish\n", "a.txt": POEM})
    assert await grep("fish", outputMode="count") == "a.txt:4\nb.txt:1"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"-C": 1}, "p:2-two fish\np:3:red\np:4-blue"),
        ({"contextLines": 1}, "p:2-two fish\np:3:red\np:4-blue"),
        ({"context_lines": 1}, "p:2-two fish\np:3:red\np:4-blue"),
        ({"-B": 2}, "p:1-one fish\np:2-two fish\np:3:red"),
        ({"-A": 2}, "p:3:red\np:4-blue\np:5-"),
        ({"-C": 9, "-A": 0}, "p:1-one fish\np:2-two fish\np:3:red"),
        ({"-C": 1, "-n": False}, "p-two fish\np:red\np-blue"),
        ({"-C": 1.0}, "p:2-two fish\np:3:red\np:4-blue"),
    ],
)
async def test_lines_around_a_match_are_marked(grep, make, arguments, shown):
    make(p=POEM)
    assert await grep("red", output_mode="content", **arguments) == shown


async def test_groups_that_do_not_touch_are_separated(grep, make):
    make(p=POEM, q="red\n")
    assert await grep("one|red|new", output_mode="content", **{"-A": 1}) == (
        "p:1:one fish\np:2-two fish\np:3:red\np:4-blue\n--\np:7:new fish\n--\nq:1:red"
    )
    assert "--" not in await grep("one|red|new", output_mode="content")


async def test_case_can_be_ignored(grep, make):
    make(a="FISH É\n")
    assert await grep("fish é") == "(no matches)"
    assert await grep("fish é", **{"-i": True}) == "a"


async def test_a_match_may_span_lines_when_asked_to(grep, make):
    make(a=POEM)
    assert await grep("red.blue") == "(no matches)"
    assert await grep("red.blue", multiline=True, output_mode="content") == "a:3:red\na:4:blue"
    assert await grep("red\\nblue", multiline=True, output_mode="count") == "a:1"


async def test_results_above_the_limit_are_counted(grep, make):
    make.named({f"{n}.txt": "fish\nfish\n" for n in range(4)})
    assert await grep("fish", head_limit=2) == "0.txt\n1.txt\n(+2 more results truncated by head_limit)"
    assert await grep("fish", headLimit=3, output_mode="content") == (
        "0.txt:1:fish\n0.txt:2:fish\n1.txt:1:fish\n(+5 more results truncated by head_limit)"
    )
    assert await grep("fish", head_limit=1, offset=2, output_mode="count") == (
        "2.txt:2\n(+1 more results truncated by head_limit)"
    )
    assert await grep("fish", offset=3, head_limit=2, output_mode="content") == (
        "1.txt:2:fish\n2.txt:1:fish\n(+3 more results truncated by head_limit)"
    )
    assert await grep("fish", offset=9) == "(no results from offset 9 on: there are 4)"


async def test_a_file_can_be_searched(grep, make):
    make.named({"src/a.txt": POEM, "src/b.txt": POEM})
    assert await grep("red", path="src/a.txt") == "src/a.txt"
    assert await grep("red", path="src/a.txt", output_mode="content") == "src/a.txt:3:red"
    assert await grep("fish", path="src/a.txt", output_mode="count") == "src/a.txt:4"


async def test_paths_are_shown_so_that_other_tools_find_them(grep, make, tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "a.txt").write_text("fish")
    make.named({"src/deep/a.txt": "fish"})
    assert await grep("fish", path="src") == "src/deep/a.txt"
    assert await grep("fish", path=str(elsewhere)) == str(elsewhere / "a.txt")
    assert await grep("fish", path="/", glob=f"{tmp_path}/src/**") == "src/deep/a.txt"


# --- which files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"glob": "*.py"}, ["a.py", "src/b.py"]),
        ({"glob": "*.{py,ts}"}, ["a.py", "src/b.py", "src/c.ts"]),
        ({"glob": "src/*"}, ["src/b.py", "src/c.ts"]),
        ({"glob": "src/**/*.ts"}, ["src/c.ts"]),
        ({"glob": "**/b.*"}, ["src/b.py"]),
        ({"glob": "!*.py"}, ["src/c.ts", "lib.rs"]),
        ({"type": "py"}, ["a.py", "src/b.py"]),
        ({"type": "ts", "glob": "src/*"}, ["src/c.ts"]),
        ({"type": "py", "glob": "!a*"}, ["src/b.py"]),
        ({"type": "rust"}, ["lib.rs"]),
    ],
)
async def test_files_can_be_chosen(grep, make, arguments, found):
    make.named(dict.fromkeys(["a.py", "src/b.py", "src/c.ts", "lib.rs"], "fish"))
    assert (await grep("fish", **arguments)).splitlines() == found


async def test_a_glob_does_not_bring_back_what_git_ignores(grep, make):
    make.named({".git/HEAD": "", ".gitignore": "*.log\n", "a.log": "fish", "b.txt": "fish"})
    assert await grep("fish", glob="*.{log,txt}") == "b.txt"
    assert await grep("fish", glob="*.{log,txt}", include_ignored=True) == "a.log\nb.txt"


async def test_hidden_files_are_searched_but_neither_git_nor_node_modules(grep, make):
    make.named(dict.fromkeys([".env", ".git/config", "node_modules/x/a.js", "sub/node_modules/b.js"], "fish"))
    assert await grep("fish") == ".env"
    assert await grep("fish", include_ignored=True) == ".env"
    assert await grep("fish", path="node_modules/x") == "node_modules/x/a.js"


async def test_binary_files_are_passed_over(grep, make):
    make.named({"a.bin": b"some fish\0\n", "b.txt": "fish"})
    assert await grep("fish") == "b.txt"
    assert await grep("fish", output_mode="content") == "b.txt:1:fish"
    assert await grep("fish", output_mode="count") == "b.txt:1"


async def test_that_a_named_file_is_binary_is_said(grep, make):
    root = make.named({"a.bin": b"fish\0"})
    assert await grep("fish", path="a.bin") == (
        f"(no matches)\n[{root / 'a.bin'} is a binary file and was not searched.]"
    )


async def test_links_are_not_followed_unless_they_were_named(grep, make):
    root = make.named({"real/a.txt": "fish"})
    (root / "link").symlink_to("real")
    (root / "loop").symlink_to(".")
    (root / "b.txt").symlink_to("real/a.txt")
    assert await grep("fish") == "real/a.txt"
    assert await grep("fish", path="link") == "link/a.txt"
    assert await grep("fish", path="b.txt") == "b.txt"


async def test_a_fifo_in_the_tree_does_not_hang_the_search(grep, make):
    root = make(a="fish")
    os.mkfifo(root / "pipe")
    assert await grep("fish") == "a"
    assert await grep("fish", path="pipe") == (
        f"Error: Path is neither a directory nor a regular file: {root / 'pipe'}"
    )


# --- denied files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("files_with_matches", "a.txt\n(+1 more results truncated by head_limit)"),
        ("content", "a.txt:1:fish\n(+1 more results truncated by head_limit)"),
        ("count", "a.txt:1\n(+1 more results truncated by head_limit)"),
    ],
)
async def test_denied_files_are_neither_shown_nor_counted(grep, make, mode, shown):
    make.named({"a.txt": "fish\n", "secret/key.txt": "fish token\n", "z.txt": "fish\n"})
    assert await grep("fish", lambda path: "secret" in path, output_mode=mode, head_limit=1) == shown


@pytest.mark.parametrize("mode", ["files_with_matches", "content", "count"])
async def test_a_denied_file_is_not_searched_when_it_is_named(grep, make, mode):
    root = make.named({"real/key.txt": "fish"})
    (root / "link").symlink_to("real")
    (root / "innocent.txt").symlink_to("real/key.txt")
    real = str(root / "real" / "key.txt")
    for path in ("real/key.txt", "link/key.txt", "innocent.txt"):
        assert await grep("fish", lambda path: path == real, path=path, output_mode=mode) == (
            f"Error: Access denied: {root / path}"
        )


# --- text ----------------------------------------------------------------------------------------------


async def test_long_lines_are_cut(grep, make):
    make(a="é" * 9_000 + "fish\nfish" + "x" * 1_000_000, b="fish" + "x" * (MAX_LINE_CHARACTERS - 4))
    cut = "… [the line goes on]"
    assert await grep("fish", output_mode="content") == (
        f"a:1:{'é' * MAX_LINE_CHARACTERS}{cut}\na:2:fish{'x' * (MAX_LINE_CHARACTERS - 4)}{cut}\n"
        f"b:1:fish{'x' * (MAX_LINE_CHARACTERS - 4)}"
    )


async def test_bytes_that_are_no_text_and_control_sequences_do_not_reach_the_reader(grep, make):
    make(a=b"fish \xff\x1b[31mred\x1b[0m \x07end\rmore\r\n")
    assert await grep("fish", output_mode="content") == "a:1:fish \ufffdred end more"


async def test_utf16_and_byte_order_marks_are_understood(grep, make):
    make.named({"a": "fish 1\nfish 2\n".encode("utf-16"), "b": b"\xef\xbb\xbffish\n"})
    assert await grep("^fish", output_mode="content") == "a:1:fish 1\na:2:fish 2\nb:1:fish"


async def test_a_large_file_is_searched_to_its_end(grep, make):
    block = (b"x" * 99 + b"\n") * 50_000 + b"fish\n"
    make.named({"big.txt": block * 5})
    numbers = [50_001 * n for n in range(1, 6)]
    assert (await grep("fish", output_mode="content")).splitlines() == [f"big.txt:{n}:fish" for n in numbers]
    around = (await grep("fish", output_mode="content", **{"-C": 1})).splitlines()
    assert [line[:20] for line in around[:4]] == [
        "big.txt:50000-xxxxxx",
        "big.txt:50001:fish",
        "big.txt:50002-xxxxxx",
        "--",
    ]


async def test_a_flood_of_matches_is_cut_short_and_stays_in_order(grep, make):
    make.named({f"{n:03}.txt": "fish and more fish\n" * 10_000 for n in range(60)})
    answer = (await grep("fish", output_mode="content", head_limit=3)).splitlines()
    assert answer == [
        *(f"000.txt:{n}:fish and more fish" for n in (1, 2, 3)),
        "(many more results truncated by head_limit)",
    ]
    answer = (await grep("fish", lambda path: "00" in path, output_mode="content", head_limit=3)).splitlines()
    assert answer[:3] == [f"010.txt:{n}:fish and more fish" for n in (1, 2, 3)]


async def test_a_flood_of_matches_takes_little_memory(grep, make):
    make.named({f"{n}.txt": "fish and more fish\n" * 100_000 for n in range(20)})
    tracemalloc.start()
    try:
        await grep("fish", output_mode="content")
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_LINE_BYTES
    finally:
        tracemalloc.stop()


async def test_a_result_has_a_largest_size(grep, make):
    make(a=("fish" + "x" * 400 + "\n") * 5_000)
    answer = await grep("fish", output_mode="content", head_limit=5_000)
    assert MAX_OUTPUT_CHARACTERS < len(answer) < MAX_OUTPUT_CHARACTERS + 1_000
    shown = len(answer.splitlines()) - 1
    assert answer.endswith(f"\n(+{5_000 - shown} more results truncated by head_limit)")


async def test_a_thousand_results_are_shown_by_default(grep, make):
    make(a="fish\n" * (DEFAULT_LIMIT + 2))
    answer = (await grep("fish", output_mode="content", head_limit=0)).splitlines()
    assert len(answer) == DEFAULT_LIMIT + 1
    assert answer[-1] == "(+2 more results truncated by head_limit)"


# --- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("fish(", "unclosed group"),
        ("fish)", "unopened group"),
        ("[a", "unclosed character class"),
        ("interface{}", "repetition quantifier expects a valid decimal"),
        ("*a", "repetition operator missing expression"),
        ("a{2,1}", "invalid repetition count range, the start must be <= the end"),
        ("[z-a]", "invalid character class range, the start must be <= the end"),
        ("(?=fish)", "look-around, including look-ahead and look-behind, is not supported"),
        ("\\q", "unrecognized escape sequence"),
    ],
)
async def test_an_invalid_pattern_is_explained_alike_by_both_engines(grep, make, pattern, reason):
    make(a="fish")
    assert await grep(pattern) == f"Error: Invalid regex pattern: {pattern} ({reason})"


@pytest.mark.parametrize("pattern", ["(a)\\1", "a\\nb", "a\nb", "a\0b", "\udc80"])
async def test_other_patterns_that_cannot_be_used_are_refused(grep, make, pattern):
    make(a="fish")
    assert (await grep(pattern)).startswith("Error: Invalid regex pattern: ")


async def test_a_pattern_has_a_largest_size(grep):
    assert await grep("a" * (MAX_PATTERN_CHARACTERS + 1)) == (
        "Error: Invalid regex pattern: it has more than 10,000 characters"
    )


async def test_a_missing_path_is_named(grep, tmp_path):
    assert await grep("fish", path="gone") == f"Error: Path not found: {tmp_path / 'gone'}"
    assert (await grep("fish", path="a\0b")).startswith("Error: Path not found: ")


async def test_an_unknown_file_type_is_answered_with_the_known_ones(grep):
    assert "Unknown file type: cobol. Known: c, cpp," in await grep("fish", type="cobol")


async def test_an_invalid_glob_is_explained(grep):
    assert await grep("fish", glob="a{b") == "Error: Invalid glob pattern: a{b (there is a `{` without `}`)"


async def test_unknown_arguments_are_refused(grep):
    assert "unknown" in (await grep("fish", colour=True))


def test_the_tool_only_looks():
    tool = grep_tool()
    assert (tool.name, tool_class(tool)) == ("Grep", "inspect")
    assert tool.description.startswith("Search for text in files")
