from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.support.documented import PAGES, ROOT, read_programs
from tests.support.fork_server import run_code

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
BLOCKS = [
    pytest.param(program.text, id=f"{program.page.relative_to(ROOT)}:{program.line}")
    for program in read_programs()
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_of_the_documentation_runs(block: str, tmp_path: Path) -> None:
    environment = {
        key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL"))
    }
    environment["HOME"] = str(tmp_path)  # what the reader of the page has at home is not a part of it
    strict = "import warnings; warnings.simplefilter('error')"
    done = run_code(f"{strict}\n{block}", cwd=tmp_path, env=environment)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_of_the_documentation_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
