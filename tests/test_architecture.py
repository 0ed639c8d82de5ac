from __future__ import annotations

import ast
import gc
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FILE_LINES, FUNCTION_LINES, CLASS_LINES, POSITIONAL = 500, 60, 250, 6
FACADES = {"InteractiveSession": 400, "Session": 400}
"""The face of a whole layer: one short method for each thing a user can do with it, and no other logic."""
VENDORS = re.compile(r"anthropic|openai|gemini|deepseek|qwen|mistral|ollama|claude", re.IGNORECASE)
QUOTED_VENDORS = re.compile(rf"""["']({VENDORS.pattern})["']""", re.IGNORECASE)
BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
"""What definitions can stand in."""
Trees = dict[Path, ast.Module]


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def trees() -> Trees:
    """The syntax of every source file; not kept for longer, since they are a million objects."""
    gc.disable()  # it would look at all of them again and again, and they are all needed
    parsed = {path: ast.parse(path.read_text()) for path in SOURCES}
    gc.enable()
    return parsed


def definitions(trees: Trees) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every function and class with the place where it stands."""
    for path, tree in trees.items():
        nodes: list[ast.AST] = [tree]
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{short(path)}:{node.lineno} {node.name}", node
            nodes += [each for each in ast.iter_child_nodes(node) if isinstance(each, BLOCKS)]


def test_source_files_keep_to_the_size_budgets(trees: Trees) -> None:
    sizes = {short(path): len(path.read_text().splitlines()) for path in SOURCES}
    large = [
        f"{name} has {lines} lines: an idea in it wants its own name"
        for name, lines in sizes.items()
        if lines > FILE_LINES
    ]
    for place, node in definitions(trees):
        limit = FACADES.get(node.name, CLASS_LINES) if isinstance(node, ast.ClassDef) else FUNCTION_LINES
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > limit:
            large.append(f"{place} has {lines} lines")
    assert not large, "\n".join(large)


def test_functions_take_at_most_six_positional_parameters(trees: Trees) -> None:
    wide = []
    for place, node in definitions(trees):
        if not isinstance(node, ast.ClassDef):
            count = len(node.args.posonlyargs) + len(node.args.args)
            count -= node.args.args[:1] != [] and node.args.args[0].arg in ("self", "cls")
            if count > POSITIONAL:
                wide.append(f"{place} takes {count}")
    assert not wide, "\n".join(wide)


def test_modules_say_what_a_reader_will_find(trees: Trees) -> None:
    silent = [
        short(path)
        for path, tree in trees.items()
        if (path.name != "__init__.py" or path.read_text().strip()) and not ast.get_docstring(tree)
    ]
    assert not silent, f"without a docstring: {silent}"


def test_vendor_names_stay_where_vendors_are_chosen(trees: Trees) -> None:
    branches: list[str] = []
    for path, tree in trees.items():
        place = path.relative_to(ROOT / "src" / "robota")
        if place.parts[0] in ("providers", "testing") or not QUOTED_VENDORS.search(path.read_text()):
            continue
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        compared = (node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.MatchValue))
        leaves = (leaf for node in compared for leaf in ast.walk(node) if id(leaf) not in docs)
        branches += [
            f"{short(path)}:{leaf.lineno} branches on {leaf.value}"
            for leaf in leaves
            if isinstance(leaf, ast.Constant) and VENDORS.fullmatch(str(leaf.value))
        ]
    assert not branches, "\n".join(branches)


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [tool, "--no-cache", "--config", str(root / "pyproject.toml")],
        cwd=root,
        env={"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy_of_the_tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_contracts_are_kept(copy_of_the_tree: Path) -> None:
    outcome = lint_imports(copy_of_the_tree)

    assert outcome.returncode == 0, outcome.stdout


PLANTED = [
    ("core.ports", "robota.tools.function_tool", "Layers point downwards"),
    ("core.ports", "robota.sdk.assembly", "Layers point downwards"),
    ("core.ports", "pydantic", "Core needs nothing but anyio"),
    ("core.ports", "httpx2", "Core needs nothing but anyio"),
    ("core.shell.script", "robota.core.permissions.rules", "Reading a command knows no permissions"),
    ("sdk.assembly", "robota.providers.scripted", "Only the CLI knows concrete providers"),
    ("tools.registry", "robota.providers.scripted", "Only the CLI knows concrete providers"),
    ("cli.main", "robota.tools.function_tool", "Front ends go through the SDK"),
    ("cli.main", "robota.core.loop", "Front ends go through the SDK"),
    ("providers.scripted", "robota.testing.fixtures", "Layers point downwards"),
]


def test_planted_forbidden_imports_break_their_contracts(copy_of_the_tree: Path) -> None:
    for module, forbidden, _ in PLANTED:
        path = copy_of_the_tree / "src" / "robota" / f"{module.replace('.', '/')}.py"
        path.write_text(f"{path.read_text()}\n\ndef planted() -> None:\n    import {forbidden}\n")

    outcome = lint_imports(copy_of_the_tree)

    assert outcome.returncode != 0
    complaints = outcome.stdout.partition("Broken contracts")[2]
    for module, forbidden, contract in PLANTED:
        named = re.search(rf"\n{contract}\n-+\n(.*?)(\n\w[^\n]*\n---|\Z)", complaints, re.DOTALL)
        assert named, contract
        assert re.search(rf"- +robota\.{module} -> {forbidden} \(", named[1]), (module, forbidden, contract)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import robota", "import robota.core", "from robota.core.robota import Robota"]
)
def test_importing_the_package_loads_no_heavy_library(statement: str) -> None:
    heavy = {
        "pydantic",
        "httpx2",
        "httpx",
        "rich",
        "prompt_toolkit",
        "tree_sitter",
        "click",
        "yaml",
        "anyio",
        "asyncio",
    }

    assert not loaded_after(statement) & (
        heavy if statement != "from robota.core.robota import Robota" else heavy - {"asyncio"}
    )


def test_importing_the_package_writes_nothing_and_needs_no_environment() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", "import robota, robota.core.robota"],
        capture_output=True,
        env={},
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"", b"")


def test_the_quick_tests_that_make_names_exist() -> None:
    """pytest runs nothing at all when one of its paths is missing."""
    told = subprocess.run(
        ["make", "-n", "test-fast"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    named = [word for word in told.split() if word.startswith("tests/")]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
