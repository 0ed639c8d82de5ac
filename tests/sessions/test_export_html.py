from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sessions.exported import HOSTILE, NOON, record_full_of, record_of

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    ReasoningBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.sessions.export import html
from robota.sessions.export.html import export_html

DATA = Path(__file__).parent / "data" / "export"
PARTS = Path(html.__file__).parent
TAGS = frozenset(
    (
        "html", "head", "meta", "title", "style", "body", "header", "h1", "dl", "div", "dt", "dd", "details",
        "summary", "ol", "li", "a", "input", "output", "button", "main", "section", "article", "h2", "h3",
        "small", "time", "p", "pre", "span", "code", "strong", "b", "img", "script",
    )
)  # fmt: skip
ATTRIBUTES = frozenset(
    (
        "lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "rel", "target",
        "datetime", "hidden", "type", "placeholder", "aria-label", "alt", "loading", "src",
    )
)  # fmt: skip


class Page(HTMLParser):
    """What a browser makes of a page: its elements, their attributes, its text and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        place = self.open[-1] if self.open else ""
        (self.scripts if place == "script" else self.texts).append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def attribute(self, tag: str, name: str) -> list[str]:
        return [attrs[name] or "" for found, attrs in self.tags if found == tag and name in attrs]


def assert_harmless(text: str) -> Page:
    page = Page(text)
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attrs in page.tags for name in attrs} <= ATTRIBUTES
    assert "".join(page.scripts) == (PARTS / "page.js").read_text()
    assert page.comments == []
    assert page.open == []
    for address in page.attribute("a", "href"):
        assert re.fullmatch(r"#m[0-9]+|https?://[!-~]+", address)
    for source in page.attribute("img", "src"):
        assert re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*", source)
    return page


def said(text: str) -> str:
    return export_html(record_of(UserMessage(text, timestamp=NOON)))


def main_of(document: str) -> str:
    return document[document.index("<main>\n") + 7 : document.index("</main>")]


def test_a_session_looks_as_the_example_shows() -> None:
    record = json.loads((DATA / "session.json").read_text())
    document = export_html(record)

    assert main_of(document) == (DATA / "session.main.html").read_text()
    assert "<title>Prices &amp; &lt;goods&gt;</title>" in document


@pytest.mark.parametrize(
    "text", [*HOSTILE, "javascript:alert(1)", "data:text/html,<b>", "https://a.example/\"'><b>"]
)
def test_text_does_nothing_but_be_shown(text: str) -> None:
    page = assert_harmless(export_html(record_full_of(text)))

    harmless = Page(export_html(record_full_of("harmless")))
    assert page.attribute("article", "id") == harmless.attribute("article", "id")


@given(st.text(st.sampled_from("<>\"'&`*#~/=:;\n \t!-abhjs()[]\x00\u202e\u2028"), max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_mixture_of_marks_does_anything_but_be_shown(text: str) -> None:
    assert_harmless(export_html(record_full_of(text)))


def test_every_word_is_in_the_page_without_its_script() -> None:
    words = ["thought", "spoken", "asked", "answered", "from the file"]
    call = ToolCall("c", "Read", '{"file_path":"asked"}')
    record = record_of(
        UserMessage("spoken", (FilePart("aaaa", "text/plain", "from the file"),), timestamp=NOON),
        AssistantMessage("", (call,), reasoning=(ReasoningBlock("thought"),), timestamp=NOON),
        ToolMessage("answered", "c", "Read", timestamp=NOON),
    )
    page = assert_harmless(export_html(record))

    assert [word for word in words if word not in page.text] == []
    assert ("div", {"id": "tools", "hidden": None}) in page.tags  # the script shows what works only with it


def test_the_page_needs_nothing_from_elsewhere_and_lets_nothing_else_in() -> None:
    document = said("hello")
    policy = Page(document).attribute("meta", "content")[0]
    hashes = [
        base64.b64encode(hashlib.sha256((PARTS / name).read_bytes()).digest()).decode()
        for name in ("page.css", "page.js")
    ]

    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashes[0]}'; "
        f"script-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'"
    )
    assert "link" not in {tag for tag, _ in Page(document).tags}
    assert "url(" not in (PARTS / "page.css").read_text()
    assert "</" not in (PARTS / "page.css").read_text() + (PARTS / "page.js").read_text()


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://example.com/a?b=1&c=%20#d.", ["https://example.com/a?b=1&c=%20#d"]),
        ("(http://example.com)", ["http://example.com"]),
        ("[https://good.example](https://evil.example)", ["https://good.example", "https://evil.example"]),
        ("https://good.example@evil.example", ["https://good.example@evil.example"]),
        ("javascript:alert(1) ftp://a.example file:///etc/passwd //a.example", []),
        ("https://\u0435xample.com", []),
    ],
)
def test_only_written_out_addresses_are_links_and_they_show_their_target(text: str, links: list[str]) -> None:
    page = assert_harmless(said(text))

    assert [href for href in page.attribute("a", "href") if not href.startswith("#")] == links
    assert text in page.text


def test_pictures_are_shown_from_the_page_itself_or_named() -> None:
    record = record_of(
        UserMessage(
            "",
            (
                ImagePart("iVBORw0KGgo=", "image/png"),
                ImagePart("PHN2Zz4=", "image/svg+xml"),
                ImagePart('" onerror="x', "image/png"),
                ImageUriPart("https://example.com/a.png"),
            ),
            timestamp=NOON,
        )
    )
    page = assert_harmless(export_html(record))

    assert page.attribute("img", "src") == ["data:image/png;base64,iVBORw0KGgo="]
    assert "image/svg+xml, 5 bytes" in page.text
    assert "https://example.com/a.png" in page.attribute("a", "href")


def test_calls_and_thoughts_are_folded_and_differences_coloured() -> None:
    edit = ToolCall("c", "Edit", '{"file_path":"a","old_string":"same\\nold","new_string":"same\\nnew"}')
    show = ToolCall("d", "Bash", '{"command":"git diff"}')
    record = record_of(
        AssistantMessage("", (edit, show), reasoning=(ReasoningBlock("hm"),), timestamp=NOON),
        ToolMessage("done", "c", "Edit", timestamp=NOON),
        ToolMessage("@@ -1 +1 @@\n-x\n+y", "d", "Bash", timestamp=NOON, metadata={"success": False}),
    )
    document = main_of(export_html(record))

    assert "<details><summary>Thinking</summary>" in document
    assert '<details class="call"><summary><b>Edit</b> <code>a</code></summary>' in document
    assert (
        '<details class="call failed"><summary><b>Bash</b> failed <code>git diff</code></summary>' in document
    )
    assert ' same\n<span class="del">-old\n</span><span class="ins">+new\n</span></pre>' in document
    assert '<span class="hunk">@@ -1 +1 @@\n</span><span class="del">-x\n</span>' in document


def test_hidden_characters_are_shown() -> None:
    page = assert_harmless(said("a\u202eb\x1b[31m\u200bc"))

    assert "a⟨U+202E⟩b⟨U+001B⟩[31m⟨U+200B⟩c" in page.text


def test_the_prompts_are_listed_with_links_to_them() -> None:
    record = record_of(
        UserMessage("first\nprompt", timestamp=NOON),
        AssistantMessage("answer", timestamp=NOON),
        UserMessage("second", timestamp=NOON),
    )
    document = export_html(record)

    assert '<li><a href="#m1">first prompt</a></li><li><a href="#m3">second</a></li>' in document


def test_secrets_are_removed_unless_asked_otherwise() -> None:
    key = "sk-ant-api03-" + "q" * 40
    record = record_full_of(f"my key is {key}")

    assert key not in export_html(record)
    assert key in export_html(record, redact=False)


@pytest.mark.timeout(60)  # a quadratic step would take hours
def test_a_session_of_ten_thousand_messages_is_one_page() -> None:
    messages = [
        message
        for number in range(2500)
        for message in (
            UserMessage(f"prompt {number} with `code` and https://example.com/{number}", timestamp=NOON),
            AssistantMessage(
                "text\n```\ncode\n```\n", (ToolCall(f"c{number}", "Bash", "{}"),), timestamp=NOON
            ),
            ToolMessage("output\n" * 20, f"c{number}", "Bash", timestamp=NOON),
            AssistantMessage("done", timestamp=NOON),
        )
    ]

    assert export_html(record_of(*messages)).count("<article ") == 7500


@pytest.mark.parametrize("unit", ["`", "**a", "https://a ", "```\n", "<", "# ", "@@ -1 +1 @@\n", "*"])
@pytest.mark.timeout(60)
def test_long_hostile_texts_are_exported_too(unit: str) -> None:
    assert "afterwards" in said(f"{unit * 200_000}\nafterwards")
