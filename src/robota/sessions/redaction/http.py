"""Credentials in HTTP and in addresses: the schemes of a header, cookies, user information, signatures."""

from __future__ import annotations

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.rules import AHEAD, REDACTED, Decision, Rule, RunTail, follows, take
from robota.sessions.redaction.values import (
    has_digit,
    is_code,
    is_placeholder,
    is_snake,
    is_stand_in,
    looks_chosen,
    looks_issued,
)

_CREDENTIAL = r"[^\s\"'`\\<>,;&]"
_SCHEME = lazy_pattern(
    r"(?i)[\"'`]?(?P<scheme>bearer|basic|token|apikey|api-key|negotiate|ntlm|oauth|key|bot|splunk|jwt|ssws|genie-key)"
    rf"(?::? +|=|%20|\+)(?P<secret>{_CREDENTIAL}+)"
)
_LIST_SCHEME = lazy_pattern(
    r"(?i)[\"'`]?(?:digest|aws4-hmac-sha256|signature|hawk|oauth|hmac) +(?=[A-Za-z_-]+=)"
)
_LIST_NAME = lazy_pattern(r"(?i)[\"'`]?(?:digest|aws4-hmac-sha256|signature|hawk|oauth|hmac\S{0,8})[ ]+\[")
_LIST = lazy_pattern(r"[^\n\r\\'`]*")
_LIST_TAIL = RunTail(r"[^\n\r\\'`]")
_OTHER_SCHEME = lazy_pattern(rf"(?P<scheme>[A-Z][A-Za-z0-9-]{{1,24}}) +(?P<secret>{_CREDENTIAL}+)")
_SINGLE = lazy_pattern(rf"\\*[\"'`]?(?P<secret>{_CREDENTIAL}+)")
_LINE_END = lazy_pattern(r"[ \t]*(?:\r?\n|\\+[nr]|\Z|\\*[\"'`]|[,;)}\]>|])")
_LEVEL = lazy_pattern(r"[\w-]+=(\\{1,7})\"")
_CREDENTIAL_TAIL = RunTail(_CREDENTIAL)


def decide_authorization(ahead: str) -> Decision | None:
    """The value of an Authorization header; the scheme's name stays."""
    if (found := _LIST_SCHEME.match(ahead)) and (fields := _LIST.match(ahead, found.end())):
        if level := _LEVEL.match(ahead, found.end()):  # the header stands in a string
            quoted = RunTail(rf"[^\n\r\\'`\"]|(?<!\\)\\{{{len(level[1])}}}\"", look=len(level[1]) + 1)
            return found.end(), found.end(), quoted, REDACTED
        return found.end(), fields.end(), _LIST_TAIL, REDACTED
    found = _SCHEME.match(ahead)
    if found is None and (other := _OTHER_SCHEME.match(ahead)) and looks_issued(other["secret"]):
        found = other
    found = found or _SINGLE.match(ahead)
    if found is None or _LIST_NAME.match(ahead):
        return None
    secret = found["secret"]
    computed = is_code(secret) and not (has_digit(secret) and _BEARER.fullmatch(secret))
    if is_stand_in(secret.rstrip(".")) or computed or is_snake(secret):
        return None
    alone = _LINE_END.match(ahead, found.end()) is not None
    stated = looks_chosen(secret) or (alone and "scheme" in found.groupdict())
    return take(found, _CREDENTIAL_TAIL) if stated else None


_CLEARED = lazy_pattern(
    r"(?i)[^=;]+=(?:deleted)?(?:; ?(?:max-age|path|domain|expires|samesite|httponly|secure)\b|\Z)"
)
_PREFERENCE = lazy_pattern(
    r"(?i)(?:theme|color[-_]?(?:scheme|mode)|lang(?:uage)?|locale)=(?:dark|light|auto|system|[a-z]{2}(?:[-_][a-z]{2})?)"
    r"(?:; ?(?:(?:max-age|path|domain|expires|samesite)=[^\s;]{0,40}|httponly|secure|partitioned))*"
)


def _is_preference(cookie: str) -> bool:
    """Whether a cookie only says how a page is shown; a longer one may go on behind what is seen."""
    return len(cookie) < AHEAD // 2 and _PREFERENCE.fullmatch(cookie) is not None


decide_cookie = follows(
    r"\\*[\"'`]?(?P<secret>[^\s=;,\"'\\<>(){}\[\]]{1,80}=[^\s;,\"'\\<>]*"
    r"(?:; ?[^\s=;\"'\\<>]+(?:=[^\s;\"'\\<>]*)?)*)",
    RunTail(r"[^\s;,\"'\\<>]|; ?(?=[^\s;\"'\\<>])", look=3),
    looks=lambda secret: (
        not (is_placeholder(secret.partition("=")[2]) or _CLEARED.match(secret) or _is_preference(secret))
    ),
)
"""The value of a Cookie or Set-Cookie header."""


def _bearer(before: str, ahead: str, _ends: bool) -> Decision | None:
    found = _BEARER.match(ahead)
    if found is None or is_placeholder(secret := found["secret"]):
        return None
    rest = ahead[found.end() : found.end() + 2]
    if "://" in secret or (is_code(secret) and not has_digit(secret)) or rest.startswith(tuple("{([<$%")):
        return None
    if _CHALLENGE.fullmatch(secret):
        return None
    quoted = _QUOTED_BEARER.search(before) and rest[:1] in ("'", '"', "`", "\\")
    whole = before.strip().lower() == "bearer" and not ahead[found.end() :].strip()
    known = (has_digit(secret) and len(secret) >= 6) or looks_issued(secret) or len(secret) >= 24
    if known or ((quoted or whole) and not _SCHEME_WORD.fullmatch(secret)):
        return take(found, _BEARER_TAIL)
    return None


_BEARER = lazy_pattern(r"(?P<secret>[A-Za-z0-9._~+/=:-]+)")
_CHALLENGE = lazy_pattern(  # what a server asks for
    r"(?:realm|scope|error(?:_description|_uri)?|authorization(?:_uri)?|resource(?:_id|_metadata)?|charset|nonce)="
)
_BEARER_TAIL = RunTail(r"[A-Za-z0-9._~+/=:-]")
_QUOTED_BEARER = lazy_pattern(r"(?i)[\"'`]bearer\s+\Z")
_SCHEME_WORD = lazy_pattern(
    r"(?i)tokens?|auth\w*|schemes?|realm.*|headers?|credentials?|format|only|error.*|not|is|and|or|\.+"
)


def _basic(before: str, ahead: str, ends: bool) -> Decision | None:
    """`Basic dXNlcjpw…`, and `http-basic.host user password` of a package tool's settings"""
    plain = before[-1] == " " and before.rstrip()[-5:].lower() != "basic"
    return (_basic_word if plain else _basic_login)(before, ahead, ends)


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


_basic_word = follows(
    r"(?P<secret>[^\s\"'`\\]+)", looks=lambda secret: looks_chosen(secret) and not is_placeholder(secret)
)
_basic_login = follows(r"(?P<secret>[A-Za-z0-9+/=_-]{6,})", RunTail(r"[A-Za-z0-9+/=_-]"), looks=_is_login)


def _user_information(before: str, ahead: str, ends: bool) -> Decision | None:
    """`https://user:password@host`, `https://token@host`"""
    found = _URL_PASSWORD.match(ahead)
    if found is None:
        found = _URL_TOKEN.match(ahead)
        if found is None:
            return _unencoded(before, ahead, ends)
        return take(found) if looks_issued(found["secret"]) else None
    secret = found["secret"]
    if (_TEMPLATE.match(secret) and is_placeholder(secret)) or "{" in secret or REDACTED in secret:
        return None
    if "[" in found["user"] or (secret.isupper() and is_placeholder(secret)):
        return None
    if secret in _SAMPLES and _SAMPLE_HOST.match(ahead, found.end()):
        return None
    if found["user"].isupper() and _VARIABLE.fullmatch(secret):
        return None
    if _URL_USER.fullmatch(found["user"]) and looks_issued(found["user"]):
        return found.start("user"), found.end("secret"), None, REDACTED
    return take(found)


_unencoded = follows(
    r"[^\s/:@\"'`<>?#]{0,80}:(?P<secret>(?!\d{2,5}/)[^\s\"'`<>\\@:]{1,120})@(?=[\w.-]{1,60}(?::\d|/\w))",
    looks=lambda secret: not is_stand_in(secret) and "{" not in secret,
    after=r"(?:sql|postgres|mariadb|mongodb|rediss?|amqps?)://\Z",
)
"""`mysql://user:pass/word@host`: people paste passwords there with signs that should have been encoded."""
_URL_PASSWORD = lazy_pattern(
    r"(?P<user>[^\s/:@\"'`<>?#]{0,80}):(?P<secret>[^\s/\"'`<>\\?#]{1,120})@(?=[\w\[(${.*/-])"
)
_SAMPLES = ("password", "pass", "passwd")
_SAMPLE_HOST = lazy_pattern(r"(?:localhost|127\.0\.0\.1|host(?:name)?|example\.(?:com|org|net))(?![\w.-])")
"""`user:password@localhost` of a manual"""
_VARIABLE = lazy_pattern(r"(?:[A-Z]+[_-])*(?:PASS(?:WORD|WD|PHRASE)?|PWD?|SECRET|TOKEN|KEY)")
_URL_USER = lazy_pattern(r"[A-Za-z0-9_-]{20,}")
_URL_TOKEN = lazy_pattern(r"(?P<secret>[A-Za-z0-9_-]{20,140})@(?![\w.-]*sentry\.io)(?=[\w.-]+)")
_TEMPLATE = lazy_pattern(r"[$<{%*\[]|\.\.|x{3,}\Z|…|•")


until_at = follows(r"(?P<secret>[^@]+)@", looks=lambda secret: REDACTED not in secret)
"""`jdbc:oracle:thin:user/password@host`, `user:password@tcp(host)`, `sqlplus user/password@service`"""
_escaped_login = follows(r"(?s)(?P<secret>.*?)%40", looks=lambda secret: not is_stand_in(secret))
"""`https%3A%2F%2Fuser%3Apassword%40host`"""
_signature = follows(
    r"(?P<secret>[A-Za-z0-9%+/=_.-]{12,})",
    RunTail(r"[A-Za-z0-9%+/=_.-]"),
    looks=lambda secret: has_digit(secret) or "%" in secret,
)
_parameter = follows(r"(?P<secret>[A-Za-z0-9%/_.=-]+)", RunTail(r"[A-Za-z0-9%/_.=-]"), looks=looks_issued)

HTTP: tuple[Rule, ...] = (
    Rule(
        "bearer",
        r"(?:(?<![a-z0-9_]bearer)|(?<=\\[nrt]bearer))(?:[ \t]{1,4}|\r?\n[ \t]{1,4}|%20|\+"
        r"|\\{0,7}\", ?\\{0,7}\")(?=[a-z._~+/=:-]{0,100}[0-9]|[a-z._~+/=:-]{20}"
        r"|[a-z._~+/=:-]{1,19}(?:\\{0,15}[\"'`]|\s{0,4}(?:\Z|\n)))",
        _bearer,
        folded=True,
    ),
    Rule(
        "basic",
        r"(?:(?<![a-z0-9_]basic)|(?<=\\[nrt]basic))(?:(?:\s{1,4}|%20)(?=[a-z0-9+/]{6})"
        r"|(?<=http-basic)\.[\w.-]{1,60} \S{1,40} (?=\S))",
        _basic,
        folded=True,
    ),
    Rule(
        ":",
        r"(?://|\\/\\/)(?=[^\s/@]{1,200}@|[^\s/@:]{1,80}:[^\s@:]{1,120}@)",
        _user_information,
        needs=("@",),
    ),
    Rule(":", r"(?<=[\w.-]:)(?=[^\s:@/]{1,80}@(?:tcp|unix)\()", until_at, needs=("@",)),
    Rule("thin:", r"(?<=oracle:thin:)\w{1,40}/(?=[^\s@]{1,60}@)", until_at, needs=("@",)),
    Rule("%3a%2f%2f", r"[^\s/@%]{1,60}%3a(?=[^\s/@]{1,100}?%40)", _escaped_login, needs=("%",), folded=True),
    Rule(
        "sig",
        r"(?:nature)?=(?:(?<=[?&;]sig=)|(?<=[?&;-]signature=))(?=\S)",
        _signature,
        needs=("=",),
        folded=True,
    ),
    Rule("key=", r"(?<=[?&]key=)(?=[A-Za-z0-9_-]{0,12}[A-Za-z0-9]{16})", _parameter, needs=("=",)),
    Rule("appid=", r"(?<=[?&]appid=)(?=[0-9a-f]{32})", _parameter, needs=("=",)),
    Rule("code=", r"(?<=[?&]code=)(?=[A-Za-z0-9%/_.=-]{24})", _parameter, needs=("=",)),
)
