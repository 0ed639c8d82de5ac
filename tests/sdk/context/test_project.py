"""What kind of project a directory holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from robota.sdk.context.project import ProjectFacts, detect_project


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"package.json": '{"name": "shop"}'}, ("node", "javascript", "shop", "npm")),
        (
            {"package.json": "{}", "tsconfig.json": "", "pnpm-lock.yaml": ""},
            ("node", "typescript", "p", "pnpm"),
        ),
        ({"package.json": "{}", "yarn.lock": ""}, ("node", "javascript", "p", "yarn")),
        ({"package.json": "{}", "bun.lockb": ""}, ("node", "javascript", "p", "bun")),
        ({"pyproject.toml": '[project]\nname = "tool"'}, ("python", "python", "tool", "pip")),
        (
            {"pyproject.toml": '[tool.poetry]\nname = "old"', "poetry.lock": ""},
            ("python", "python", "old", "poetry"),
        ),
        ({"setup.py": "", "uv.lock": ""}, ("python", "python", "p", "uv")),
        ({"Cargo.toml": '[package]\nname = "fast"'}, ("rust", "rust", "fast", "cargo")),
        ({"Cargo.toml": "[workspace]"}, ("rust", "rust", "p", "cargo")),
        ({"go.mod": "// a module\nmodule example.org/x/y\n\ngo 1.22"}, ("go", "go", "example.org/x/y", "go")),
        ({"package.json": "{}", "pyproject.toml": ""}, ("node", "javascript", "p", "npm")),
        ({"README.md": ""}, ("unknown", "unknown", "p", "")),
    ],
)
def test_a_project_is_known_by_its_files(
    tmp_path: Path, files: dict[str, str], expected: tuple[str, str, str, str]
) -> None:
    directory = tmp_path / "p"
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    kind, language, name, manager = expected
    assert detect_project(str(directory)) == ProjectFacts(
        type=kind, language=language, name=name, package_manager=manager
    )


@pytest.mark.parametrize(
    ("name", "content", "kind", "reason"),
    [
        ("package.json", b'{"name": ', "node", "It cannot be parsed (Input data was truncated), so"),
        ("package.json", b'["a"]', "node", ""),
        ("package.json", b"[" * 100_000, "node", "It cannot be parsed (maximum recursion depth exceeded"),
        ("pyproject.toml", b"\xff\xfe", "python", "It cannot be parsed ('utf-8' codec can't decode"),
        ("Cargo.toml", b"= 1", "rust", "It cannot be parsed (Invalid statement"),
        ("pyproject.toml", None, "python", "It is a directory, so the project's name is not known."),
    ],
)
def test_a_broken_manifest_is_named_and_the_kind_is_known(
    tmp_path: Path, name: str, content: bytes | None, kind: str, reason: str
) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    found = detect_project(str(tmp_path))
    assert (found.type, found.name) == (kind, tmp_path.name)
    assert [reason in problem.message for problem in found.problems] == ([True] if reason else [])
