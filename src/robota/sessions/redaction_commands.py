"""Secrets in URLs and on command lines: user information, signatures, options, .netrc and .pgpass lines."""

from __future__ import annotations

import re

from robota.sessions.redaction_headers import decide_cookie
from robota.sessions.redaction_names import Strength, name_strength
from robota.sessions.redaction_scan import REDACTED, Decide, Decision, Rule, RunTail
from robota.sessions.redaction_values import (
    is_code,
    is_dashed,
    is_path,
    is_placeholder,
    is_snake,
    looks_chosen,
    looks_issued,
)

_URL_PASSWORD = re.compile(
    r"(?P<user>[^\s/:@\"'`<>\\?#]{0,80}):(?P<secret>[^\s/@\"'`<>\\?#]{1,120})@(?=[\w\[(${.*-])"
)
_URL_PASSWORD_SLASHED = re.compile(
    r"(?P<user>[\w.%+-]{1,40}):(?P<secret>[^\s@\"'`<>\\]{1,100})@(?=[\w.-]{1,50}[:/]|tcp\()"
)
_URL_TOKEN = re.compile(r"(?P<secret>[A-Za-z0-9_-]{20,140})@(?![\w.-]*sentry\.io)(?=[\w.-]+)")
_WORD_TAIL = RunTail(r"[^\s\"'`\\]")


def _url(_before: str, ahead: str, _ends: bool) -> Decision | None:
    found = _URL_PASSWORD.match(ahead)
    if found is None:
        found = _URL_TOKEN.match(ahead)
        return (0, found.end("secret"), None, REDACTED) if found and looks_issued(found["secret"]) else None
    secret = found["secret"]
    if _is_template(secret) or REDACTED in secret:
        return None
    start = found.start("user") if looks_issued(found["user"]) else found.start("secret")
    return start, found.end("secret"), None, REDACTED


def _is_template(value: str) -> bool:
    return bool(re.match(r"[$<{%*\[]|\.\.|x{3,}\Z|…|•", value)) and is_placeholder(value) or "{" in value


def _signature(_before: str, ahead: str, _ends: bool) -> Decision | None:
    found = re.match(r"[A-Za-z0-9%+/=_.-]{12,}", ahead)
    if found is None or not (re.search(r"\d", found.group()) or "%" in found.group()):
        return None
    return 0, found.end(), RunTail(r"[A-Za-z0-9%+/=_.-]"), REDACTED


def _option(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`--password value`"""
    if quoted := re.match(r"([\"'])(?=\S* )(?P<secret>[^\"'\n]+)\1", ahead):
        return (
            (quoted.start("secret"), quoted.end("secret"), None, REDACTED) if _names_secret(before) else None
        )
    name = re.search(r"--?([A-Za-z][A-Za-z0-9_-]*)[\"',\]\s]*\Z", before[-80:])
    strength = name_strength(name.group(1)) if name else Strength.NONE
    found = re.match(r"[\"']?(?P<secret>[^\s\"'`\\]+)", ahead)
    if strength is Strength.NONE or found is None:
        return None
    secret = found["secret"]
    if secret.startswith(("-", "=")) or REDACTED in secret or is_placeholder(secret) or is_code(secret):
        return None
    ends = _AFTER.match(ahead, found.end()) is not None
    stated = looks_chosen(secret) or (ends and (is_dashed(secret) or _CAMEL.search(secret) is not None))
    if is_path(secret) or is_snake(secret):
        return None
    return (found.start("secret"), found.end(), _WORD_TAIL, REDACTED) if stated else None


_CAMEL = re.compile(r"[a-z][A-Z][a-z]")
_AFTER = re.compile(r"[\"']?[ \t]*(?:\Z|\r?\n|\\|-|[|;&])")


def _names_secret(before: str) -> bool:
    name = re.search(r"--?([A-Za-z][A-Za-z0-9_-]*)[\s=]*\Z", before[-80:])
    return name is not None and name_strength(name.group(1)) >= Strength.TEXT


def _login(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`curl -u user:password`"""
    line = before[max(before.rfind("\n"), before.rfind("\\n")) + 1 :]
    found = re.match(r"[\"']?[\w.@+%-]+:(?P<secret>[^\s\"'`\\]+)", ahead)
    if found is None or not re.search(r"\b(?:curl|https?|xh|wget)\b", line):
        return None
    secret = found["secret"]
    if is_placeholder(secret) or is_code(secret) or secret.startswith("//") or REDACTED in secret:
        return None
    return found.start("secret"), found.end(), _WORD_TAIL, REDACTED


def _word(_before: str, ahead: str, _ends: bool) -> Decision | None:
    """The next word, whatever it is."""
    found = re.match(r"[\"']?(?P<secret>[^\s\"'`\\]+)", ahead)
    if (
        found is None
        or is_placeholder(found["secret"])
        or found["secret"].startswith(("-", "("))
        or REDACTED in found["secret"]
    ):
        return None
    return found.start("secret"), found.end(), _WORD_TAIL, REDACTED


def _chosen_word(before: str, ahead: str, ends: bool) -> Decision | None:
    decision = _word(before, ahead, ends)
    if decision and looks_chosen(ahead[decision[0] : decision[1]]):
        return decision
    return None


def _rule(needle: str, pattern: str, decide: Decide = _word) -> Rule:
    return Rule((needle,), pattern, decide=decide)


_GAP = r"[^\n\\;|]{0,80}?"

_FLAG = (
    r"(?:password|passwd|passphrase|pass|pwd|secret|token|key|credentials|bearer)"
    r"(?:[ \t]{1,4}|[\"'],[ \t\n]{0,20}[\"'])(?=[^\s=-])"
)
_DIRECTIVE = r"[ \t]{1,8}[\"']?[\w.-]{0,40}?(?:password|passwd|passphrase|secret|token|key|credentials|authorization)[ \t]{1,8}(?=[^\s=:|&])"


def _directive(before: str, ahead: str, ends: bool) -> Decision | None:
    """`ENV DB_PASSWORD value`, `setx NAME value`, `#define NAME "value"`"""
    name = re.search(r"([\w.-]+)[ \t]+\Z", before[-64:])
    strength = name_strength(name.group(1)) if name else Strength.NONE
    decision = _word(before, ahead, ends) if name and strength >= Strength.TEXT else None
    if name is None or decision is None:
        return None
    secret = ahead[decision[0] : decision[1]]
    if is_code(secret) or not (looks_chosen(secret) or (name.group(1).isupper() and not secret.isalpha())):
        return None
    return decision


def _curl_cookie(_before: str, ahead: str, _ends: bool) -> Decision | None:
    return decide_cookie(ahead)


def _until_at(_before: str, ahead: str, _ends: bool) -> Decision | None:
    end = ahead.find("@")
    return (0, end, None, REDACTED) if end > 0 and REDACTED not in ahead[:end] else None


COMMANDS: tuple[Rule, ...] = (
    Rule((), r"://(?=[^\s/@]{1,200}@)", decide=_url),
    Rule((), r":\\/\\/(?=[^\s/@]{1,200}@)", decide=_url),
    Rule(
        (), r"sig(?:nature)?=(?:(?<=[?&;]sig=)|(?<=[?&;-]signature=))(?=\S)", decide=_signature, folded=True
    ),
    Rule((), rf"--(?<![\w-]--)(?=[a-z])[a-z0-9_-]{{0,40}}?{_FLAG}", decide=_option, folded=True),
    Rule((), rf" -(?=[a-z])[a-z0-9_-]{{0,40}}?{_FLAG}", decide=_option, folded=True),
    Rule(
        (" -u", "-user ", "-user=", " -a"),
        r"\s(?:-u|--user|--proxy-user|-U|-a|--auth)(?: {1,3}|=|(?=[\"'\w]))",
        decide=_login,
    ),
    *(
        Rule((), rf"{word}{_DIRECTIVE}", decide=_directive, folded=True)
        for word in (
            r"env(?<![\w.-]env)",
            r"arg(?<![\w.-]arg)",
            "setx",
            " set(?: -[a-z]{1,3})?",
            r"\nset -[a-z]{1,3}",
            "#define",
            r"header(?:_up)?(?: set)?",
        )
    ),
    Rule((), r"set -(?<!\wset -)[a-z]{1,3}" + _DIRECTIVE, decide=_directive, folded=True),
    # options of one letter
    _rule(" -p", rf"\bmongo(?:sh|dump|restore|import|export)?{_GAP}\s-p "),
    _rule(" -P", rf"\bsqlcmd{_GAP}\s-P "),
    _rule(" -P", r"\b(?:un)?zip\s(?:-\w+ )?-P "),
    _rule(" -N", rf"\bssh-keygen{_GAP}\s-N (?=['\"]?[^\s'\"])"),
    Rule((" -b", "--cookie"), r"\bcurl\s[^\n]{0,80}?(?:-b|--cookie)[ =]", decide=_curl_cookie),
    _rule("htpasswd", r"\bhtpasswd -\w*b\w* \S{1,80} \S{1,40} "),
    _rule(" -U", rf"\bsmbclient{_GAP}\s-U ['\"]?[\w.-]{{1,40}}%"),
    _rule(" -p", r"\bsshpass\s+-p ?"),
    _rule(" -p", rf"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump){_GAP}\s-p(?=[^\s-])"),
    _rule(
        " -p",
        rf"\b(?:docker|podman|helm|oras|crane|nerdctl|registry|az|ecr|acr){_GAP} login{_GAP}\s-p ",
        _chosen_word,
    ),
    _rule(" -a", rf"\bredis-cli{_GAP}\s-a "),
    _rule(" -w", rf"\bldap(?:search|modify|add|delete|whoami|passwd){_GAP}\s-w "),
    _rule("pass:", r"\s-(?:pass|passin|passout) pass:"),
    # statements and dialogues
    _rule("SecureString", r"ConvertTo-SecureString (?:-String )?(?=[\"'])"),
    _rule("IDENTIFIED", r"IDENTIFIED (?:WITH \w+ )?BY (?=['\"])"),
    _rule("PASSWORD", r"\bPASSWORD (?:FOR \S{1,80} = )?(?=['\"])"),
    _rule("AUTH", r"\"AUTH\" (?=\")|\bAUTH (?:PLAIN|LOGIN) (?=[A-Za-z0-9+/]{8})"),
    _rule("PASS ", r"(?:> |\n|\A)PASS (?=\S)", _chosen_word),
    # lines of files
    _rule(
        "password ",
        r"\blogin\s{1,4}\S{1,80}\s{1,8}password\s{1,4}|\bmachine\s{1,4}\S{1,80}\s{1,8}password\s{1,4}",
        _chosen_word,
    ),
    _rule("password ", r"(?:\n|\A)[ \t]{0,8}password (?=\S{5,80}[ \t]{0,4}(?:\n|\Z))", _chosen_word),
    _rule("thin:", r"jdbc:oracle:thin:\w{1,40}/(?=[^\s@]{1,60}@)", _until_at),
    _rule("@tcp(", r"[\w.-]{1,40}:(?=[^\s:@/]{1,80}@tcp\()", _until_at),
    Rule(
        (":5432:", ":*:", ":5433:", ":6432:"),
        r":(?:5432|5433|6432|\*):(?:\*|[A-Za-z_][\w-]{0,60}):(?:\*|[A-Za-z_][\w-]{0,60}):(?=\S)",
        decide=_word,
    ),
)
