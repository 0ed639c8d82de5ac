"""Credentials in the text of HTTP headers: schemes such as Bearer and Basic, and cookies."""

from __future__ import annotations

import re

from robota.sessions.redaction.scan import REDACTED, Decision, Rule, RunTail
from robota.sessions.redaction.values import is_code, is_placeholder, is_snake, looks_chosen, looks_issued

_CREDENTIAL = r"[^\s\"'`\\<>,;&]"
_SCHEME = re.compile(
    r"(?i)[\"'`]?(?P<scheme>bearer|basic|token|apikey|api-key|negotiate|ntlm|oauth|key|bot|splunk|jwt|ssws|genie-key)"
    rf"(?::? +|=|%20|\+)(?P<secret>{_CREDENTIAL}+)"
)
_LIST_SCHEME = re.compile(
    r"(?i)[\"'`]?(?:digest|aws4-hmac-sha256|signature|hawk|oauth|hmac) +(?=[A-Za-z_-]+=)"
)
_LIST_NAME = re.compile(r"(?i)[\"'`]?(?:digest|aws4-hmac-sha256|signature|hawk|oauth|hmac\S{0,8})[ ]+\[")
_OTHER_SCHEME = re.compile(rf"(?P<scheme>[A-Z][A-Za-z0-9-]{{1,24}}) +(?P<secret>{_CREDENTIAL}+)")
_SINGLE = re.compile(rf"(?P<open>\\*[\"'`]?)(?P<secret>{_CREDENTIAL}+)")
_LINE_END = re.compile(r"[ \t]*(?:\r?\n|\\+[nr]|\Z|\\*[\"'`]|[,;)}\]>|])")
_COOKIE = re.compile(
    r"\\*[\"'`]?(?P<secret>[^\s=;,\"'\\<>(){}\[\]]{1,80}=[^\s;,\"'\\<>]*"
    r"(?:; ?[^\s=;\"'\\<>]+(?:=[^\s;\"'\\<>]*)?)*)"
)
_LEVEL = re.compile(r"[\w-]+=(\\{1,7})\"")
_TAIL = RunTail(_CREDENTIAL)
_LIST_TAIL = RunTail(r"[^\n\r\\'`]")
_COOKIE_TAIL = RunTail(r"[^\s;,\"'\\<>]|; ?(?=[^\s;\"'\\<>])", look=3)


def decide_authorization(ahead: str, _ends: bool) -> Decision | None:
    """The value of an Authorization header; the scheme's name stays."""
    if found := _LIST_SCHEME.match(ahead):
        end = re.compile(r"[^\n\r\\'`]*").match(ahead, found.end())
        if level := _LEVEL.match(ahead, found.end()):  # the header stands in a string
            quoted = RunTail(rf"[^\n\r\\'`\"]|(?<!\\)\\{{{len(level[1])}}}\"", look=len(level[1]) + 1)
            return found.end(), found.end(), quoted, REDACTED
        return found.end(), end.end() if end else found.end(), _LIST_TAIL, REDACTED
    found = _SCHEME.match(ahead)
    if found is None and (other := _OTHER_SCHEME.match(ahead)) and looks_issued(other["secret"]):
        found = other
    found = found or _SINGLE.match(ahead)
    if found is None or _LIST_NAME.match(ahead):
        return None
    secret = found["secret"]
    if is_placeholder(secret) or is_code(secret) or is_snake(secret) or REDACTED in secret:
        return None
    alone = _LINE_END.match(ahead, found.end()) is not None
    stated = looks_chosen(secret) or (alone and "scheme" in found.groupdict())
    return (found.start("secret"), found.end(), _TAIL, REDACTED) if stated else None


def decide_cookie(ahead: str) -> Decision | None:
    """The value of a Cookie or Set-Cookie header."""
    found = _COOKIE.match(ahead)
    if found is None or is_placeholder(found["secret"].partition("=")[2]):
        return None
    return found.start("secret"), found.end(), _COOKIE_TAIL, REDACTED


def _bearer(before: str, ahead: str, _ends: bool) -> Decision | None:
    found = re.match(r"[A-Za-z0-9._~+/=:-]+", ahead)
    if found is None or is_placeholder(found.group()):
        return None
    secret = found.group()
    if "://" in secret or (is_code(secret) and not re.search(r"\d", secret)):
        return None
    rest = ahead[found.end() : found.end() + 2]
    if re.match(r"[{(\[<$%]", rest):
        return None
    quoted = re.search(r"(?i)[\"'`]bearer\s+\Z", before) and rest[:1] in ("'", '"', "`", "\\")
    whole = before.strip().lower() == "bearer" and not ahead[found.end() :].strip()
    known = (bool(re.search(r"\d", secret)) and len(secret) >= 6) or looks_issued(secret) or len(secret) >= 24
    if known or ((quoted or whole) and not _SCHEME_WORD.fullmatch(secret)):
        return 0, found.end(), _BEARER_TAIL, REDACTED
    return None


_SCHEME_WORD = re.compile(
    r"(?i)tokens?|auth\w*|schemes?|realm.*|headers?|credentials?|format|only|error.*|not|is|and|or|\.+"
)
_BEARER_TAIL = RunTail(r"[A-Za-z0-9._~+/=:-]")


def _basic(_before: str, ahead: str, _ends: bool) -> Decision | None:
    found = re.match(r"[A-Za-z0-9+/=_-]{6,}", ahead)
    if found is None or not _is_login(found.group()):
        return None
    return 0, found.end(), _BASIC_TAIL, REDACTED


def _basic_or_next(before: str, ahead: str, ends: bool) -> Decision | None:
    """`Basic dXNlcjpw…`, and `http-basic.host user password` of a package tool's settings"""
    if before[-1] == " " and before.rstrip()[-5:].lower() != "basic":
        found = re.match(r"[^\s\"'`\\]+", ahead)
        stated = found and looks_chosen(found.group()) and not is_placeholder(found.group())
        return (0, found.end(), None, REDACTED) if found and stated else None
    return _basic(before, ahead, ends)


_BASIC_TAIL = RunTail(r"[A-Za-z0-9+/=_-]")


def _is_login(encoded: str) -> bool:
    """Whether Base64 text holds `user:password`."""
    import binascii  # noqa: PLC0415 - only for a text that says "Basic"

    whole = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    whole = whole[: len(whole) // 4 * 4] if len(whole) % 4 == 1 else whole + "=" * (-len(whole) % 4)
    try:
        plain = binascii.a2b_base64(whole)
    except binascii.Error:
        return False
    return b":" in plain and all(32 <= byte < 127 for byte in plain)


SCHEMES: tuple[Rule, ...] = (
    Rule(
        ("bearer",),
        r"bearer(?<![a-z0-9_]bearer)(?:[ \t]{1,4}|\r?\n[ \t]{1,4}|%20|\+|\\{0,7}\", ?\\{0,7}\")"
        r"(?=[a-z._~+/=:-]{0,100}[0-9]|[a-z._~+/=:-]{20}|[a-z._~+/=:-]{1,19}(?:\\{0,15}[\"'`]|\s{0,4}(?:\Z|\n)))",
        decide=_bearer,
        folded=True,
    ),
    Rule(
        ("basic",),
        r"basic(?<![a-z0-9_]basic)(?:(?:\s{1,4}|%20)(?=[a-z0-9+/]{6})"
        r"|(?<=http-basic)\.[\w.-]{1,60} \S{1,40} (?=\S))",
        decide=_basic_or_next,
        folded=True,
    ),
)
