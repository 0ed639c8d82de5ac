"""Both engines on random trees: the same files, the same lines, the same order."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robota.core.tool import ToolContext
from robota.tools.builtins.search import glob_tool, grep_tool

EXAMPLES = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

NAMES = ["a", "b", "ab", "a.c", "b.c", ".h", "x y", "é", "A", "c.txt", "build", "src"]
PARTS = [
    *[
        "a",
        "b",
        "*",
        "a*",
        "*.c",
        "?",
        "??",
        "[ab]",
        "**",
        "ab",
        "build",
        "src",
        ".h",
        "*b*",
        "{a,b}",
        "a\\*",
    ],
    *["é", "*.{c,txt}", "x*", "[a-c].c", "x\\ y", "[!a]"],
]
TOKENS = [
    "a",
    "b",
    "ab",
    "A",
    "foo",
    " ",
    "\n",
    "\n",
    "\n\n",
    "é",
    "ß",
    "É",
    "_",
    "0",
    "x",
    "\t",
    "-",
    ".",
    "\r\n",
]
ATOMS = [
    *["a", "b", "ab", "foo", "é", "É", "\\d", "\\w", "\\s", ".", "\\b", "^", "$", "[ab]", "[^a]", "[\\w.]"],
    *["[a-c]", "\\.", "\\S", "\\W", "\\D", "x", "[[:alpha:]]", "\\x61", "(?i:A)", "[^\\s]", "\\B", "-", "_"],
    *["(a|b)", "(?:foo)", "(?i)a", "[\\s\\S]", "\\t", "\\<", "\\>", "[^\\n]", "[\\Wa]", "(?s:.)", "(?P<n>a)"],
]

rules = st.builds(
    lambda negated, anchored, parts, directory: f"{negated}{anchored}{'/'.join(parts)}{directory}",
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
rule_files = st.lists(rules, min_size=1, max_size=4).map("\n".join)
words = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join)
contents = st.one_of(
    words.map(str.encode),
    words.map(str.encode),
    words.map(lambda text: b"\xef\xbb\xbf" + text.encode()),
    words.map(lambda text: text.encode("utf-16")),
    words.map(lambda text: text.encode() + b"\xff\xfea\n"),
    words.map(lambda text: b"zzz" + text.encode() + b"\0a"),
)
trees = st.recursive(
    contents, lambda below: st.dictionaries(st.sampled_from(NAMES), below, max_size=5), max_leaves=12
)
roots = st.dictionaries(st.sampled_from(NAMES), trees, min_size=1, max_size=5)
patterns = st.lists(
    st.builds(
        lambda atom, times: atom if atom == "(?i)a" else atom + times,
        st.sampled_from(ATOMS),
        st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "{2,}"]),
    ),
    min_size=1,
    max_size=4,
).map("".join)


def grow(root: Path, tree: dict[str, Any], draw_rules) -> None:
    root.mkdir(exist_ok=True)
    for name, below in tree.items():
        if isinstance(below, dict):
            grow(root / name, below, draw_rules)
        else:
            (root / name).write_bytes(below)
            os.utime(root / name, (1, len(below) % 3))
    ignored = draw_rules()
    if ignored:
        (root / ".gitignore").write_text(ignored)


def compare(make_tool, arguments: dict[str, Any], cwd: Path) -> None:
    context = ToolContext(cwd=str(cwd))
    by_ripgrep, by_python = (
        anyio.run(make_tool(ripgrep=ripgrep).run, arguments, context).text for ripgrep in (True, False)
    )
    assert by_python == by_ripgrep


@EXAMPLES
@given(tree=roots, data=st.data())
def test_the_same_files_are_ignored(tree, data):
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home)
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        root = Path(home, "outer")
        grow(root, tree, lambda: data.draw(st.none() | rule_files))
        directories = sorted(path for path in [root, *root.rglob("*")] if path.is_dir())
        for repository in data.draw(st.lists(st.sampled_from(directories), max_size=2, unique=True)):
            (repository / ".git" / "info").mkdir(parents=True)
            (repository / ".git" / "info" / "exclude").write_text(data.draw(rule_files))
        if data.draw(st.booleans()):
            Path(home, ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
            Path(home, "mine").write_text(data.draw(rule_files))
        pattern = data.draw(st.sampled_from(["**/*", "**/*.c", "src/**", "*/a*", "{a,b}/**/?", "**/[ab]*"]))
        compare(glob_tool, {"pattern": pattern}, data.draw(st.sampled_from(directories)))


@EXAMPLES
@given(
    tree=roots,
    alternatives=st.lists(patterns, min_size=1, max_size=2),
    mode=st.sampled_from(["files_with_matches", "content", "content", "count"]),
    flags=st.fixed_dictionaries({"-i": st.booleans(), "-A": st.integers(0, 3), "-B": st.integers(0, 3)}),
    limit=st.sampled_from([0, 3]),
)
def test_the_same_lines_match(tree, alternatives, mode, flags, limit):
    with tempfile.TemporaryDirectory() as directory:
        grow(Path(directory, "tree"), tree, lambda: None)
        arguments = {"pattern": "|".join(alternatives), "output_mode": mode, "head_limit": limit, **flags}
        compare(grep_tool, arguments, Path(directory, "tree"))


@pytest.mark.parametrize("line", [b"a\xff\xfea", b"\xff", b"\xff  ", b" \xff a", b"ab\xff", b"\xffa\xff"])
@pytest.mark.parametrize("pattern", [r"\B", r"\b", r"\Ba", r"a\B", r"\B\B"])
def test_words_begin_and_end_beside_stray_bytes_as_in_ripgrep(tmp_path, line, pattern):
    (tmp_path / "a").write_bytes(line + b"\n")
    compare(grep_tool, {"pattern": pattern, "output_mode": "count"}, tmp_path)


@EXAMPLES
@given(
    tree=roots,
    pattern=patterns.filter(lambda pattern: "(?i)" not in pattern),
    mode=st.sampled_from(["files_with_matches", "content"]),
    around=st.integers(0, 2),
)
def test_the_same_lines_match_across_lines(tree, pattern, mode, around):
    with tempfile.TemporaryDirectory() as directory:
        grow(Path(directory, "tree"), tree, lambda: None)
        arguments = {"pattern": f"{pattern}\\n?[ab]", "output_mode": mode, "multiline": True, "-C": around}
        compare(grep_tool, arguments, Path(directory, "tree"))
