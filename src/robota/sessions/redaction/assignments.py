"""Secrets that stand after their name: JSON fields, variables, headers, query parameters, XML elements.

The same name means different things in a program, a configuration file and a sentence, so the decision looks
at how name and value are written. Programs compute secrets (`password = getpass()`), files state them.
"""

from __future__ import annotations

import re

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.http import decide_authorization, decide_cookie
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.rules import (
    REDACTED,
    BracketTail,
    Decision,
    RunTail,
    StringTail,
    find_close,
    move,
    take,
)
from robota.sessions.redaction.values import (
    has_digit,
    is_camel,
    is_code,
    is_complaint,
    is_dashed,
    is_dotted,
    is_name,
    is_number,
    is_path,
    is_placeholder,
    is_prose,
    is_reference,
    is_snake,
    is_stand_in,
    is_type,
    looks_chosen,
    looks_issued,
    repeats_name,
)

_SIGN = lazy_pattern(
    r"(?P<close>(?:\\{0,15}[\"'`])?(?:\]|%5[dD])?)(?:\[\d{0,4}\])?(?P<space>[ \t]{0,40})"
    r"(?P<sign>=>|:{1,3}=|\|\|=|::(?=[ ]?[\"'])|\?=|=(?![=~>])|:(?![:/=])| (?:is|was):?(?= )|>(?=[^<\s=]))"
    r"(?P<gap>[ \t]{0,40}+(?=\S)|[ \t]{0,2}\r?\n[ \t]{0,20}- |\s{0,40}+(?=\\{0,15}[\"\[{]))(?=\S)"
)
_VALUE = lazy_pattern(r"(?:[^\s\"'`\\<>&;,|\x00\x1b]|[&;,](?![\s\w.-]{0,40}=|\s|\Z|[\"'\\&;,]))+")
_PARAMETER = lazy_pattern(r"[^\s\"'`\\<>&;#|)\]}\x00]+")
_VALUE_TAIL = RunTail(r"[^\s\"'`\\<>&;,|\x00\x1b]")
_PARAMETER_TAIL = RunTail(r"[^\s\"'`\\<>&;#|)\]}]")
_SCHEMA = lazy_pattern(
    r"\{\s*\\*\"(?:type\\*\"\s*:\s*(?:\[\s*)?\\*\"(?:string|number|integer|object|array|boolean|null)\\*\""
    r"|(?:shape|documentation|additionalProperties|properties|required|items|default|deprecated|readOnly|const"
    r"|insertionOrder|uniqueItems|minItems|maxItems|minimum|maximum|nullable|\$comment|description|title|\$ref|anyOf|oneOf|allOf|format|minLength|maxLength|enum|pattern|writeOnly|examples?)\\*\")"
)
_NUMBER = lazy_pattern(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=\s*(?:[,}\]\\]|\Z))")
_STRING = lazy_pattern(
    r"(?:(?:Some|Just|SecretStr|SecretString|String::from|\[\]byte)\()?[bBrRuULNE@]?(?P<slashes>\\{0,15})(?P<quote>[\"'`])"
)
_LONG_STRING = lazy_pattern(r"[bBrRuU]?(?:\"\"(?=\"\w)|''(?='\w)|`(?=`\w))(?P<slashes>)(?P<quote>[\"'`])")
_EMPTY = lazy_pattern(r"[\[{]\s*(?:\\+[nrt]\s*)*[\]}]|\[REDACTED\]")
_REST = lazy_pattern(r"[ \t]*(?:\r?\n|\\+[nr]|\Z|[\"'`]|\\+[\"']|[#;]|//|\*/|--+>|,?[ \t]*\})")
_PAIR_AFTER = lazy_pattern(r"[ \t;,&]+[A-Za-z_][\w.-]*=")
_MATRIX = lazy_pattern(r"/[\w.-]+;\Z")
_YAML_NEXT = lazy_pattern(r"\r?\n[ \t-]*[a-z][\w-]*:(?:[ \t]+[\w./:@-]+)?[ \t]*(?:\r?\n|\Z)")
_PASSWORD = lazy_pattern(r"(?i)pass(?:word|wd|phrase)s?\d*\Z")
_TYPE_NAME = lazy_pattern(r"[A-Z][A-Za-z0-9]*(?:(?:Private|Public|Secret)Keys?|Types?|Str|Ref)")
_CALL = lazy_pattern(r"[()\[\]{}$]|(?i:key|token|secret|password)\Z")
_PLAIN = lazy_pattern(r"[A-Za-z][A-Za-z_.:-]*")


class _Place(Struct, frozen=True):
    """How the name of a variable is written, what comes before it, and how it is tied to a value."""

    name: str
    lead: str
    strength: Strength
    sign: str
    close: str
    tight: bool

    @property
    def is_shell(self) -> bool:
        """`NAME=…`"""
        return self.tight and self.name.isupper()

    @property
    def is_parameter(self) -> bool:
        return self.tight and self.sign == "=" and self.lead.endswith(_PARAMETER_LEADS)

    @property
    def starts_line(self) -> bool:
        return _LINE_START.search(self.lead[-12:]) is not None

    @property
    def in_row(self) -> bool:
        """Whether another `name=value` stands right before."""
        return _PAIR_BEFORE.match(self.lead[:-80:-1]) is not None


_PARAMETER_LEADS = ("?", "&", ";", "[", "%5B", "%5b", "%")
_LINE_START = lazy_pattern(r"(?:\n|\A|\\n|[\"'`])(?:export |set |ENV |ARG |- )?\Z")
_PAIR_BEFORE = lazy_pattern(r"[\s;,&]{1,4}[^\s=;,&]{0,60}=[\w.-]")  # read backwards


def decide_assignment(name: str, lead: str, ahead: str, ends: bool) -> Decision | None:
    """Whether the name (found after `lead`) is tied to a secret by a sign such as `=` or `:`."""
    sign = _SIGN.match(ahead)
    if sign is None or lead.endswith("//"):  # a user's name in a URL
        return None
    if lead.endswith(":") and "arn:" in lead[-90:] and sign["sign"] == ":" and not sign["gap"]:
        return None
    strength = name_strength(name)
    if strength is Strength.NONE:
        return None
    close = sign["close"].rstrip("]").removesuffix("%5D").removesuffix("%5d")
    place = _Place(name, lead, strength, sign["sign"], close, not sign["space"] and not sign["gap"])
    return move(_decide_value(place, ahead[sign.end() :], ends), sign.end())


def decide_object(name: str, lead: str, ahead: str) -> Decision | None:
    """`{"name": "NAME", …, "value": value}` and `"NAME": {"value": value}`"""
    link = _OBJECT.match(ahead)
    strength = name_strength(name)
    if link is None or strength is Strength.NONE:
        return None
    if not lead.endswith(link["close"]):  # the name may end a path
        if "SecureString" not in link.group() or not _PATH_LEAD.search(lead):
            return None
        lead = link["close"]
    if _LABELLED.search(lead) and strength < Strength.TEXT:
        return None
    rest = ahead[link.end() :]
    decision = _decide_field(_Place(name, lead, strength, ":", link["close"], False), rest)
    if decision is None:
        return None
    value = rest[decision[0] : decision[1]]
    if not value.isdigit() and repeats_name(name, value):
        return None
    return move(decision, link.end())


_OBJECT = lazy_pattern(
    r"(?P<close>\\{0,15}[\"'])(?:\s{0,8},[^{}<>\n]{0,60}?(?:\n[^{}<>\n]{0,60}?){0,2}|\s{0,4}:\s{0,8}\{\s{0,20})\\{0,15}[\"']"
    r"(?:value|Value|ParameterValue|default|stringValue)\\{0,15}[\"']\s{0,8}:\s{0,8}"
    r"(?:\{\s{0,8}\\{0,15}[\"']stringValue\\{0,15}[\"']\s{0,4}:\s{0,4})?(?=\S)"
)
_PATH_LEAD = lazy_pattern(r"[\"']/?(?:[\w.-]+/)+\Z")
_LABELLED = lazy_pattern(r"\b(?:id|label)\\*[\"']\s*:\s*\\*[\"']\Z")


def _decide_value(place: _Place, ahead: str, ends: bool) -> Decision | None:
    if place.close:
        return _decide_field(place, ahead)
    lowered = place.name.lower()
    if lowered.endswith("authorization"):
        return decide_authorization(ahead)
    if lowered.endswith("cookie"):
        return decide_cookie(place.lead, ahead, ends) if place.strength is Strength.FULL else None
    if place.sign == ">":
        return _decide_element(place.lead, ahead, ends)
    return _decide_variable(place, ahead, ends)


def _decide_field(place: _Place, ahead: str) -> Decision | None:
    """`"name": value` of JSON or a literal of a program."""
    if not place.lead.endswith(place.close) and not place.name.startswith("_auth"):
        return None
    strength = place.strength
    if place.name == "pass" and _LOGIN.search(place.lead[-120:] + ahead):
        strength = Strength.TEXT
    if found := _STRING.match(ahead):
        content, decision = _read_string(ahead, found)
        if _is_harmless(place, _SCHEME.sub("", content)):
            return None
        return None if strength is Strength.WEAK and not looks_issued(content) else decision
    value = _LINE_VALUE.match(ahead)
    if value and _states_alone(place, value["secret"]):
        return take(value)
    if place.sign != ":" or place.close[-1] != '"':
        return None
    quoted = f"{place.close}{REDACTED}{place.close}"
    number = _NUMBER.match(ahead)
    if strength is Strength.FULL and number and number.end() > 2:
        return 0, number.end(), None, quoted
    if strength < Strength.MANY or ahead[0] not in "[{" or _EMPTY.match(ahead) or _SCHEMA.match(ahead):
        return None
    return None if _complains(ahead) else (0, 0, BracketTail(len(place.close) - 1), quoted)


def _read_string(ahead: str, opening: re.Match[str]) -> tuple[str, Decision]:
    """What stands in the quotes, as far as it is seen, and that all of it is secret."""
    start, quote, level = opening.end(), opening["quote"], len(opening["slashes"])
    end = find_close(ahead, start, quote, level)
    if end < 0:
        return ahead[start:], (start, len(ahead), StringTail(quote, level), REDACTED)
    return ahead[start:end], (start, end, None, REDACTED)


def _complains(ahead: str) -> bool:
    """Whether a list holds what is wrong with the field: `["is too short"]`."""
    texts = _TEXTS.match(ahead)
    return texts is not None and all(map(is_complaint, _TEXT.findall(ahead[: texts.end() + 1])))


_TEXTS = lazy_pattern(r"\[\s*(?:\\*\"[^\"\\]*\\*\"[\s,]*)+")
_TEXT = lazy_pattern(r"\"([^\"\\]*)\\*\"[\s,\]]")


def _is_harmless(place: _Place, content: str) -> bool:
    """Whether the text of a field is a reference, a type, a label, a version, a path or mere punctuation."""
    if not _ALNUM.search(content) or is_reference(content) or is_type(content) or _OPTION.fullmatch(content):
        return True
    name = place.name.lower()
    if (name.endswith("string") and content.startswith("{")) or (name == "id-token" and content == "write"):
        return True
    if content.lower() == name or is_name(content) or (is_dotted(content) and not _DIGITS.search(content)):
        return True
    if name.endswith("pwd") or place.strength is Strength.TEXT:
        return is_path(content)
    return name == "cookie" and _VERSION.match(content) is not None


def _states_alone(place: _Place, value: str) -> bool:
    """Whether the rest of a line after a quoted name is a secret and no expression."""
    if is_code(value) or is_snake(value) or repeats_name(place.name, value) or is_placeholder(value):
        return False
    return looks_chosen(value)


_ALNUM = lazy_pattern(r"[^\W_]")
_DIGITS = lazy_pattern(r"\d\D+\d|\d{3}")
_OPTION = lazy_pattern(r"--?[a-z][a-z-]*")
_LOGIN = lazy_pattern(r"[\"'](?:user|username|login|email)\\*[\"']\s*:")
_LOGIN_LINE = lazy_pattern(
    r"(?i)(?:^|\n)[ \t-]*(?:smtp_?)?(?:user|username|login|email)[ \t]*[:=][^\n]*\n[ \t]*\Z"
)
_SCHEME = lazy_pattern(r"(?i)^(?:bearer|basic|token)\s*(?=\W|\Z)")
_VERSION = lazy_pattern(r"[\^~<>=v]*\d+\.\d+|\*|latest\b|workspace:")
_LINE_VALUE = lazy_pattern(r"(?P<secret>[A-Za-z0-9][^\s\"'`\\<>&;,|(){}\[\]]+)[ \t]*(?:\n|\Z)")


def _decide_element(lead: str, ahead: str, ends: bool) -> Decision | None:
    """`<password>value</password>`"""
    found = _ELEMENT.match(ahead) if _TAG.search(lead) else None
    if found is None or is_stand_in(content := found["secret"].strip()) or is_path(content):
        return None
    if not ahead.startswith("</", found.end()) and (ends or found.end() < len(ahead)):
        return None
    return take(found, _ELEMENT_TAIL)


_TAG = lazy_pattern(r"<[\w.:-]*\Z")
_ELEMENT = lazy_pattern(r"(?P<secret>[^<\n]+)")
_ELEMENT_TAIL = RunTail(r"[^<\n]")


def _decide_default(place: _Place, ahead: str) -> Decision | None:
    """`${DB_PASSWORD:-value}` of a shell, `${db.password:value}` of Spring."""
    found = _DEFAULT.match(ahead)
    if found is None or is_stand_in(found["secret"]):
        return None
    stated = looks_issued if place.strength is Strength.WEAK else looks_chosen
    return take(found) if stated(found["secret"]) else None


_DEFAULT = lazy_pattern(r"[-=]?(?P<secret>[^\s\"'`\\<>{}?$][^\s\"'`\\<>{}$]*)\}")


def _decide_variable(place: _Place, ahead: str, ends: bool) -> Decision | None:
    if place.lead.endswith("${"):
        return _decide_default(place, ahead)
    if found := (
        _LONG_STRING.match(ahead) if place.sign == "=" or ahead[0] == "`" else None
    ) or _STRING.match(ahead):
        return _decide_literal(place, ahead, found)
    found = (_PARAMETER if place.is_parameter else _VALUE).match(ahead)
    if found is None:
        return None
    whole, value = found.group(), _strip_stop(place, found)
    if not value or value[0] in "!&" or is_stand_in(value) or (value != whole and is_placeholder(whole)):
        return None
    if place.is_parameter:
        return _decide_parameter(place, value, len(whole))
    rest = ahead[len(value) :]
    if not _states_secret(place, value, rest):
        return None
    if place.lead.endswith(";") and (more := _SPACED_VALUE.match(rest)):
        return 0, len(value) + more.end(), None, REDACTED
    if whole == ahead and not (ends and value != whole):
        return 0, len(ahead), _VALUE_TAIL, REDACTED
    return 0, len(value), None, REDACTED


def _decide_parameter(place: _Place, value: str, length: int) -> Decision | None:
    """`?name=value` of a URL"""
    if (place.strength is Strength.WEAK and len(value) < 6) or value[0] in "{<$":
        return None
    if value.isupper() and not has_digit(value) and repeats_name(place.name, value):
        return None
    if _MATRIX.search(place.lead) and "/" in value:
        return 0, value.index("/"), None, REDACTED
    return 0, length, _PARAMETER_TAIL, REDACTED


def _strip_stop(place: _Place, found: re.Match[str]) -> str:
    """The value without the sentence's punctuation; a `!` at the end of a line of a file is part of it."""
    value = found.group()
    kept = (place.tight or has_digit(value)) and place.sign == "=" and value[-1] == "!"
    kept = kept and _REST.match(found.string, found.end()) is not None
    return value if kept else value.rstrip(".,:!?)")


_SPACED_VALUE = lazy_pattern(r"(?: [^\s;=\"'\\]+){1,6}(?=;[A-Za-z])")
"""The other words of a value in a connection string."""


def _decide_literal(place: _Place, ahead: str, found: re.Match[str]) -> Decision | None:
    """`name = "value"`"""
    content, decision = _read_string(ahead, found)
    if found["quote"] == "`" and place.name.isupper():
        return None
    if _closes_before(place, found["quote"], len(found["slashes"]), content):
        return None
    if is_stand_in(content) or is_type(content) or is_path(content) or is_name(content):
        return None
    if not place.is_shell and (is_prose(content) or (is_dotted(content) and not _DIGITS.search(content))):
        return None
    if place.name.isupper() and not place.tight and not name_strength(place.name.lower()):
        secret = looks_issued(content) and has_digit(content)
    elif place.strength is Strength.WEAK:
        secret = looks_issued(content)
    elif repeats_name(place.name, content) and not _NUMBERED.search(content):
        secret = False
    else:
        secret = place.strength is not Strength.TEXT or place.is_shell or not _PLAIN.fullmatch(content)
    return decision if secret else None


def _closes_before(place: _Place, quote: str, slashes: int, content: str) -> bool:
    """Whether the quote after the sign ends a string in which the name stands (`'--key=' + value`)."""
    lead = place.lead.rstrip("-")
    inner = len(lead) - len(lead[:-1].rstrip("\\")) - 1  # backslashes before that quote
    return (lead[-1:] == quote and slashes <= inner) or _GOES_ON.match(content) is not None


_GOES_ON = lazy_pattern(r"\s*[+%] |[)\],;}](?:[\s;,).:]|\Z)|\s*\+\s*\w|\.(?:format|join)\(")


_NUMBERED = lazy_pattern(r"[A-Za-z].*?(?:\d{3}|\d[!@#$%^&*])")
_SECTION = lazy_pattern(r"(?:\A|\n)\[[a-z][\w.:/ -]*\]\n(?:[a-z][\w.-]* *= *[^\n]*\n){0,4}\Z")
"""The lines of an INI file before this one, from the heading of its section on."""
_ARTIFACT = lazy_pattern(r"[a-z][a-z-]+[:-]\d+\.\d+[\w.]*")  # io.jsonwebtoken:jjwt-api:0.11.2


def _states_secret(place: _Place, value: str, rest: str) -> bool:
    """Whether a bare word after a name is the secret itself and not a word, a type or an expression."""
    if rest[:1] in ("(", "[", "{") or (place.tight and place.sign == ":" and _ARTIFACT.fullmatch(value)):
        return False
    shell = place.is_shell and place.starts_line
    if is_path(value) or (is_code(value) and not (shell and value.isascii() and not _CALL.search(value))):
        return False
    if is_number(value):
        return place.strength is Strength.FULL and len(value) >= 4
    if place.strength is Strength.WEAK:
        if place.name == "pass" and looks_chosen(value) and _LOGIN_LINE.search(place.lead[-160:]):
            return True
        return looks_issued(value)
    line_ends = _REST.match(rest) is not None
    if place.sign == "=" and place.tight:
        return _states_tightly(place, value, rest, line_ends=line_ends)
    return _states_loosely(place, value, rest, line_ends=line_ends)


def _states_loosely(place: _Place, value: str, rest: str, *, line_ends: bool) -> bool:
    """`name: value`, `name = value`, `name is value`: YAML, an INI file, a program or a sentence."""
    if (repeats_name(place.name, value) and not _NUMBERED.search(value)) or is_snake(value):
        return False
    if _TYPE_NAME.fullmatch(value):
        return False
    if place.sign == "=" and not line_ends:
        return looks_issued(value)
    if looks_chosen(value) or (place.sign == "=" and place.starts_line and _SECTION.search(place.lead)):
        return True
    if line_ends and "-" in place.name and place.sign == ":" and is_camel(value):
        return True
    if not _PASSWORD.search(place.name) or place.sign != ":" or not line_ends:
        return False
    return is_dashed(value) or (value.isalpha() and value.islower() and _YAML_NEXT.match(rest) is not None)


def _states_tightly(place: _Place, value: str, rest: str, *, line_ends: bool) -> bool:
    """`NAME=value` without blanks: a shell, a file, a connection string, or the argument of a call."""
    if place.name.isupper() and place.strength >= Strength.TEXT:
        return not repeats_name(place.name, value) or has_digit(value)
    if repeats_name(place.name, value) or is_snake(value):
        return False
    if rest[:1] in (",", ")"):
        return looks_chosen(value)
    if place.name.startswith("-") and is_name(value):  # --secret=db-password
        return False
    if place.name.startswith("-") or (line_ends and place.starts_line) or looks_chosen(value):
        return True
    return place.in_row or _PAIR_AFTER.match(rest) is not None
