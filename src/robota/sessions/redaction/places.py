"""Secrets that only their place betrays: an argument of a known program or call, a column, a line of a file.

Nothing names these values, so every rule here begins with the words that make the place unmistakable.
"""

from __future__ import annotations

import re

from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.scan import REDACTED, Decision, Rule, RunTail
from robota.sessions.redaction.values import is_code, is_path, is_placeholder, looks_chosen, looks_issued

_QUOTED = re.compile(r"(?P<open>\\{0,7}[\"'])(?P<secret>[^\"'\\\n]{1,120})(?=(?P=open))")
_BARE = re.compile(r"(?P<secret>[^\s\"'`\\|;&<>()]+)")
_TAIL = RunTail(r"[^\s\"'`\\|;&<>()]")


def take_word(_before: str, ahead: str, _ends: bool) -> Decision | None:
    """The next word, or all that is quoted, unless it only stands for a secret."""
    found = _QUOTED.match(ahead) or _BARE.match(ahead)
    if found is None:
        return None
    secret = found["secret"]
    if is_placeholder(secret) or secret.startswith("-") or REDACTED in secret:
        return None
    tail = _TAIL if found.re is _BARE else None
    return found.start("secret"), found.end("secret"), tail, REDACTED


def _chosen(before: str, ahead: str, ends: bool) -> Decision | None:
    """The next word if it could be a password, a key or a token."""
    decision = take_word(before, ahead, ends)
    if decision is None:
        return None
    secret = ahead[decision[0] : decision[1]]
    return None if is_code(secret) or is_path(secret) or not looks_chosen(secret) else decision


def _issued(before: str, ahead: str, ends: bool) -> Decision | None:
    decision = take_word(before, ahead, ends)
    return decision if decision and looks_issued(ahead[decision[0] : decision[1]]) else None


def _after_user(before: str, ahead: str, ends: bool) -> Decision | None:
    """`jane:password` as one word"""
    user = re.match(r"[\"']?[\w.@-]{1,40}[:,]", ahead)
    decision = take_word(before, ahead[user.end() :], ends) if user else None
    if user is None or decision is None:
        return None
    start, end, tail, replacement = decision
    return user.end() + start, user.end() + end, tail, replacement


def _piped(before: str, ahead: str, ends: bool) -> Decision | None:
    """`echo password | docker login`, `echo user:password | chpasswd`"""
    return _after_user(before, ahead, ends) if "chpasswd" in ahead else take_word(before, ahead, ends)


def _logged_in(before: str, ahead: str, ends: bool) -> Decision | None:
    """`wandb login …`; `machine h login u password …` of .netrc; `smtp.login("user", "…")`"""
    if "(" in before[-90:].rpartition("login")[2]:
        return take_word(before, ahead, ends)
    if before.endswith("login "):
        return _issued(before, ahead, ends) if _TOKEN_LOGIN.search(before) else None
    return take_word(before, ahead, ends) if _MACHINE.search(before) else None


_LOGIN = (
    r"login(?: (?:\S{1,60}\s{1,8}password )?(?=[^\s-])"
    r"|(?<=\.login)\((?=\\{0,7}[\"'])[^,()\n]{3,80},\s{0,4}(?=\\{0,7}[\"']))"
)
_TOKEN_LOGIN = re.compile(r"\b(?:wandb|cargo|vault) login \Z")
_MACHINE = re.compile(r"\bmachine \S+\s+login \S+\s+password \Z")


def _connection(before: str, ahead: str, ends: bool) -> Decision | None:
    return take_word(before, ahead, ends) if _CONNECTS.search(before) else None


_CONNECTS = re.compile(
    r"(?:getConnection|(?:mysqli|mysql|pg|odbc)_connect|DBI->connect|(?:MySQLdb|pymysql|cx_Oracle|pymssql)\.connect)"
    r"\([^()\n]*\Z"
)


def _identified(before: str, ahead: str, ends: bool) -> Decision | None:
    if ahead[0] in "'\"\\":
        return take_word(before, ahead, ends)
    if not before.endswith("BY ") or _NO_PASSWORD.match(ahead):
        return None
    return _line_end(before, ahead, ends)


_NO_PASSWORD = re.compile(r"VALUES|PASSWORD|RANDOM|EXTERNAL")


def _until_at(before: str, ahead: str, ends: bool) -> Decision | None:
    """`system/password@host`"""
    secret = ahead.partition("@")[0]
    return take_word(before, secret, ends) if secret else None


def _line_end(before: str, ahead: str, ends: bool) -> Decision | None:
    """A word that ends its line or its statement."""
    decision = take_word(before, ahead, ends)
    return decision if decision and _END.match(ahead, decision[1]) else None


_END = re.compile(r"[\"'\\]?[ \t]*(?:;|\r?\n|\\n|[\"'`]|\Z)")


def _parameter_value(_before: str, ahead: str, _ends: bool) -> Decision | None:
    found = re.match(r"[A-Za-z0-9%/_.=-]+", ahead)
    if found is None or not looks_issued(found.group()):
        return None
    return 0, found.end(), RunTail(r"[A-Za-z0-9%/_.=-]"), REDACTED


def _escaped_login(_before: str, ahead: str, _ends: bool) -> Decision | None:
    """`https%3A%2F%2Fuser%3Apassword%40host`"""
    secret = ahead[: ahead.find("%40")]
    return None if is_placeholder(secret) or REDACTED in secret else (0, len(secret), None, REDACTED)


def _long_text(before: str, ahead: str, ends: bool) -> Decision | None:
    start = ahead.index('"') + 1
    found = re.match(r"[A-Za-z0-9_-]+", ahead[start:])
    return (start, start + found.end(), RunTail(r"[A-Za-z0-9_-]"), REDACTED) if found else None


def decide_spoken(name: str, lead: str, ahead: str) -> Decision | None:
    """A secret after its name with nothing but words between them: `using API key …`."""
    found = _SPOKEN.match(ahead)
    if found is None:
        return None
    if found["bare"] and not (" " in name or name.lower().endswith("authtoken") or lead.endswith("snyk ")):
        return None
    decision = (_issued if found["bare"] else _chosen)(lead, ahead[found.end() :], False)
    if decision is None:
        return None
    start, end, tail, replacement = decision
    return found.end() + start, found.end() + end, tail, replacement


_SPOKEN = re.compile(
    r"(?P<bare>[ \t](?=[A-Za-z0-9+/=_-]{20}))|[ \t]\d{1,2}: (?=\S{20})|: [\w.@-]{1,40} / (?=\S)"
    r"|[ \t]is generated for \S{1,60}: |[ \t]to proceed[^\n:]{0,30}:\s{1,40}(?=\S{16})"
)


def decide_column(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`INSERT INTO users (id, password) VALUES (1, '…')`"""
    columns = _COLUMNS.search(before)
    values = _VALUES.match(ahead)
    if columns is None or values is None:
        return None
    for column, value in zip(columns[1].split(","), _VALUE.finditer(values.group()), strict=False):
        quoted = re.fullmatch(r"\s*[NE]?'(?P<secret>[^'\n]+)'\s*", value.group())
        if quoted is None or name_strength(column.strip(' \t\n`"[]')) < Strength.TEXT:
            continue
        if not is_placeholder(quoted["secret"]) and REDACTED not in quoted["secret"]:
            return (
                value.start() + quoted.start("secret"),
                value.start() + quoted.end("secret"),
                None,
                REDACTED,
            )
    return None


_COLUMNS = re.compile(r"(?i)\(([^()]{1,160})\)\s*values\s*\(\Z")
_VALUE = re.compile(r"(?:'[^'\n]*'|[^',\n)])+")
_VALUES = re.compile(rf"{_VALUE.pattern}(?:,{_VALUE.pattern})*")


def _manifest(before: str, ahead: str, ends: bool) -> Decision | None:
    """A line under `data:` of a Kubernetes secret."""
    if not re.search(r"(?:\n|\A)[ \t]+[\w.-]+: ?\Z", before) or "kind: Secret" not in before:
        return None
    return _issued(before, ahead, ends) if _DATA.search(before) else None


_DATA = re.compile(r"\n[ \t]*(?:data|stringData):\n(?:[ \t]+[^\n]*\n)*[ \t]+[\w.-]+: ?\Z")


def _pgpass(before: str, ahead: str, ends: bool) -> Decision | None:
    """`host:port:database:user:password`"""
    decision = take_word(before, ahead, ends)
    if decision is None or not (line := _PGPASS.search(before)) or decision[0]:
        return None
    secret = ahead[: decision[1]]
    certain = ":543" in line[1] and len(secret) > 3 and not secret.isdigit()
    return decision if ":" not in secret and (certain or looks_chosen(secret)) else None


_PGPASS = re.compile(r"(?:\A|[\s\"'`>+|→]|\\n)([\w.*-]{1,80}:(?:\*|\d{4,5}):[\w*-]+:[\w*-]+:)\Z")
_READERS = (
    r"(?:sudo -S|docker login|podman login|helm registry login|cryptsetup|vercel env add|gh auth login"
    r"|passwd --stdin|gh secret set|wrangler secret put|heroku auth|glab auth login|pass insert"
    r"|(?:sudo )?chpasswd)"
)
_HASH = (
    r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    r"|[56]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}|y\$j[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,30}"
    r"\$[./A-Za-z0-9]{43}|argon2id?\$v=\d{1,3}\$m=\d{1,9},t=\d{1,3},p=\d{1,3}\$[A-Za-z0-9+/]{8,40}\$[A-Za-z0-9+/]{20})"
)
_ARGUMENTS = r"(?:[^,()\n]{1,100},\s{0,20}){%s}(?=\\{0,7}[\"'])"

PLACES: tuple[Rule, ...] = (
    # Arguments of programs
    Rule(
        ("|",),
        rf"echo (?:-n )?(?=\\{{0,7}}[\"']?[^\s|$]{{4,80}} \| {_READERS})",
        decide=_piped,
    ),
    Rule(("login",), _LOGIN, decide=_logged_in),
    Rule(("@",), r"sqlplus (?:-\w{1,8} )?\w{1,40}/(?=[^\s/@$]{1,80}@)", decide=_until_at),
    Rule(("add-mask",), r"::add-mask::(?=\S)", decide=take_word),
    # Arguments of calls
    Rule(("onnect",), rf"onnect(?:ion)?\({_ARGUMENTS % 2}", decide=_connection),
    Rule(("new ",), rf"new (?:PDO|mysqli)\({_ARGUMENTS % 2}", decide=take_word),
    Rule(("jwt.",), rf"jwt\.(?:sign|verify|encode|decode)\({_ARGUMENTS % 1}", decide=_chosen),
    # SQL
    Rule(("identified",), r"identified (?:with \w{1,40} )?by (?=\S)", decide=_identified, folded=True),
    # Lines of files
    Rule((": secret",), r": (?=[A-Za-z0-9+/]{12})", decide=_manifest),
    Rule((":543",), r":543[23]:[\w*-]{1,60}:[\w*-]{1,60}:(?=\S)", decide=_pgpass),
    Rule((":*:",), r":\*:[\w*-]{1,60}:[\w*-]{1,60}:(?=\S)", decide=_pgpass),
    # Parts of URLs
    Rule(("appid=",), r"appid=(?<=[?&]appid=)(?=[0-9a-f]{32})", decide=_parameter_value),
    Rule(("code=",), r"code=(?<=[?&]code=)(?=[A-Za-z0-9%/_.=-]{24})", decide=_parameter_value),
    Rule(
        ("%3a%2f%2f",),
        r"%3a%2f%2f[^\s/@%]{1,60}%3a(?=[^\s/@]{1,100}?%40)",
        decide=_escaped_login,
        folded=True,
    ),
    # Keys of the JSON Web Key form, and hashes of passwords
    Rule(('"d":',), r"\"d\":\s{0,4}(?=\"[A-Za-z0-9_-]{40})", decide=_long_text),
    Rule(("$",), _HASH, RunTail(r"[A-Za-z0-9./$=,+]")),
    Rule(("sha}",), r"\{S?SHA\}[A-Za-z0-9+/]{27,}={0,2}", RunTail("=")),
)
