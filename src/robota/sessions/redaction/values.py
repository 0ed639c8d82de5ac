"""Whether a value that stands after a telling name is a secret, a placeholder or an ordinary word.

Everything here is pure and looks at one short text (the callers cut it to a bounded window).
"""

from __future__ import annotations

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.rules import REDACTED, whole, word_set

_ORDINARY = word_set(
    """
    true false null none nil undefined void unknown any never string str text bytes int integer number float
    pass bool boolean object array list dict map optional required mandatory hidden masked redacted password
    passwd passphrase secret token key value values username user name email str[] string[] char varchar
    enabled disabled yes no on off default empty blank missing invalid valid expired incorrect wrong
    changeme change_me changeit example sample test dummy fake placeholder todo tbd n/a na unset same-origin
    include omit sha1 sha256 sha384 sha512 md5 base64 base32 utf8 utf-8 utf16 ascii hex bcrypt argon2
    argon2id argon2i scrypt pbkdf2 x509 ed25519 rs256 hs256 es256 rsa2048 rsa4096 aes256 aes128 aes-256
    aes-256-gcm aes-128-gcm aes-256-cbc oauth oauth2 oauth1 oauth2.0 openid jwt bearer basic digest http
    https 2fa mfa totp sso saml saml2 i18n l10n utf-16 latin1 iso-8859-1 http2 http1.1 h2 ipv4 ipv6 base58
    p12 pkcs1 pkcs8 pkcs12 ecdsa env stdin prompt keychain keyring vault file inherit self this
    """
)
_KNOWN_PASSWORDS = word_set(
    """
    letmein swordfish opensesame qwerty qwertyuiop monkey dragon iloveyou sunshine princess football welcome
    shadow batman superman hunter topsecret supersecret mysecret sesame toor correcthorsebatterystaple
    asdfgh asdfghjkl zxcvbn trustno mypassword secretpassword supersecretpassword verysecret s3cret p4ssword
    mysecretpassword mysecretpw my-secret-pw my-secret-password mypass rootpass rootpassword adminpass
    adminpassword secretpass testpassword thisismypassword
    """
)
_PLACEHOLDER = lazy_pattern(
    r"""(?xi)
      \$ (?: [a-z_] \w* (?! \w* [@\#!%^*~] ) | \{ | \( | \$ | [0-9@*] $ )
    | @ [\w.-]+ @ $ | %\( | %[a-z_]\w*% | %[a-z_][\w.:(),]*%(?!\w) | %[sdvr]\b
    | \{\{ | \{ [\w.\ ]* (?:\}(?:$|/)|$) | \# \{ | \[ (?:\^|[A-Za-z0]-[A-Za-z9]|[a-z-]+=|[a-z]+\ ) | \. [*+]
    | &lt; | ["'] \$
    | (?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+)\ AAAA
    | < | \* {2} | \.{2} | … | • | x{3,} (?:-|_|\b|$) | -{3,} $ | _{3}
    | \[ (?:redacted|hidden|masked|removed|filtered|secret|your|omitted)
    | -{0,2}(?:redacted|removed|masked|hidden|filtered|omitted) \b
    | (?:[a-z0-9]{1,8}[-_]){0,3}your (?:[-_ .]|[a-z]*(?:key|token|password|secret)) | insert | replace
    | change[-_]?(?:me|this|it)(?![a-z]{0,8}[-_!@]?\d)
    | put[-_ ] | paste | enter[-_ ] | (?:my|the|a|some)[-_](?:api|secret|token|password|key|access)[-_a-z]*$
    | (?:op|vault|env|keyring|ssm|secretsmanager|awssm|gcpsm|file):(?!\S*@) | \$?env: | arn:aws
    | enc\[ | !vault | @@ | todo | fixme | dummy | placeholder | example[-_ ] | [\w-]+ :latest $
    """
)
_BLANKED = lazy_pattern(
    r"(?i)(?:[a-z0-9]{1,10}[-_~]){0,4}_?(?:x{4,}|\*{3,}|\.{3}|…)|[A-Za-z0-9_-]{0,40}(?:\.{3}|…)\Z"
)
_ALL_SAME = lazy_pattern(r"(.)\1*")
_CODE = lazy_pattern(r"[()\[\]{}]|->|=>|::|\|\||&&|\?\.")
_WORD = r"#?[A-Za-z_$]+[0-9]{0,2}[A-Za-z_$]*[0-9]{0,2}"
_DOTTED = lazy_pattern(rf"{_WORD}(?:\??\.{_WORD})+[!;,]?")
_CHAIN = lazy_pattern(r"[A-Za-z_]\w{0,30}(?:\.[A-Za-z_]\w{0,40}){1,5}")
_KEY = r"(?=\D*\d\D*\d)(?=.*[a-z])(?=.*[A-Z].*[A-Z])[A-Za-z0-9+/]{40}\Z"
"""As AWS issues them; a slash may stand anywhere in it."""
_PATH = lazy_pattern(
    rf"(?!{_KEY}|[A-Za-z0-9+/]{{42,}}={{1,2}}\Z)(?:(?:~|\.{{1,2}})?/[\w.@~-]*(?:/|$)|[A-Za-z]:[\\/]|\.{{1,2}}/"
    r"|[\w.-]+/[\w./-]+\.\w{1,5}$|https?://)"
)
"""No Base64 of so many bytes that it ends in a sign of its own."""
_STEM = lazy_pattern(r"(?i)pass|secret|token|key|pwd|cred|auth|cookie")
_STEM_WORD = lazy_pattern(r"(?i)\b(?:pass\w*|secrets?|tokens?|keys?|pwd|cred\w*|auth\w*|cookies?)\b")
_VERSION = lazy_pattern(r"(?i)v?\d+(?:\.\d+)+\S{0,24}|\d{4}-\d\d-\d\d\S*|v\d+(?:alpha|beta)?\d*")
_IDENTIFIER = lazy_pattern(r"[A-Za-z_$][\w$]*")
_LETTER = lazy_pattern(r"[A-Za-z]")
_NO_LETTER = lazy_pattern(r"[^a-z]+")
_DIGIT = lazy_pattern(r"[0-9]")
_SYMBOL = lazy_pattern(r"[!@#$%^&*+=~?]")
_INNER_CAPITAL = lazy_pattern(r"[a-z][A-Z]|[A-Z]{2}[a-z]")


def has_digit(value: str) -> bool:
    return _DIGIT.search(value) is not None


def is_placeholder(value: str) -> bool:
    """Whether the text only shows where a secret would stand."""
    if _is_known(value):
        return False
    if not value or value.lower() in _ORDINARY or is_reference(value):
        return True
    return _ALL_SAME.fullmatch(value) is not None or _BLANKED.match(value) is not None


def _is_known(value: str) -> bool:
    """Whether it is a password that many chose, and no variable such as `adminPassword`."""
    return value.lower() in _KNOWN_PASSWORDS and not _VARIABLE.fullmatch(value)


_VARIABLE = lazy_pattern(r"[a-z]+Pass(?:word)?")
is_masked = whole(r"(?i)(?:[a-z0-9]{1,10}[-_~]){0,4}_?(?:x{4,}|[a-z0-9]{0,4}(?:\*{3,}|\.{3}|…)[a-z0-9]{0,4})")
"""Whether all but the ends of a text was crossed out: `sk-…`, `ghp_xxxx`, `****1234`."""


def is_stand_in(value: str) -> bool:
    """Whether a secret would stand where the text stands, or stood there and was redacted."""
    return REDACTED in value or is_placeholder(value)


def is_reference(value: str) -> bool:
    """Whether the text names the place of a secret (`${VAR}`, `<your key>`) or was redacted already."""
    return _PLACEHOLDER.match(value) is not None


is_type = word_set(
    """
    string str number integer int float boolean bool bytes object list dict file any true false none null
    String SecretStr True False None Boolean Integer
    """
).__contains__
"""Whether the text is the name of a type, as in a schema by example."""
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)*")
is_snake = whole(r"_*[A-Za-z]+[0-9]{0,2}(?:_+[A-Za-z]*[0-9]{0,2})+")
"""Whether the text is an identifier of several words."""


def is_name(value: str) -> bool:
    """Whether the text is the name of a secret (`APP_CLIENT_SECRET`, `X-Api-Key`), not one."""
    return bool(not _LEET.search(value) and _NAME.fullmatch(value) and _ENDING.search(value))


_LEET = lazy_pattern(r"(?<![a-z])(?!k8s|i18n|l10n|e2e|x509|n8n|a11y|p2p|b2b|v\d|s3|h2|oauth)[a-z]+[0-9][a-z]")
"""A digit in the middle of a word: made up, not named."""


_ENDING = lazy_pattern(
    r"(?i)(?:password|passwd|passphrase|secret|token|api[-_]?key|_key|-key|authorization|cookies?|credentials?)\Z"
)


is_path = whole(
    rf"(?!{_KEY})(?:"
    r"(?:~|\.{1,2})?/[\w.@~+ -]+(?:/[\w.@~+ -]*)+|(?:~|\.{1,2})/[\w.-]+|/[\w-]+\.[a-z]{2,5}"
    r"|[A-Za-z]:[\\/].*|[a-z0-9._-]+(?:/[a-z0-9._-]+){2,}|[a-z][a-z0-9.-]*\.[a-z]{2,4}/[a-z0-9/._-]+)"
)
"""Whether the text is the path of a file or a resource."""


def is_code(value: str) -> bool:
    """Whether the bare text is a piece of a program or a path rather than a value."""
    return bool(_CODE.search(value) or _PATH.match(value) or _FIELD.fullmatch(value)) or is_dotted(value)


_FIELD = lazy_pattern(
    r"@{1,2}[a-z_]+|\*[A-Za-z_-]+"
    r"|(?:(?:[a-z]+(?:[A-Z][a-z]+)*)?(?:O[Aa]uth2|X509|Saml2|Base64|Pbkdf2|HmacSha256|Http2|K8s)"
    r"|oauth2|x509|saml2|base64|pbkdf2|http2|k8s)(?:[A-Z][a-z]+)+"
)
"""The field of an object in Ruby, a pointer or an alias, and identifiers with the digits of a standard."""


def is_dotted(value: str) -> bool:
    """Whether the text is a chain of names (`self.token`, `google.oauth2.Credentials`)."""
    value = value.lstrip("!*&.@")
    return _DOTTED.fullmatch(value) is not None or (
        "." in value and _STEM.search(value) is not None and _CHAIN.fullmatch(value) is not None
    )


def is_number(value: str) -> bool:
    return value.replace("_", "").replace(",", "").replace(".", "").lstrip("+-").isdigit()


def looks_chosen(value: str) -> bool:
    """Whether a bare text is likely a chosen password: letters with digits or symbols, or a famous one."""
    lowered = value.lower()
    if _is_known(value):
        return True
    if len(value) < 5 or _VERSION.fullmatch(value) or lowered.partition("-")[0] in _ORDINARY:
        return False
    if not _LETTER.search(value):
        return bool(_SYMBOL.search(value)) or (len(value) >= 6 and value.isdigit())
    return bool(_DIGIT.search(value) or _SYMBOL.search(value[:-1]) or len(value) >= 24)


is_camel = whole(r"(?s).*[a-z][A-Z][a-z].*")
"""Whether words are glued together by capital letters."""


def is_dashed(value: str) -> bool:
    """Whether a text is lower-case words tied by dashes, as made-up passwords are, and some settings too."""
    return _DASHED.fullmatch(value) is not None and _STEM.search(value) is None


_DASHED = lazy_pattern(
    r"(?!(?:auto|write|read|not|non|self|min|max|one|two|at|in|see)-)[a-z0-9]+(?:-[a-z0-9]+){2,}"
)


def looks_issued(value: str) -> bool:
    """Whether a text is likely an issued credential: long, one word, letters mixed with digits."""
    if len(value) < 12 and not _DENSE.fullmatch(value):
        return False
    if any(character.isspace() for character in value) or is_snake(value):
        return False
    if _VERSION.fullmatch(value) or is_code(value) or is_placeholder(value):
        return False
    if _IDENTIFIER_WORDS.fullmatch(value):
        return False
    if _DIGIT.search(value) and _LETTER.search(value):
        return len(value) >= 16 or not _SEPARATED_WORDS.fullmatch(value)
    return len(value) >= 20 and bool(_INNER_CAPITAL.search(value))


_DENSE = lazy_pattern(
    r"(?:(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9][A-Za-z])|(?=.*[0-9][A-Za-z]+[0-9]+[A-Za-z]))[A-Za-z0-9]{8,11}"
)
_SEPARATED_WORDS = lazy_pattern(r"[A-Za-z]{3,}(?:[-_.:/ ]?[A-Za-z]{2,})*[-_.:]?\d{1,4}(?:,\d{1,4})?")
_IDENTIFIER_WORDS = lazy_pattern(
    r"(?:[A-Za-z]?[a-z]+(?:[A-Z][a-z]+){1,8}|[a-z]*(?:[A-Z][a-z]+){0,4}[A-Z]{2,5}[a-z]{2,}(?:[A-Z][a-z]+){0,6})\d?"
)
"""Words glued together, one of which may be an abbreviation."""


def repeats_name(name: str, value: str) -> bool:
    """Whether a text speaks of its own name: labels, enum members, other variables of the same kind."""
    if _is_known(value) or (" " in value and _DIGIT.search(value)):
        return False
    plain = _NO_LETTER.sub("", value.lower())
    if not plain and value.isdigit() and len(value) > 5:
        return value in "012345678901234567890"
    return plain in _NO_LETTER.sub("", name.lower()) or (
        _IDENTIFIER.fullmatch(value) is not None
        and _STEM.search(value) is not None
        and not (_DIGIT.search(value) and not _NUMBERED_NAME.fullmatch(value))
    )


_NUMBERED_NAME = lazy_pattern(r"[a-z_]*(?:key|secret|token)[0-9]_?(?:file|name|path|id)")
"""`key1file`"""


def is_label(name: str, value: str) -> bool:
    """Whether a text is what people read in another language: letters beyond ASCII, or words under `a.b`."""
    if value.lower() in _TRANSLATED:
        return True
    if not value.isascii():
        return all(word.isalpha() for word in value.rstrip(".:?!…").split())
    return "." in name and not name.isupper() and _LABEL.fullmatch(value) is not None


_TRANSLATED = frozenset(
    ("passwort", "kennwort", "mot de passe", "senha", "wachtwoord", "heslo", "parola", "passord", "salasana")
)
_LABEL = lazy_pattern(r"[A-Z][a-z]+(?: [A-Za-z]+)+[.:?!…]?")


def is_complaint(value: str) -> bool:
    """Whether a text says what is wrong with a field, as answers to a form do."""
    return " " in value and _COMPLAINT.search(value) is not None


_COMPLAINT = lazy_pattern(
    r"(?i)\b(?:is|are|was|must|should|may|cannot|can't|can|does|do|has|have|field|too|required|please)\b"
)


def is_prose(value: str) -> bool:
    """Whether a quoted text of several words is a sentence or a label, not a pass phrase."""
    if " " not in value.strip() or is_phrase(value):
        return False
    return (
        _STEM_WORD.search(value) is not None
        or value.rstrip()[-1:] in ".?!:…"
        or (value[:1].isupper() and _INNER_SIGN.search(value) is None)
    )


_INNER_SIGN = lazy_pattern(r"[A-Za-z][$#^*!%][A-Za-z0-9]")


PHRASE = r"(?=[A-Za-z ]{0,30}[0-9])[A-Za-z0-9]{2,12}(?: [A-Za-z0-9]{1,12}){1,2}"
is_phrase = whole(PHRASE)
"""Whether the text is a pass phrase of two or three words, with a digit."""
