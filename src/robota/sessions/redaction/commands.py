"""Secrets in URLs and on command lines: user information, signatures, options, .netrc and .pgpass lines."""

from __future__ import annotations

import re

from robota.sessions.redaction.headers import decide_cookie
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.scan import REDACTED, Decision, Rule, RunTail
from robota.sessions.redaction.values import (
    is_code,
    is_dashed,
    is_path,
    is_placeholder,
    is_snake,
    looks_chosen,
    looks_issued,
)

_URL_PASSWORD = re.compile(
    r"(?P<user>[^\s/:@\"'`<>?#]{0,80}):(?P<secret>[^\s/\"'`<>\\?#]{1,120})@(?=[\w\[(${.*-])"
)
_URL_USER = re.compile(r"[A-Za-z0-9_-]{20,}")
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
    start = (
        found.start("user")
        if _URL_USER.fullmatch(found["user"]) and looks_issued(found["user"])
        else found.start("secret")
    )
    return start, found.end("secret"), None, REDACTED


def _is_template(value: str) -> bool:
    return (bool(re.match(r"[$<{%*\[]|\.\.|x{3,}\Z|…|•", value)) and is_placeholder(value)) or "{" in value


def _signature(_before: str, ahead: str, _ends: bool) -> Decision | None:
    found = re.match(r"[A-Za-z0-9%+/=_.-]{12,}", ahead)
    if found is None or not (re.search(r"\d", found.group()) or "%" in found.group()):
        return None
    return 0, found.end(), RunTail(r"[A-Za-z0-9%+/=_.-]"), REDACTED


def _option(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`--password value`"""
    if quoted := re.match(r"([\"'])(?=[^\"'\n]* )(?P<secret>[^\"'\n]+)\1", ahead):
        return (
            (quoted.start("secret"), quoted.end("secret"), None, REDACTED) if _names_secret(before) else None
        )
    name = re.search(r"--?([A-Za-z][A-Za-z0-9_-]*)[\"',\]\s]*(?:- )?\Z", before[-80:])
    strength = name_strength(name.group(1)) if name else Strength.NONE
    found = re.match(r"[\"']?(?P<secret>[^\s\"'`\\]+)", ahead)
    if strength is Strength.NONE or found is None:
        return None
    secret = found["secret"]
    if secret.startswith(("-", "=")) or REDACTED in secret or is_placeholder(secret) or is_code(secret):
        return None
    ends = _AFTER.match(ahead, found.end()) is not None
    stated = looks_chosen(secret) or (ends and (is_dashed(secret) or _CAMEL.search(secret) is not None))
    if is_path(secret) or is_snake(secret) or _PAIRS.match(secret):
        return None
    return (found.start("secret"), found.end(), _WORD_TAIL, REDACTED) if stated else None


_PAIRS = re.compile(r"[a-z]+=\S*(?:,|\Z)")  # --secret id=npmrc,src=.npmrc
_CAMEL = re.compile(r"[a-z][A-Z][a-z]")
_AFTER = re.compile(r"[\"']?[ \t]*(?:\Z|\r?\n|\\|-|[|;&])")


def _names_secret(before: str) -> bool:
    name = re.search(r"--?([A-Za-z][A-Za-z0-9_-]*)[\s=]*\Z", before[-80:])
    return name is not None and name_strength(name.group(1)) >= Strength.TEXT


_PROGRAMS = {
    "p": re.compile(
        r"\b(?:mongo(?:sh|dump|restore|import|export)?|sshpass|mysql(?:dump|admin)?|mariadb(?:-dump)?|7za?|rar|unrar)\s"
        r"|\b(?:docker|podman|helm|oras|crane|nerdctl|registry|az|ecr|acr|oc|argocd)\b.* login\s"
    ),
    "P": re.compile(r"\b(?:sqlcmd|bcp|isql|(?:un)?zip)\s"),
    "k": re.compile(r"\bopenssl enc\s"),
    "a": re.compile(r"\bredis-cli\s"),
    "w": re.compile(r"\bldap(?:search|modify|add|delete|whoami|passwd)\s"),
    "N": re.compile(r"\bssh-keygen\s"),
    "b": re.compile(r"\b(?:curl|gh secret set)\s"),
}
_GLUES = re.compile(r"mysql|mariadb|sshpass|\b(?:7za?|rar|unrar)\s")
_CLIENT = re.compile(r"\b(?:curl|https?|xh|wget)\s")
_LOGIN = re.compile(
    r"([\"'])[\w.@+%/-]+[:%,](?P<phrase>[^\"'`\\\n]{1,100})(?=\1)|[\"']?[\w.@+%/-]+[:%,](?P<secret>[^\s\"'`\\]+)"
)


def _letter(before: str, ahead: str, ends: bool) -> Decision | None:
    """The options of one letter, which mean a password in some programs only."""
    line = before[max(before.rfind("\n"), before.rfind("\\n"), before.rfind("|"), before.rfind(";")) + 1 :]
    if line.endswith("-auth "):
        return _login(ahead)
    letter = line.rstrip(" ")[-1:]
    if letter == "u" and "lftp " in line:
        return _login(ahead)
    if letter in "uUa" and (_CLIENT.search(line) or (letter == "U" and "smbclient" in line)):
        return _login(ahead)
    program = _PROGRAMS.get(letter)
    if program is None or not program.search(line):
        return None
    if letter == "b":
        return decide_cookie(ahead) if "curl" in line else _word(before, ahead, ends)
    glued = not line.endswith(" ")
    if glued and not _GLUES.search(line):
        return None
    if not glued and letter == "p" and ("mysql" in line or "mariadb" in line):  # asks for the password
        return None
    return _chosen_word(before, ahead, ends) if "login" in line else _word(before, ahead, ends)


def _login(ahead: str) -> Decision | None:
    """`curl -u user:password`, `smbclient -U user%password`"""
    found = _LOGIN.match(ahead)
    if found is None:
        return None
    kind = "phrase" if found["phrase"] else "secret"
    secret = found[kind]
    if is_placeholder(secret) or is_code(secret) or secret.startswith("//") or REDACTED in secret:
        return None
    return found.start(kind), found.end(), None if found["phrase"] else _WORD_TAIL, REDACTED


def _user(before: str, ahead: str, ends: bool) -> Decision | None:
    line = before[before.rfind("\n") + 1 :]
    if line[:-1].endswith(("--body", "--value")):
        stores = _STORES.search(line) or ("put-parameter " in line and "SecureString" in line + ahead)
        return _word(before, ahead, ends) if stores else None
    return _login(ahead) if _CLIENT.search(line) else None


_STORES = re.compile(r"\b(?:gh secret set|keyvault secret set)\s")


def _credentials(_before: str, ahead: str, _ends: bool) -> Decision | None:
    return _login(ahead)


def _line_of_file(before: str, ahead: str, ends: bool) -> Decision | None:
    """`login jane password …` of .netrc, `password …` alone on a line of .msmtprc"""
    if _LINE_OF_PROGRAM.search(before[-120:]):
        return _word(before, ahead, ends)
    return _chosen_word(before, ahead, ends) if _FILE_LINE.search(before[-120:]) else None


_LINE_OF_PROGRAM = re.compile(r"\b(?:nmcli|rclone) [^\n]* pass(?:word)? \Z|\bwpa_passphrase \S+ \Z")


_FILE_LINE = re.compile(
    r"(?:(?:\n|\A)[ \t]*(?:user \S+ )?[\w-]*|\b(?:login|machine)\s+\S+\s+)(?:password|requirepass)\s+\Z"
)


def _word(_before: str, ahead: str, _ends: bool) -> Decision | None:
    """The next word, or all that is quoted, whatever it is."""
    found = _PHRASE.match(ahead) or re.match(r"[\"']?(?P<secret>[^\s\"'`\\]+)", ahead)
    if (
        found is None
        or is_placeholder(found["secret"])
        or found["secret"].startswith(("-", "("))
        or REDACTED in found["secret"]
    ):
        return None
    return found.start("secret"), found.end(), None if found.re is _PHRASE else _WORD_TAIL, REDACTED


_PHRASE = re.compile(r"([\"'])(?P<secret>[^\s\"'`\\][^\"'`\\\n]{0,100})(?=\1)")


def _chosen_word(before: str, ahead: str, ends: bool) -> Decision | None:
    decision = _word(before, ahead, ends)
    if decision and looks_chosen(secret := ahead[decision[0] : decision[1]]) and not is_code(secret):
        return decision
    return None


def _upper_pass(before: str, ahead: str, ends: bool) -> Decision | None:
    """`PASSWORD '…'` of SQL, `PASS …` of FTP and POP"""
    if not before.endswith("PASS "):
        return _word(before, ahead, ends)
    return _chosen_word(before, ahead, ends) if _PASS_LINE.search(before[-12:]) else None


_PASS_LINE = re.compile(r"(?:> |(?:\n|\A)[ \t]*|[\"'])PASS \Z")


_FLAG = (
    r"(?:password|passwd|passphrase|pass|pwd|secret|secret-string|token|key|credentials|bearer)"
    r"(?:[ \t]{1,4}|[\"'],[ \t\n]{0,20}[\"']|[ \t]{0,2}\n[ \t]{0,12}- )(?=[^\s=-])"
)
_DIRECTIVE = (
    r"[ \t]{1,8}[\"']?[\w.-]{0,40}?(?:password|passwd|passphrase|secret|token|key|credentials|authorization)"
    r"[ \t]{1,8}(?=[^\s=:|&])"
)


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
    Rule(("@",), r":(?://|\\/\\/)(?=[^\s/@]{1,200}@)", decide=_url),
    Rule(
        ("sig=", "signature="),
        r"sig(?:nature)?=(?:(?<=[?&;]sig=)|(?<=[?&;-]signature=))(?=\S)",
        decide=_signature,
        folded=True,
    ),
    Rule(("--", " -"), rf"--(?=[a-z])(?<![\w-]--)[a-z0-9_-]{{0,40}}?{_FLAG}", decide=_option, folded=True),
    Rule((" -",), rf" -(?=[a-z])[a-z0-9_-]{{0,40}}?{_FLAG}", decide=_option, folded=True),
    Rule(
        (" -",),
        r" -(?:auth(?= )|[uUabkpPwN])(?= ?[^\s-])(?![a-z]+-)(?: |(?<=-p)|(?<=-u)|(?<=-b))",
        decide=_letter,
    ),
    Rule(("--", " -"), r"--(?:user|proxy-user|auth|cookie|body|value)[ =]", decide=_user),
    *(
        Rule((needle,), f"{word}{_DIRECTIVE}", decide=_directive, folded=True)
        for needle, word in (
            ("env", r"env(?<![\w.-]env)"),
            ("arg", r"arg(?<![\w.-]arg)"),
            ("set", r"set(?<![\w.-]set)(?:x|env| -[a-z]{1,3})?"),
            ("#define", "#define"),
            ("header", r"header(?:_up)?(?: set)?"),
        )
    ),
    Rule(
        ("auth",),
        r"auth=?\(\\{0,7}[\"'][^\"'\n]{1,60}[\"'],\s{0,4}(?=\\{0,7}[\"'])",
        decide=_word,
        folded=True,
    ),
    Rule(("pwd",), r"userpwd,\s{0,4}(?=\\{0,7}[\"'])", decide=_credentials, folded=True),
    Rule(("pass",), r"htpasswd -\w{0,4}b\w{0,4} \S{1,80} \S{1,40} ", decide=_word),
    Rule(("pass",), r"pass:(?:(?<=-pass pass:)|(?<=-passin pass:)|(?<=-passout pass:))", decide=_word),
    Rule(("securestring",), r"ConvertTo-SecureString (?:-String )?(?=\\{0,7}[\"'])", decide=_word),
    Rule(("auth",), r"AUTH(?:(?<=\"AUTH)\" (?=\")| (?:PLAIN|LOGIN) (?=[A-Za-z0-9+/]{8}))", decide=_word),
    Rule(
        ("pass",),
        r"PASS(?:WORD (?:FOR \S{1,80} = )?(?=\\{0,7}['\"])"
        r"| (?=\S))",
        decide=_upper_pass,
    ),
    Rule(
        ("pass",),
        r"pass(?:word|phrase \S{1,40})?[ \t\n]{1,4}(?=\S{0,80}?[0-9!@#$%^&*])",
        decide=_line_of_file,
    ),
    Rule(("@",), r"thin:(?<=oracle:thin:)\w{1,40}/(?=[^\s@]{1,60}@)", decide=_until_at),
    Rule(("@tcp(",), r"[\w.-]{1,40}:(?=[^\s:@/]{1,80}@tcp\()", decide=_until_at),
)
