from __future__ import annotations

import sys

import pytest

from robota.tools.web.page import MAX_HTML, MarkdownPage, convert_page
from robota.tools.web.render import render_markdown
from robota.tools.web.scan import Tag, scan_html, strip_tags

BASE = "https://site.test/docs/page"


def render(html: str) -> str:
    return render_markdown(html, BASE)


# --- tags and text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "tokens"),
    [
        ("a<b>c</b>", ["a", Tag("b"), "c", Tag("b", closing=True)]),
        ("<BR/>x", [Tag("br", empty=True), "x"]),
        ("<a HREF=x title='a>b' data-x>", [Tag("a", attributes={"href": "x", "title": "a>b", "data-x": ""})]),
        ('<a href="a&amp;b" href=second>', [Tag("a", attributes={"href": "a&b"})]),
        ("1 < 2 &lt; 3 &#x33; &nope; &", ["1 ", "<", " 2 < 3 3 &nope; &"]),
        ("a<!-- <b> -->c<!doctype x><?php ?>d</ x>e", ["a", "c", "d", "e"]),
        ("a<!-->b", ["a", "b"]),
        ("<script>if (a < b) '</p>'</SCRIPT >x", [
            Tag("script"), "if (a < b) '</p>'", Tag("script", closing=True), "x",
        ]),
        ("<title>a<b>&amp;</title>", [Tag("title"), "a<b>&", Tag("title", closing=True)]),
        ("a<b unfinished='", ["a"]),
        ("a<!-- unfinished", ["a"]),
        ("<script>unfinished", [Tag("script"), "unfinished"]),
        ("&#999999999999999999999999;", ["&#999999999999999999999999;"]),
    ],
)  # fmt: skip
def test_html_is_cut_as_browsers_cut_it(html: str, tokens: list[Tag | str]) -> None:
    assert [token for token in scan_html(html) if token != ""] == tokens


def test_a_snippet_loses_its_tags() -> None:
    assert strip_tags("the <strong>best</strong> &amp; only") == "the best & only"


# --- the plain renderer ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h1>One</h1><h3>Two\nlines</h3>text", "# One\n\n### Two lines\n\ntext"),
        ("<p>a  b\n c</p><p>d<br>e</p><hr><div>f</div>", "a b c\n\nd\ne\n\n---\n\nf"),
        ("a <b>bold </b>and <em>soft</em> <code>x</code>", "a **bold** and *soft* `x`"),
        ("<b>a<b>b</b>c", "**ab**c"),
        ("<b></b>x<i> </i>y", "x y"),
        ("<b><i>x</b>y</i>", "***x***y"),
        ("<p><b>one<p>two</b>", "**one**\n\n**two**"),
        ("<a href='../x?a=1#b'>go</a>", "[go](https://site.test/x?a=1#b)"),
        ("<a href=//other.test/a(b)>go</a>", "[go](https://other.test/a(b%29)"),
        ("<a href='#top'>top</a> <a href='javascript:x'>js</a> <a>none</a>", "top js none"),
        ("<a href=/a>one<a href=/b>two</a>", "[one](https://site.test/a)[two](https://site.test/b)"),
        ("<a href='http://['>odd</a>", "odd"),
        ("<img src=i.png alt='An image'><img src=x.png>", "![An image](https://site.test/docs/i.png)"),
        ("<img alt=dot src='data:image/png;base64,AAAA'>", "dot"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e", "- a\n- b\n  - c\n- d\n\ne"),
        ("<ol><li>a</li><li><p>b</p><p>c</p></li></ol>", "1. a\n2. b\n\n   c"),
        ("<blockquote>a<br>b</blockquote>c", "> a\n> b\n\nc"),
        (
            "<pre><code class='hl language-py'>if a:\n    b &lt; c\n</code></pre>",
            "```py\nif a:\n    b < c\n```",
        ),
        ("<pre>a<br>```</pre>", "````\na\n```\n````"),
        (
            "<table><thead><tr><th>a<th>b|c</thead><tr><td>1<td><p>2</p><p>3</p></table>x",
            "| a | b\\|c |\n| --- | --- |\n| 1 | 2 3 |\n\nx",
        ),
        ("<table><tr><td>a<table><tr><td>b</table>c<td>d</table>", "| a b c | d |\n| --- | --- |"),
        ("<head><title>t</title><style>s</style><body><nav>menu<nav>x</nav></nav>text<svg/>s", "texts"),
        ("<script>s</script>a<noscript>n</noscript><template>t</template>b", "ab"),
        ("</li></ul></b></a></table></pre>text", "text"),
        ("", ""),
    ],
)
def test_a_page_is_rendered(html: str, markdown: str) -> None:
    assert render(html) == markdown


@pytest.mark.timeout(30)  # what takes half a second would take hours
@pytest.mark.parametrize(
    "piece",
    [
        "<!--", "<a ", "<!", "</a ", "<a b='", "<![CDATA[", "<div>x", "<ul><li>x", "<blockquote>x", "<b><i>x",
        "<a href=x>y", "&#", "&amp", "<table><tr><td>x", "<tr><td>x", "<script>", "<pre>", "<nav>",
        "<a href=x><div>y", "< ", "<ol><li>",
    ],
)  # fmt: skip
def test_work_grows_with_the_page_and_not_faster(piece: str) -> None:
    assert len(render(piece * (400_000 // len(piece)))) < 2_000_000


# --- the two ways ---------------------------------------------------------------------------------

PAGE = (
    "<html><head><title> A\n page </title></head><body><nav>menu</nav><h1>Hi</h1>"
    "<p>a <a href='/x'>link</a></p><pre><code class='language-py'>x = 1\n</code></pre>"
    "<script>evil()</script></body></html>"
)
MARKDOWN = "# Hi\n\na [link](https://site.test/x)\n\n```py\nx = 1\n```"


def test_the_extra_and_the_plain_renderer_agree_on_a_simple_page() -> None:
    import html_to_markdown

    assert html_to_markdown.__name__
    assert convert_page(PAGE, BASE) == MarkdownPage("A page", MARKDOWN, False)
    assert convert_page(PAGE, BASE, plainly=True) == MarkdownPage("A page", MARKDOWN, False)


def test_without_the_extra_pages_are_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "html_to_markdown", None)
    page = "<div>" * 2000 + "deep"

    assert convert_page(page, BASE).text == "deep"


def test_what_the_extra_loses_the_plain_renderer_finds() -> None:
    assert convert_page("<div>" * 2000 + "deep", BASE).text == "deep"


@pytest.mark.parametrize("plainly", [True, False])
def test_what_nobody_sees_does_not_count_as_length(plainly: bool) -> None:
    filler = "x" * MAX_HTML
    page = f"<script>{filler}</script><style>{filler}</style><!--{filler}--><svg><title>t{filler}</svg>seen"

    assert convert_page(page, BASE, plainly=plainly) == MarkdownPage("", "seen", False)


def test_a_page_that_is_too_long_is_cut() -> None:
    page = convert_page("<svg> never closed " * 10 + "<p>word</p>" * MAX_HTML, BASE, plainly=True)

    assert page.cut
    assert len(page.text) < MAX_HTML
