"""The files of the web page, as a browser gets them."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

WEB = Path(str(files("robota.transports") / "web"))
SOURCES = sorted(WEB.iterdir())


def test_the_page_asks_for_nothing_that_is_not_beside_it() -> None:
    names = {path.name for path in SOURCES}
    page = (WEB / "index.html").read_text("utf-8")
    wanted = set(re.findall(r'(?:src|href)="([^"#]+)"', page))
    for path in WEB.glob("*.js"):
        wanted |= {name.removeprefix("./") for name in re.findall(r'from "([^"]+)"', path.read_text("utf-8"))}
    assert wanted - names == set()
    for path in SOURCES:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?://[\w.-]+\.\w+|url\(|@import", text) == []


def test_the_whole_page_is_small_as_it_is_served() -> None:
    assert sum(path.stat().st_size for path in SOURCES) < 120_000


def test_the_page_has_no_script_or_style_inside_and_makes_no_markup_of_text() -> None:
    page = (WEB / "index.html").read_text("utf-8")
    assert re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page) is None
    for path in WEB.glob("*.js"):
        text = path.read_text("utf-8")
        made = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        assert re.search(made, text) is None
