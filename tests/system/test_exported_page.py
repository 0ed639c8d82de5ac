from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.sessions.exported import HOSTILE, NOON, record_full_of, record_of

from robota.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from robota.sessions.export.html import export_html

pytestmark = pytest.mark.system

SEARCH = """<script>
document.getElementById("search").value = "NEEDLE";
document.getElementById("search").dispatchEvent(new Event("input"));
</script>"""


def opened(tmp_path: Path, page: str) -> str:
    """What a real browser has made of a page two seconds after opening it."""
    browser = shutil.which("chromium")
    assert browser, "chromium is missing: run `make test-system`, which installs it"
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=2000",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )
    return done.stdout


def test_hostile_text_does_nothing_in_a_real_browser(tmp_path: Path) -> None:
    attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    page = opened(tmp_path, export_html(record_full_of("\n".join([*HOSTILE, attack]))))

    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert title[1].startswith("&lt;/script&gt;")
    assert page.count("<script") == 1
    assert "onerror=alert(1)&gt;" in page


def test_the_content_policy_stops_what_is_not_the_pages_own(tmp_path: Path) -> None:
    page = export_html(record_of(UserMessage("hello", timestamp=NOON)))
    planted = page.replace("</main>", "</main><script>document.title = 'owned'</script>")

    assert "<title>Session s1</title>" in opened(tmp_path, planted)


def test_the_script_offers_a_search_that_finds_what_is_folded(tmp_path: Path) -> None:
    call = ToolCall("c", "Read", "{}")
    record = record_of(
        UserMessage("hay", timestamp=NOON),
        AssistantMessage("", (call,), timestamp=NOON),
        ToolMessage("a needle in it", "c", "Read", timestamp=NOON),
    )
    page = export_html(record)
    assert '<div id="tools" hidden>' in page

    asked = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace(
        "</body>", f"{SEARCH}</body>"
    )
    found = opened(tmp_path, asked)

    assert '<div id="tools">' in found
    assert '<output id="found">1 of 2</output>' in found
    assert '<article id="m1" class="user" hidden="">' in found
    assert '<details class="call" open="">' in found
