"""What a package index shows: the README, whose links lead to files that are not there.

`python -m tests.support.package_page` writes PACKAGE.md anew; `tests/test_packaging.py` compares the two.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "PACKAGE.md"
ARCHIVE = "Files that this page names, such as `docs/index.md`, are in the source archive of the release."
_PICTURE = re.compile(r"^!\[[^]]*\]\((?!https?:)[^)]*\)\n\n", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)#]+)[^)]*\)")


def make_page(readme: str) -> str:
    """The README with the paths of files where it has links to them, and without its pictures."""
    title, first, rest = _PICTURE.sub("", readme).split("\n\n", 2)
    return "\n\n".join([title, first, ARCHIVE, _LINK.sub(_name_file, rest)])


def _name_file(link: re.Match[str]) -> str:
    text, path = link.groups()
    return f"`{path}`" if text == path else f"{text} (`{path}`)"


if __name__ == "__main__":
    PAGE.write_text(make_page((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
