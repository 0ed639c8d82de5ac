"""Secrets in lines of files: what stands before them on the line, or the line as a whole, betrays them."""

from __future__ import annotations

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.commands import after, chosen_argument, chosen_word, issued_argument, next_word
from robota.sessions.redaction.rules import Decision, Rule, RunTail, follows, take
from robota.sessions.redaction.values import is_code, is_stand_in, looks_chosen


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
_LINE_OF_PROGRAM = lazy_pattern(r"\b(?:nmcli|rclone) [^\n]* pass(?:word)? \Z|\bwpa_passphrase \S+ \Z")
_FILE_LINE = lazy_pattern(
    r"(?:(?:\n|\A)[ \t]*(?:user(?:name)? \S+ (?:privilege \d+ )?|CONFIG SET )?[\w-]*"
    r"|\b(?:login|machine)\s+\S+\s+)(?:password|requirepass)\s+(?:[057] )?\Z"
)
_SECRET_DATA = lazy_pattern(
    r"(?s)kind: Secret.*\n[ \t]*(?:data|stringData):\n(?:[ \t]+[^\n]*\n)*[ \t]+[\w.-]+: ?\Z"
)


_setting = after(
    lazy_pattern(r"(?i)(?:\n|\A|\\n|[\"'`])[ \t]*(?:\w{0,12}pw(?:[ \t]+--plaintext)?|masterauth)[ \t]+\Z"),
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
_HASH = (
    r"(?:\$?2[abxy]\${1,2}\d\d\${1,2}[./A-Za-z0-9]{53}|\$?(?:apr1|1)\${1,2}[./A-Za-z0-9]{1,8}\${1,2}[./A-Za-z0-9]{22}"
    r"|[56]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}|y\$j[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,30}"
    r"\$[./A-Za-z0-9]{43}|argon2id?\$v=\d{1,3}\$m=\d{1,9},t=\d{1,3},p=\d{1,3}\$[A-Za-z0-9+/]{8,40}\$[A-Za-z0-9+/]{20})"
)

FILE_LINES: tuple[Rule, ...] = (
    Rule(
        "pass", r"(?:word|phrase \S{1,40})?[ \t\n]{1,4}(?:[057] )?(?=\S{0,80}?[0-9!@#$%^&*])", _line_of_file
    ),
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
        Rule(name, r"(?:는|은|が|は)?[ \t]{0,2}[:=：]?[ \t]{0,4}(?=[!-~]{6})", chosen_argument)
        for name in ("비밀번호", "パスワード", "密码", "пароль", "contraseña")
    ),
    # Hashes of passwords
    Rule("$", _HASH, RunTail(r"[A-Za-z0-9./$=,+]")),
    Rule("{", r"S?SHA\}[A-Za-z0-9+/]{27,}={0,2}", RunTail("="), needs=("sha}",)),
)
