"""Secrets in files: what stands before them, their line or the heading of their column betrays them.

A cell of CSV, of Markdown or of what databases print is judged by the heading of its column as long as that
stands within the stretch a rule may look back.
"""

from __future__ import annotations

import re

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.commands import after, chosen_argument, chosen_word, issued_argument, next_word
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.rules import BEHIND, Decision, Rule, RunTail, follows, take
from robota.sessions.redaction.values import (
    PHRASE,
    is_code,
    is_dashed,
    is_path,
    is_stand_in,
    looks_chosen,
    looks_issued,
    repeats_name,
)


def _line_of_file(before: str, ahead: str, ends: bool) -> Decision | None:
    """`login jane password …` of .netrc, `password …` alone on a line of .msmtprc, "with password …\""""
    if _SAID.search(before[-40:]):
        return _mixed_word(before, ahead, ends)
    if _LINE_OF_PROGRAM.search(before[-120:]):
        return next_word(before, ahead, ends)
    return chosen_word(before, ahead, ends) if _FILE_LINE.search(before[-120:]) else None


_SAID = lazy_pattern(r"(?i)(?:\b(?:with|using|use|and)|[,(]) (?:the )?password \Z")
_mixed_word = follows(
    r"(?P<secret>(?=[^\s]{0,40}[a-z])(?=[^\s]{0,40}[A-Z])(?=[^\s]{0,40}[0-9])[^\s\"'`\\,;()<>]{8,60}?)(?=[.:]?[\s,;)]|[.:]?\Z)",
    looks=lambda secret: not (is_stand_in(secret) or is_code(secret)),
)
_LINE_OF_PROGRAM = lazy_pattern(
    r"\b(?:nmcli|rclone|mysqladmin) [^\n]* pass(?:word)? \Z|\bwpa_passphrase \S+ \Z|set-initial-password \Z"
    r"|CONFIG SET requirepass \Z"
)
_FILE_LINE = lazy_pattern(
    r"(?:(?:\n|\A)[ \t]*(?:user(?:name)? \S+ (?:privilege \d+ )?)?[\w-]*"
    r"|\b(?:login|machine)\s+\S+\s+)(?:password|requirepass)\s+(?:[057] )?\Z"
    r"|(?:(?:\n|\A)[ \t]*|\)#[ ]?)(?:enable|username \S+(?: privilege \d+)?) (?:secret|password) (?:\d )?\Z"
)
_SECRET_DATA = r"(?s)kind: Secret.*\n[ \t]*(?:data|stringData):\n(?:[ \t]+[^\n]*\n)*[ \t]+[\w.-]+: ?\Z"


_setting = after(
    r"(?i)(?:\n|\A|\\n|[\"'`])[ \t]*(?:\w{0,12}pw(?:[ \t]+--plaintext)?|masterauth)[ \t]+\Z",
    next_word,
)
"""`bindpw …` alone on a line of an LDAP client's settings"""


def _pgpass(before: str, ahead: str, ends: bool) -> Decision | None:
    """`host:port:database:user:password`"""
    found = _PGPASS_PASSWORD.match(ahead)
    if found is None or not (line := _PGPASS.search(before)) or is_stand_in(secret := found["secret"]):
        return None
    certain = "543" in line[1] and len(secret) > 3 and not secret.isdigit()
    return take(found) if certain or looks_chosen(secret) else None


_PGPASS = lazy_pattern(r"(?:\A|[\s\"'`>+|→]|\\n)([\w.*/-]{1,80}:(?:\*|\d{4,5}):[\w*-]+:[\w*-]+:)\Z")
_PGPASS_PASSWORD = lazy_pattern(r"(?P<secret>(?:[^\s\"'`\\:|;&<>()]|\\[:\\])+)(?=[\s\"'`|;&<>)]|\\n|\Z)")
_PARTICLE = r"[는은이가를을]?[ \t]{0,2}[:=：]?[ \t]{0,4}[\"'`]?"
_ASCII = r"(?![\"'`\\|;&<>()])[!-~]"
_KOREAN = rf"(?P<secret>(?:{_ASCII})+)"
_KOREAN_TAIL = RunTail(_ASCII)
"""Syllables follow without a blank."""
_ASIDE = lazy_pattern(
    r"\s?(?:에서|에\s|컬럼|필드|환경|파일|변수|함수|참고|계정|사용자|이라는|라는"
    r"|으?로\s?+(?!변경|설정|바|재설정|초기화|로그인|접속|들어|입력|하))"
)
"""What says that the word before it is no password: where it is kept, how it is hashed."""


def _korean_password(before: str, ahead: str, ends: bool) -> Decision | None:
    """`비밀번호는 hunter2입니다`"""
    decision = _korean_word(before, ahead, ends)
    return None if decision is None or _ASIDE.match(ahead, decision[1]) else decision


_korean_word = follows(
    _KOREAN,
    _KOREAN_TAIL,
    looks=lambda secret: (
        looks_chosen(secret) and not (is_code(secret) or is_path(secret) or is_stand_in(secret))
    ),
)
_korean_key = after(
    rf"(?i)(?:토큰|(?:api|시크릿|액세스|인증|접속|비밀|개인|서비스) ?키){_PARTICLE}\Z",
    follows(_KOREAN, _KOREAN_TAIL, looks=lambda secret: looks_issued(secret) and not is_stand_in(secret)),
)
_HASH = (
    r"(?:\$?2[abxy]\${1,2}\d\d\${1,2}[./A-Za-z0-9]{53}|\$?(?:apr1|1)\${1,2}[./A-Za-z0-9]{1,8}\${1,2}[./A-Za-z0-9]{22}"
    r"|[56]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}|y\$j[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,30}"
    r"\$[./A-Za-z0-9]{43}|argon2id?\$v=\d{1,3}\$m=\d{1,9},t=\d{1,3},p=\d{1,3}\$[A-Za-z0-9+/]{8,40}\$[A-Za-z0-9+/]{20})"
)

# --- tables --------------------------------------------------------------------------------------------


def _cell(before: str, ahead: str, _ends: bool) -> Decision | None:
    *lines, row = before.split("\n")
    if len(before) >= BEHIND:
        del lines[:1]  # it may have been cut
    lines = [line for line in lines if not _RULER.fullmatch(line)]
    rest = ahead.partition("\n")[0]
    if lines and _GAP.search(lines[-1]) and _delimiter(lines[-1]) is None:  # columns of blanks
        row, rest = _GAP.sub("\t", row.lstrip()), _GAP.sub("\t", rest.rstrip())
        lines = [_GAP.sub("\t", line.strip()) for line in lines]
    if not lines or (delimiter := _delimiter(lines[-1])) is None:
        return None
    width, heading = lines[-1].count(delimiter), ""
    for line in reversed(lines):
        if line.count(delimiter) != width:
            break
        heading = line
    if row.count(delimiter) + rest.count(delimiter) != width or heading.rstrip()[-1:] == ",":
        return None
    names = [cell.strip(" \t\r\"'`*") for cell in _OPENING.sub("", heading).split(delimiter)]
    column = row.count(delimiter)
    if column >= len(names) or not all(map(_HEADING.fullmatch, names)):
        return None
    return _judge(names[column], ahead)


def _delimiter(line: str) -> str | None:
    return next((sign for sign in "\t|│;," if sign in line), None)


def _judge(name: str, ahead: str) -> Decision | None:
    found, strength = _CELL_VALUE.match(ahead), _IN_TABLES.get(name.lower(), name_strength(name))
    if found is None or strength is Strength.NONE:
        return None
    secret = found["secret"]
    if is_stand_in(secret) or is_code(secret) or is_path(secret) or repeats_name(name, secret):
        return None
    stated = looks_issued(secret) if strength is Strength.WEAK else looks_chosen(secret) or is_dashed(secret)
    return take(found) if stated else None


_OPENING = lazy_pattern(r"^.*[:=(\[] ?\\*[\"'`](?=[\w|│ ])")
"""The string of JSON or of a program that a table stands in."""
_IN_TABLES = {"pass": Strength.TEXT, "secret": Strength.WEAK}
"""A column `secret` may list names of secrets."""
_GAP = lazy_pattern(r" {2,}")
_RULER = lazy_pattern(r"[\s|│+:=─-╿-]*")
_HEADING = lazy_pattern(r"(?:[\w.#/-]{1,40}(?: [\w.#/-]{1,24}){0,2})?")
_CELL_VALUE = lazy_pattern(
    rf"(?P<secret>{PHRASE}(?=\")|[^\s,;|│\"'`\\]+)(?=\\*[\"'`]| {{2}}|[ \t]*(?:[,;|│\t\r\n]|\Z))"
)


class CellPattern:
    """Finds the cells that stand near behind a heading that ends in this name."""

    __slots__ = ("_heading",)

    def __init__(self, name: str) -> None:
        self._heading = lazy_pattern(
            rf"{name}[\"'`*]{{0,3}}+[ \t]{{0,24}}+(?:[,;|│\r\n]|(?<=\t)|(?<=  )|\\[nrt\"])"
        )

    def search(self, text: str, position: int, stop: int, /) -> re.Match[str] | None:
        heading = self._heading.search(text, max(0, position - BEHIND), stop)
        while heading is not None:
            end = heading.end() - 1
            near = min(stop, end + BEHIND)
            if near > position and (found := _NEXT_CELL.search(text, max(position, end), near)):
                return found
            heading = self._heading.search(text, heading.end(), stop)
        return None


_NEXT_CELL = lazy_pattern(r"(?:[\n,;\t|│]| {2}|\\[nt])[ \t]{0,20}\\{0,3}[\"'`]?(?=[^\s,;|│\"'`-])")

_TABLES = tuple(
    Rule(literal, CellPattern(literal + rest), _cell, needs=(need,), folded=True)
    for literal, rest, need in (
        ("pass", "(?:w(?:or)?d|phrase)?", "pass"),
        ("pwd", "", "pw"),
        ("secret", "(?:_?key)?", "secret"),
        ("token", "", "token"),
        ("api", "[_ -]?key", "key"),
    )
)

FILE_LINES: tuple[Rule, ...] = (
    Rule(
        "pass", r"(?:word|phrase \S{1,40})?[ \t\n]{1,4}(?:[057] )?(?=\S{0,80}?[0-9!@#$%^&*])", _line_of_file
    ),
    Rule(" secret ", r"(?:\d )?(?=\S{0,80}?[0-9!@#$%^&*])", _line_of_file, needs=("secret",)),
    *(
        Rule(
            name,
            r"[ \t]{1,8}(?:--plaintext )?(?=[^\s=:]\S{0,80}[ \t]{0,4}(?:[\n\r\\\"'`]|\Z))",
            _setting,
            needs=(need,),
            folded=True,
        )
        for name, need in (("bindpw", "pw"), ("rootpw", "pw"), ("masterauth", "auth"))
    ),
    Rule("]:", r"\d{2,5}[ \t]{1,4}[\w.@+-]{1,60}:(?=\S)", chosen_argument, needs=("@",)),
    # … under `data:` of a Kubernetes secret
    Rule(
        ": ",
        r"(?=[A-Za-z0-9+/]{12})",
        after(_SECRET_DATA, issued_argument),
        needs=("secret",),
        holds="kind: Secret",
    ),
    *(
        Rule(port, r"[\w*-]{1,60}:[\w*-]{1,60}:(?=\S)", _pgpass, needs=(need,))
        for port, need in (
            ("5432:", "432:"),
            (":6432:", "432:"),
            (":5433:", ":5433"),
            (":*:", "*"),
            (":26257:", "*"),
        )
    ),
    Rule(
        "chpasswd:",
        r"\s{1,12}(?:expire: \w{4,5}\s{1,12})?list: \|\s{1,20}[\w.-]{1,32}:(?=\S)",
        next_word,
        needs=("pass",),
    ),
    *(
        Rule(name, r"(?:は|が)?[ \t]{0,2}[:=：]?[ \t]{0,4}(?=[!-~]{6})", chosen_argument)
        for name in ("パスワード", "密码", "пароль", "contraseña")
    ),
    *(
        Rule(name, rf"{_PARTICLE}(?=[!-~]{{5}})", _korean_password)
        for name in ("비밀번호", "패스워드", "비번", "암호")
    ),
    *(Rule(name, rf"{_PARTICLE}(?=[!-~]{{12}})", _korean_key) for name in ("토큰", "키")),
    # Hashes of passwords
    Rule("$", _HASH, RunTail(r"[A-Za-z0-9./$=,+]")),
    Rule("{", r"S?SHA\}[A-Za-z0-9+/]{27,}={0,2}", RunTail("="), needs=("sha}",)),
    *_TABLES,
)
