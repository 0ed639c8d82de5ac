"""Secrets that only their place betrays: options, words of commands, arguments of calls.

Little or nothing names these values, so every rule here begins with what makes the place unmistakable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.http import decide_cookie, until_at
from robota.sessions.redaction.names import NEEDS, Strength, name_strength
from robota.sessions.redaction.rules import Decide, Decision, Rule, RunTail, follows, move, take, word_set
from robota.sessions.redaction.values import (
    is_camel,
    is_code,
    is_dashed,
    is_path,
    is_snake,
    is_stand_in,
    looks_chosen,
    looks_issued,
)

# --- the next word -------------------------------------------------------------------------------------

_DOUBLED = r"(?<=[\w ])(?:''|\"\")(?=[\w ])"
"""A quote within quotes, as SQL and YAML write it."""
_QUOTED = rf"(?P<open>\\{{0,7}}[\"'])(?P<secret>(?:[^\"'\\\n]|{_DOUBLED}){{1,120}})(?=(?P=open))"
_BARE = r"(?:[^\s\"'`\\]|\\[!$&*#@])"  # signs that a shell would read are escaped
_BARE_WORD = rf"[\"']?(?P<secret>{_BARE}+)"
_BARE_TAIL = RunTail(_BARE, look=2)
_BARE_ARGUMENT = r"[^\s\"'`\\|;&<>()]"


def _next(source: str, tail: RunTail, looks: Callable[[str], bool] = bool) -> Decide:
    """The next word, or all that is quoted, unless it only stands for a secret."""
    return follows(
        source,
        tail,
        quoted=_QUOTED,
        looks=lambda secret: not (secret.startswith(("-", "(")) or is_stand_in(secret)) and looks(secret),
    )


_next_argument = partial(_next, rf"(?P<secret>{_BARE_ARGUMENT}+)", RunTail(_BARE_ARGUMENT))
"""The same where the signs of a shell or a call end a word."""
next_word = _next(_BARE_WORD, _BARE_TAIL)
chosen_word = _next(_BARE_WORD, _BARE_TAIL, lambda secret: looks_chosen(secret) and not is_code(secret))
_argument = _next_argument()
chosen_argument = _next_argument(
    lambda secret: looks_chosen(secret) and not is_code(secret) and not is_path(secret)
)
"""The next word if it could be a password, a key or a token."""
issued_argument = _next_argument(looks_issued)
"""The next word if it looks like an issued token."""


def after(context: str, decide: Decide, otherwise: Decide = lambda *_: None) -> Decide:
    """What to decide where a pattern matches what stands before, and elsewhere."""
    lead = lazy_pattern(context)
    return lambda before, ahead, ends: (decide if lead.search(before) else otherwise)(before, ahead, ends)


_password = follows(
    r"[\"']?(?:\w+\\)?[\w.@+%/-]*[:%,][\"']?(?P<secret>[^\s\"'`\\]+)",
    _BARE_TAIL,
    quoted=r"([\"'])(?:\w+\\)?[\w.@+%/-]*[:%,](?P<secret>[^\"'`\\\n]{1,100})(?=\1)",
    looks=lambda secret: not (is_stand_in(secret) or is_code(secret) or secret.startswith("//")),
)
_key_alone = follows(r"[\"']?(?P<secret>[^\s\"'`\\:]{8,100}):(?=[\"'\s]|\Z)", looks=looks_issued)


def _login(before: str, ahead: str, ends: bool) -> Decision | None:
    """`curl -u user:password`, `curl -u key:`, `smbclient -U user%password`"""
    return _key_alone(before, ahead, ends) or _password(before, ahead, ends)


def _command(before: str) -> str:
    """The command so far; a backslash at the end of a line goes on with it."""
    whole = _CONTINUED.sub(" ", before)
    return whole[max(whole.rfind("\n"), whole.rfind("\\n"), whole.rfind("|"), whole.rfind(";")) + 1 :]


_CONTINUED = lazy_pattern(r"\\\r?\n[ \t]*")

# --- options -------------------------------------------------------------------------------------------


def _option(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`--password value`"""
    if phrase := _PHRASE.match(ahead):
        name = _OPTION_BEFORE_PHRASE.search(before[-80:])
        return take(phrase) if name and name_strength(name[1]) >= Strength.TEXT else None
    name = _OPTION.search(before[-80:])
    found = _OPTION_VALUE.match(ahead)
    if name is None or found is None or name_strength(name[1]) is Strength.NONE:
        return None
    secret = found["secret"]
    if secret.startswith(("-", "=")) or is_stand_in(secret) or is_code(secret):
        return None
    if is_path(secret) or is_snake(secret) or _PAIRS.match(secret):
        return None
    ends = _AFTER.match(ahead, found.end()) is not None
    stated = looks_chosen(secret) or (ends and (is_dashed(secret) or is_camel(secret)))
    stated = stated or _is_given(
        name[1], secret, _command(before)[: -len(name.group())], ahead[found.end() :]
    )
    return take(found, _BARE_TAIL) if stated else None


def _is_given(name: str, word: str, line: str, rest: str) -> bool:
    """Whether an ordinary word is the password of a command, and no word of a sentence about an option."""
    if not _PASS_OPTION.search(name) or not _WORD.fullmatch(word) or word in _SAID_OF_OPTIONS:
        return False
    return _OPTION_NEXT.match(rest) is not None or (" -" in line and _ARGUMENT_NEXT.match(rest) is not None)


_PASS_OPTION = lazy_pattern(r"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret-string)\Z")
_WORD = lazy_pattern(r"[a-z]{4,40}")
_SAID_OF_OPTIONS = word_set(
    "option options flag flags argument arguments parameter parameters switch instead when with from without"
    " then which because here also must should will"
)
_OPTION_NEXT = lazy_pattern(r"[\"']?(?: |[ \t]*\\\r?\n[ \t]*)--?[A-Za-z]")
_ARGUMENT_NEXT = lazy_pattern(r"[\"']?[ \t]*(?:\Z|\r?\n|\\|[|;&]|[^\s/.:]*[/.:@]\S)")


_PHRASE = lazy_pattern(r"([\"'])(?=[^\"'\n]* )(?P<secret>[^\"'\n]+)\1")
_OPTION_VALUE = lazy_pattern(_BARE_WORD)
_OPTION_BEFORE_PHRASE = lazy_pattern(r"--?([A-Za-z][A-Za-z0-9_-]*)[\s=]*\Z")
_OPTION = lazy_pattern(r"--?([A-Za-z][A-Za-z0-9_-]*)[\"'\\,\]\s]*(?:- )?\Z")
_PAIRS = lazy_pattern(r"[a-z]+=\S*(?:,|\Z)")  # --secret id=npmrc,src=.npmrc
_AFTER = lazy_pattern(r"[\"']?[ \t]*(?:\Z|\r?\n|\\|-|[|;&])")
_FLAG = (
    r"(?:password|passwd|passphrase|pass|pwd|secret|secret-string|token|key|credentials|bearer)"
    r"(?:[ \t]{1,4}|\\{0,7}[\"'],[ \t\n]{0,20}\\{0,7}[\"']|[ \t]{0,2}\n[ \t]{0,12}- )(?=[^\s=-])"
)


def _letter(before: str, ahead: str, ends: bool) -> Decision | None:
    """The options of one letter, which mean a password in some programs only."""
    line = _command(before)
    letter = line.rstrip(" =")[-1:]
    client = letter in "uUa" and (_CLIENT.search(line) or (letter == "U" and _WINDOWS.search(line)))
    if client and "-A bearer" in line:
        return next_word(before, ahead, ends)
    if client or line.endswith("-auth ") or (letter == "u" and "lftp " in line):
        return _login(before, ahead, ends)
    glued = not line.endswith((" ", "="))
    if not glued and letter == "p" and _ASKING.search(line):
        return None
    if not glued and _USER_BEFORE.search(line):
        return _after_user(before, ahead, ends)
    program = _PROGRAMS.get(letter)
    if program is None or not program.search(line):
        return None
    if letter == "c":
        return chosen_argument(before, ahead, ends)
    if letter == "b":
        return decide_cookie(before, ahead, ends) if "curl" in line else next_word(before, ahead, ends)
    if glued and not _GLUES.search(line):
        return None
    return (chosen_word if "login" in line else next_word)(before, ahead, ends)


def _listed(before: str, ahead: str, ends: bool) -> Decision | None:
    """`["mysql", "-uroot", "-ppassword"]`"""
    return _letter(_BETWEEN.sub(" ", before), ahead, ends)


_BETWEEN = lazy_pattern(r"\\*[\"'],\s*\\*[\"']|[\[(]\s*\\*[\"']")
_ASKING = lazy_pattern(
    r"\b(?:my(?:sql|cli)|mariadb)|(?:\A|[\s(])(?:sudo|cp|curl|diff|git|mkdir|patch|rsync)\s[^&|]*-p \Z"
)
"""They ask for a password that does not follow at once, or mean something else."""
_USER_BEFORE = lazy_pattern(
    r"\s-(?:[uUl] ?|-user(?:name)?[ =])(?!\S+\.(?:py|js|ts|rb|sh)\s|(?:or|and)\s)[\w.@\\+-]+\s+-[pP] \Z"
)
_PUBLISHED = lazy_pattern(r"(?i)[\d.:/-]+(?:/(?:tc|ud)p)?|ports?|[\w.]+=.*")
_after_user = _next(
    _BARE_WORD, _BARE_TAIL, lambda secret: not (_PUBLISHED.fullmatch(secret) or is_path(secret))
)
"""`-u jane -p password` of whatever program: no port, no property"""
_PROGRAMS = {
    "p": lazy_pattern(
        r"(?<![\w=-])(?:mongo(?:sh|dump|restore|import|export)?|sshpass|my(?:sql(?:dump|admin)?|cli)|mariadb(?:-dump)?|7za?"
        r"|rar|unrar|cqlsh|psexec(?:64)?|user(?:add|mod)|security (?:unlock|create)-keychain)\s"
        r"|\b(?:docker|podman|helm|oras|crane|nerdctl|registry|az|ecr|acr|oc|argocd)\b.* login\s"
    ),
    "P": lazy_pattern(r"\b(?:sqlcmd|bcp|isql|(?:un)?zip|ipmitool|mosquitto_[a-z]{3}|security import)\s"),
    "k": lazy_pattern(r"\b(?:openssl enc|nuget push)\s"),
    "a": lazy_pattern(r"\bredis-cli\s"),
    "w": lazy_pattern(r"\b(?:ldap(?:search|modify|add|delete|whoami|passwd)|security add-\w+-password)\s"),
    "N": lazy_pattern(r"\bssh-keygen\s"),
    "t": lazy_pattern(r"\b(?:influx|codecov(?:cli|\.io/bash\))?)\s"),
    "b": lazy_pattern(r"\b(?:curl|gh secret set)\s"),
    **dict.fromkeys("AXc", lazy_pattern(r"\bsnmp[a-z]{3,9}\s")),
}
_PUTTY = r"\b(?:plink|pscp|psftp|putty)(?:\.exe)?\s[^\n]{0,160}\Z"
_GLUES = lazy_pattern(
    r"\bmy(?:sql|cli)|mariadb|sshpass|\bldap|\b(?:7za?|rar|unrar|sqlcmd)\s|\b(?:docker|podman)\b.* login\s"
)
_CLIENT = lazy_pattern(r"\b(?:curl|https?|xh|wget)\s")
_WINDOWS = lazy_pattern(r"\b(?:smbclient|winexe|rpcclient|wmic)\s")


def _user(before: str, ahead: str, ends: bool) -> Decision | None:
    """`curl --user jane:password`, `gh secret set NAME --body value`"""
    line = _command(before)
    if line.rstrip(" =").endswith(("--body", "--value")):
        stores = _STORES.search(line) or ("put-parameter " in line and "SecureString" in line + ahead)
        return next_word(before, ahead, ends) if stores else None
    if line.rstrip(" =").endswith("creds"):
        return _password(before, ahead, ends)
    if "netlify " in line and line.rstrip(" =").endswith("-auth"):
        return next_word(before, ahead, ends)
    if not _CLIENT.search(line):
        return None
    return (decide_cookie if line.rstrip(" =").endswith("cookie") else _login)(before, ahead, ends)


_STORES = lazy_pattern(r"\b(?:gh secret set|keyvault secret set)\s")

# --- other words of a command --------------------------------------------------------------------------


def _directive(before: str, ahead: str, ends: bool) -> Decision | None:
    """`ENV DB_PASSWORD value`, `setx NAME value`, `#define NAME "value"`"""
    name = _DIRECTIVE_NAME.search(before[-64:])
    if name is None or name_strength(name[1]) < Strength.TEXT:
        return None
    decision = next_word(before, ahead, ends)
    if decision is None or is_code(secret := ahead[decision[0] : decision[1]]):
        return None
    stated = looks_chosen(secret) or (name[1].isupper() and not secret.isalpha())
    return decision if stated or _KEPT.search(before) else None


_KEPT = lazy_pattern(r"\b(?:(?:user-secrets|pulumi config) set|(?:consul kv|etcdctl) put) [^\n]*\Z")
"""What keeps a value that is called secret, whatever it looks like."""
_DIRECTIVE_NAME = lazy_pattern(r"([\w.-]+)[ \t]+@?\Z")
_DIRECTIVE = (
    r"[ \t]{1,8}[\"']?[\w.:/-]{0,40}?(?:password|passwd|passphrase|_pass|secret|token|key|credentials"
    r"|authorization)[ \t]{1,8}@?(?=[^\s=:|&])"
)


def _piped(before: str, ahead: str, ends: bool) -> Decision | None:
    """`echo password | docker login`, `echo user:password | chpasswd`, and the same to encode it"""
    if "chpasswd" not in ahead and "base64" not in ahead:
        return _argument(before, ahead, ends)
    user = _USER.match(ahead)
    return move(_argument(before, ahead[user.end() :], ends), user.end()) if user else None


_USER = lazy_pattern(r"[\"']?[\w.@-]{1,40}[:,]")
_READERS = (
    r"(?:sudo )?(?:sudo -S|cryptsetup|(?:ch|vnc|smb)?passwd\b|gpg2?\b[^|\n]{0,40}--passphrase-fd"
    r"|base64\b|(?:docker|podman|helm|gh|glab|heroku|vercel|wrangler|gcloud|fly(?:ctl)?|pass)\b"
    r"[^|\n]{0,40}?(?:login|auth|secrets?|env add|insert)\b)"
)


_encoded_login = follows(
    r"(?!)",
    quoted=r"\\*[\"'][^:\"'\s]{1,60}:(?P<secret>[^\"'\\\n]{4,80})(?=\\*[\"'])",
    looks=lambda secret: looks_chosen(secret) and not (is_stand_in(secret) or is_code(secret)),
)


def _encoded(before: str, ahead: str, ends: bool) -> Decision | None:
    """`btoa("user:password")`; far from the word "Basic" it may be an id or a cursor, too"""
    decision = _encoded_login(before, ahead, ends)
    if decision is None or "basic" in f"{before}{ahead}".lower():
        return decision
    return decision if _MIXED.match(ahead, decision[0], decision[1]) else None


_MIXED = lazy_pattern(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z!@#$%^&*])[^:/]{7,}\Z")


def _logged_in(before: str, ahead: str, ends: bool) -> Decision | None:
    """`wandb login …`; `bw login address …`; `machine h login u password …`; `smtp.login("user", "…")`"""
    if "(" in before[-90:].rpartition("login")[2]:
        return _argument(before, ahead, ends)
    if _SONAR.search(before[-20:]):
        return issued_argument(before, ahead, ends)
    if _WITH_ADDRESS.search(before):
        return chosen_argument(before, ahead, ends)
    if before.endswith("login "):
        return issued_argument(before, ahead, ends) if _TOKEN_LOGIN.search(before) else None
    return _argument(before, ahead, ends) if _MACHINE.search(before) else None


_LOGIN = (
    r"(?: (?:\S{1,60}\s{1,8}password |(?:(?<=bw login )|(?<=mega-login ))\S{1,60}@\S{1,60} )?(?=[^\s-])"
    r"|(?<=sonar\.login)=\\{0,7}[\"']?(?=[\w-]{8})|(?<=\.login)\((?=\\{0,7}[\"'])[^,()\n]{3,80},\s{0,4}(?=\\{0,7}[\"']))"
)
_WITH_ADDRESS = lazy_pattern(r"\b(?:bw |mega-)login \S+@\S+ \Z")
_TOKEN_LOGIN = lazy_pattern(r"\b(?:wandb|cargo|vault) login \Z")
_SONAR = lazy_pattern(r"sonar\.login=\\*[\"']?\Z")
"""It takes a user's name, too."""
_MACHINE = lazy_pattern(r"\bmachine \S+\s+login \S+\s+password \Z")
_from_pass = after(
    r"-pass(?:in|out)? [\"']pass:\Z",
    follows(r"(?P<secret>[^\"'\n]+)", looks=lambda secret: not is_stand_in(secret)),
    after(r"(?:/|-pass(?:in|out)? )pass:\Z", next_word),
)
"""`-passin pass:…`, `-passout "pass:…"`, `/pass:…`"""
_hashed = after(r"openssl passwd [\w -]{0,20}\Z", _argument, next_word)
"""`htpasswd -nb user password`, `openssl passwd -6 password`"""
_signed = after(r" -hmac \Z", _argument, chosen_argument)
"""`openssl dgst -hmac key`, `createHmac('sha256', 'key')`, `hmac.new(b'key', …)`"""

# --- calls and SQL -------------------------------------------------------------------------------------

_CONNECTS = (
    r"(?:getConnection|(?:mysqli|mysql|pg|odbc)_connect|DBI->connect|(?:MySQLdb|pymysql|pymssql|[Oo]racle(?:db)?)\.connect)"
    r"\([^()\n]*\Z"
)
_ARGUMENTS = r"(?:[^,()\n]{1,100},\s{0,20}){%s}?(?=\\{0,7}[\"'])"


def _identified(before: str, ahead: str, ends: bool) -> Decision | None:
    """`IDENTIFIED BY password` at the end of a line or a statement"""
    decision = _argument(before, ahead, ends)
    if decision is None or ahead[0] in "'\"\\":
        return decision
    bare = before.endswith("BY ") and not _NO_PASSWORD.match(ahead) and _END.match(ahead, decision[1])
    return decision if bare else None


_NO_PASSWORD = lazy_pattern(r"VALUES|PASSWORD|RANDOM|EXTERNAL")
_END = lazy_pattern(r"[\"'\\]?[ \t]*(?:;|\r?\n|\\n|[\"'`]|\Z|(?:DEFAULT|TEMPORARY|PROFILE|ACCOUNT|QUOTA)\b)")
_upper_pass = after(
    r"(?<!PASS )\Z",
    next_word,
    after(r"(?:> |(?:\n|\A)[ \t]{0,8}|[\"'])PASS \Z", chosen_word),
)
"""`PASSWORD '…'` of SQL, `PASS …` of FTP and POP"""
_share = after(r"\w \\{2,8}\S+ \Z", _next_argument(looks_chosen), after(r" \\{2,8}\S+ \Z", next_word))
_net_use = after(r"(?i)net user \S+ \Z", chosen_argument, _share)
"""`net user jane password`, `net use \\\\host\\share password`, `net use z: \\\\host\\share password`"""
_NET_USE = r"(?i)\bnet use [^\n]{1,200}\Z"

COMMANDS: tuple[Rule, ...] = (
    # Options
    Rule(
        "--",
        rf"(?=[a-z])(?:(?<![\w-]--)|(?<=\\n--))[a-z0-9_-]{{0,40}}?{_FLAG}",
        _option,
        needs=NEEDS,
        folded=True,
    ),
    Rule(" -", rf"(?=[a-z])[a-z0-9_-]{{0,40}}?{_FLAG}", _option, needs=NEEDS, folded=True),
    Rule(
        " -",
        r"(?:(?:auth(?= )|[uUabkpPwNAXct])(?= ?[^\s-])(?: |(?<=-t)=|(?<=-[pPubw]))"
        r"|[A-Za-z]{1,5}[uUPw] (?=[^\s-])|xw(?=\S))",
        _letter,
    ),
    *(
        Rule(
            f"{quote}-",
            rf"(?:[pP](?=[^\s\"'\\])|\w{{0,5}}[uUaPpw]\\{{0,7}}{quote},\s{{0,20}}\\{{0,7}}{quote}(?=\S))",
            _listed,
        )
        for quote in "\"'"
    ),
    Rule("--", r"(?:user|proxy-user|(?:src-|dest-)?creds|auth|cookie|body|value)[ =] {0,3}", _user),
    # Other words of a command
    *(
        Rule(literal, rest + _DIRECTIVE, _directive, needs=NEEDS, folded=True)
        for literal, rest in (
            ("env", r"(?:(?<![\w.-]env)|(?<=\\[nrt]env))"),
            ("arg", r"(?:(?<![\w.-]arg)|(?<=\\[nrt]arg))"),
            ("set", r"(?:(?<![\w.-]set)|(?<=\\[nrt]set))(?:x|env|-env [\w.-]{1,40}| -{1,2}[a-z]{1,8})?"),
            ("#define", ""),
            ("header", r"(?:_up)?(?: set)?"),
            ("put", r"(?:(?<=consul kv put)|(?<=etcdctl put))"),
        )
    ),
    *(
        Rule(program, rf"{first}(?=\\{{0,7}}[\"']?[^\s|$]{{4,70}} \| {_READERS})", _piped, needs=("|",))
        for program, first in (("printf ", r"(?:'%s[\\n\n]{0,4}' )?"), ("echo ", "(?:-n )?"))
    ),
    Rule("<<<", r" ?(?=\S)", after(rf"{_READERS}[^|\n]*<<< ?\Z", next_word), needs=("<",)),
    Rule("login", _LOGIN, _logged_in),
    *(
        Rule(call, r"b?(?=\\{0,7}[\"'][^:\"'\s]{1,60}:)", _encoded, needs=("basic", *alone))
        for call, alone in (("btoa(", ()), ("b64encode(", ()), ("Buffer.from(", ("(",)))
    ),
    Rule("alias set ", r"\S{1,60} https?://\S{1,200} \S{1,128} ", next_word, needs=("/",)),
    Rule("/user:", r"\S{1,80} (?=[^\s/*])", after(_NET_USE, next_word), needs=("user",), folded=True),
    Rule(
        "net use",
        r"(?:r \S{1,40}| \\{2,8}[^\s\\]\S{2,80}| \S{1,20} \S{3,80}) (?=[^\s/*])",
        _net_use,
        needs=("user", "\\"),
        folded=True,
    ),
    Rule("rabbitmqctl ", r"(?:add_user|change_password) \S{1,40} ", next_word, needs=("user", "pass")),
    Rule("/p:", r"(?=\S)", after(r"freerdp\w? [^\n]{1,160}\Z", _argument), needs=("/",)),
    Rule(
        "/rp ", r"(?=[^\s/*])", after(r"(?i)\bschtasks[^\n]{1,200}\Z", _argument), needs=("/",), folded=True
    ),
    Rule(
        "user ",
        r"(?:(?<=setuser )|(?<![^\n\"'`]user ))\S{1,40} (?:[^\s>\"'\\]{1,60} ){0,9}\\{0,7}[\"']?>(?=[^\s>])",
        chosen_argument,
        needs=("user",),
        holds=">",
        folded=True,
    ),
    Rule("user.info=", r"[^\s:]{1,60}:(?=\S)", _argument, needs=("auth",)),
    Rule(
        "passwd ",
        r"(?:(?<=openssl passwd )(?:-\w{1,8} ){0,2}(?=[^\s-])"
        r"|-(?:(?=\w{0,4}n)\w{0,4}b\w{0,4}|\w{0,4}b\w{0,4} \S{1,80}) \S{1,40} )",
        _hashed,
        needs=("pass",),
    ),
    Rule("pass:", r"(?=\S)", _from_pass, needs=("pass",)),
    Rule("ConvertTo-SecureString ", r"(?:-String )?(?=\\{0,7}[\"'])", next_word, needs=("securestring",)),
    *(
        Rule(
            program,
            rest + r"(?:-\w{1,8} |userid=)?\w{1,40}/(?=(?:\"[^\"\n]{1,40}\"|[^\s/@$]{1,80})@)",
            until_at,
            needs=("@",),
        )
        for program, rest in (("sql", "(?:plus|ldr) "), ("pdp ", "(?<=[ei][xm]pdp )"), ("rman target ", ""))
    ),
    Rule(
        "bundle config ",
        r"(?:set )?(?:--\w{5,6} )?[\w.-]{3,60} (?=[^\s:/]{1,60}:[^\s/])",
        _password,
        needs=("config",),
    ),
    Rule(" -pw ", r"(?=[^\s-])", after(_PUTTY, next_word), needs=("pw",)),
    Rule("setapikey ", r"(?=\S)", issued_argument, needs=("key",), folded=True),
    Rule("::add-mask::", r"(?=\S)", _argument),
    # Calls and SQL
    Rule(
        "auth",
        r"(?:=?\(| )\\{0,7}[\"'][^\"'\n]{1,60}[\"'],\s{0,4}(?:some\()?"
        r"(?=(\\{0,7}[\"'])[^\"'\n]{1,80}\1\s{0,8}(?:[)\n]|\Z))",
        next_word,
        folded=True,
    ),
    Rule("userpwd,", r"\s{0,4}(?=\\{0,7}[\"'][^,])", _login, needs=("pw",), folded=True),
    Rule(
        "onnect",
        rf"(?:ion)?\((?:(?:(?<=racle\.connect\()|(?<=racledb\.connect\()){_ARGUMENTS % 1}|{_ARGUMENTS % 2})",
        after(_CONNECTS, _argument),
        needs=("(",),
    ),
    Rule("redential", rf"s?(?:\.new)?\({_ARGUMENTS % '1,2'}", chosen_argument, needs=("cred",)),
    Rule(
        "hmac",
        rf"(?:(?<= -hmac) (?=[^\s-])|\({_ARGUMENTS % 1}|\.new\(b?(?=\\{{0,7}}[\"']))",
        _signed,
        folded=True,
    ),
    Rule("SecretKeySpec(", r"(?=\\{0,7}[\"'])", chosen_argument, needs=("secret",)),
    Rule("WiFi.begin(", _ARGUMENTS % 1, _argument, needs=("(",)),
    Rule("new ", rf"(?:PDO|mysqli)\({_ARGUMENTS % 2}", _argument, needs=("(",)),
    Rule("jwt.", rf"(?:sign|verify|encode|decode)\({_ARGUMENTS % 1}", chosen_argument, needs=("(",)),
    Rule(
        "AUTH",
        r"(?:(?<=\"AUTH)\" (?=\")|(?<=\d> AUTH) (?:\w{1,40} )?(?=\S)|(?<=redis-cli AUTH) (?=\S)"
        r"| (?:PLAIN|LOGIN) (?=[A-Za-z0-9+/]{8}))",
        next_word,
    ),
    Rule("PASS", r"(?:WORD (?:FOR \S{1,80} = )?(?=\\{0,7}['\"])| (?=\S))", _upper_pass),
    Rule("identified ", r"(?:with \w{1,40} )?by (?=\S)", _identified, folded=True),
)
