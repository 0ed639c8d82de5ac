from __future__ import annotations

import pytest

from robota.http.errors import UrlError
from robota.http.url import host_matches, judge_redirect, parse_url

# --- one meaning per URL --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:80", "http://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://example.org:/x", "http://example.org/x"),
        ("http://example.org?q", "http://example.org/?q"),
        ("http://Bücher.de/é", "http://xn--bcher-kva.de/%C3%A9"),
        ("http://ｅxample。org/", "http://example.org/"),
        ("http://[::FFFF:127.0.0.1]:8080/", "http://[::ffff:127.0.0.1]:8080/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.0.0.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://a_b.example.org/<x>", "http://a_b.example.org/%3Cx%3E"),
    ],
)
def test_a_url_has_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_url(text)) == canonical
    assert str(parse_url(canonical)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http:example.org",
        "http:///example.org",
        "http://",
        "http://good.org@evil.org/",
        "http://user:secret@example.org/",
        "http://good.org\\@evil.org/",
        "http:\\\\example.org",
        "http://exam ple.org/",
        " http://example.org/",
        "http://example.org/\n",
        "http://example.org\0.evil.org/",
        "http://example.org/\u202egnp",
        "http://example.org/\ud800",
        "http://%65xample.org/",
        "http://a..b/",
        "http://-a.org/",
        "http://℀.org/",
        "http://faß.de/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://::1/",
        "http://1.2.3.4.5/",
        "http://256.0.0.1/",
        "http://host.1/",
        "http://08.1/",
        "http://4294967296/",
        "http://example.org:0/",
        "http://example.org:65536/",
        "http://example.org:8o/",
        "http://example.org:80:80/",
        "http://" + "a." * 127 + "aa/",
        "http://example.org/" + "x" * 9000,
    ],
)
def test_a_url_that_can_be_misread_is_refused(text: str) -> None:
    with pytest.raises(UrlError, match=r"^The URL is refused: .*\.$"):
        parse_url(text)


@pytest.mark.parametrize(
    ("rule", "host", "matches"),
    [
        ("example.org", "example.org", True),
        ("Example.ORG.", "example.org", True),
        ("example.org", "notexample.org", False),
        ("example.org", "example.org.evil.com", False),
        ("example.org", "www.example.org", False),
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("api.*.org", "api.example.org", True),
        ("api.*.org", "api.a.b.org", False),
        ("*", "anything.at.all", True),
        ("bücher.de", "xn--bcher-kva.de", True),
        ("[::1]", "::1", True),
        ("127.0.0.1", "127.0.0.1", True),
    ],
)
def test_host_rules_match_whole_labels(rule: str, host: str, matches: bool) -> None:
    assert host_matches(rule, host) is matches


# --- redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "location", "target", "reason"),
    [
        ("https://a.org/x/y", "z?q=1", "https://a.org/x/z?q=1", ""),
        ("http://a.org/", "https://a.org/", "https://a.org/", ""),
        ("http://a.org/", "//b.org/", "http://b.org/", "it leads to another host, b.org"),
        ("https://a.org/", "https://www.a.org/", "https://www.a.org/", "it leads to another host, www.a.org"),
        ("https://a.org/", "http://a.org/", "http://a.org/", "it leads from https to http"),
        ("http://a.org/", "http://a.org:8080/", "http://a.org:8080/", "it leads to another port, 8080"),
    ],
)
def test_only_the_same_host_is_followed(url: str, location: str, target: str, reason: str) -> None:
    redirect = judge_redirect(parse_url(url), location, followed=0)
    assert (str(redirect.url), redirect.follow, redirect.reason) == (target, not reason, reason)


def test_the_sixth_redirect_is_not_followed() -> None:
    url = parse_url("http://a.org/")
    assert judge_redirect(url, "/b", followed=4).follow
    assert not judge_redirect(url, "/b", followed=5).follow


@pytest.mark.parametrize("location", ["http://u@b.org/", "javascript:alert(1)", "http:\\\\b.org", "/a b"])
def test_a_malformed_redirect_is_refused(location: str) -> None:
    with pytest.raises(UrlError):
        judge_redirect(parse_url("http://a.org/"), location, followed=0)
