"""The programs of the pages, as another strict type checker sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.documented import write_programs

pytestmark = pytest.mark.system


def test_the_programs_of_the_pages_pass_pyright_strict(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    write_programs(programs)
    settings = {"typeCheckingMode": "strict", "include": ["."]}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    subprocess.run(["npm", "install", "--silent", "--prefix", str(tmp_path), "pyright"], check=True)

    done = subprocess.run(
        [tmp_path / "node_modules/.bin/pyright", "--pythonpath", sys.executable],
        cwd=programs,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
