"""Secrets that stand after their name: JSON fields, variables, headers, query parameters, XML elements.

How name and value are written decides: what is found here is judged in `places`.
"""

from __future__ import annotations

import re

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.http import decide_authorization, decide_cookie
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.places import (
    Place,
    ends_line,
    is_harmless,
    states_alone,
    states_text,
    states_word,
    states_words,
)
from robota.sessions.redaction.rules import (
    REDACTED,
    BracketTail,
    Decision,
    RunTail,
    StringTail,
    Tail,
    find_close,
    may_go_on,
    move,
    take,
)
from robota.sessions.redaction.values import (
    has_digit,
    is_code,
    is_complaint,
    is_label,
    is_path,
    is_placeholder,
    is_prose,
    is_stand_in,
    looks_chosen,
    looks_issued,
    repeats_name,
)

# --- how a value is tied to its name -------------------------------------------------------------------

_SIGN = lazy_pattern(
    r"(?P<close>(?:\\{0,15}[\"'`])?(?:\]|%5[dD])?)(?:\[\d{0,4}\]|[ ]\[[*\w]{0,24}\])?"
    r"(?P<space>[ \t]{0,40})"
    r"(?P<sign>=>|:{1,3}=|\|\|=|::(?=[ ]?[\"'])|\?{1,2}=|\.=|<-(?=[ ]?\\{0,15}[\"'])|[=!]={1,2}(?=[ ]?[\"'])"
    r"|=(?![=~>])|:(?![:/=])| (?:is|was):?(?= )|>(?=[^<\s=]))"
    r"(?P<gap>[ \t]{0,40}+(?=\S)|(?<=:)[ \t]{0,2}\r?\n[ \t]{0,20}- |\s{0,40}+(?=\\{0,15}[\"\[{]))(?=\S)"
)
_VALUE = lazy_pattern(r"(?:[^\s\"'`\\<>&;,|\x00\x1b]|[&;,](?![\s\w.-]{0,40}[=:]|\s|\Z|[\"'\\&;,]))+")
_BRACED = lazy_pattern(r"\{(?P<secret>[^{}\n]{1,60})\}(?=[;\"'\s]|\Z)")  # of a connection string
_PARAMETER = lazy_pattern(r"[^\s\"'`\\<>&;#|)\]}\x00]+")
_VALUE_TAIL = RunTail(r"[^\s\"'`\\<>&;,|\x00\x1b]")
_PARAMETER_TAIL = RunTail(r"[^\s\"'`\\<>&;#|)\]}]")
_JSON = lazy_pattern(r"[\[{](?:\s|\\+[nrt])*+(?:\\*\"|\\*'|[\[{\d-]|\Z)")
_SCHEMA = lazy_pattern(
    r"\{\s*\\*\"(?:type\\*\"\s*:\s*(?:\[\s*)?\\*\"(?:string|str|number|integer|int|object|dict|array|list|boolean|bool|null)\\*\""
    r"|(?:shape|tokenUrl|documentation|additionalProperties|properties|required|items|default|deprecated|readOnly|const"
    r"|insertionOrder|uniqueItems|minItems|maxItems|minimum|maximum|nullable|\$comment|description|title|\$ref|anyOf|oneOf|allOf|format|no_log|minLength|maxLength|enum|pattern|writeOnly|examples?)\\*\")"
)
_NUMBER = lazy_pattern(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=\s*(?:[,}\]\\]|\Z))")
_STRING = lazy_pattern(
    r"(?:(?:Some|Just|SecretStr|SecretString|String::from|aws\.String|\[\]byte)\()?(?:[bBrRuULNEfF@]|\$(?='))?"
    r"(?P<slashes>\\{0,15})(?P<quote>[\"'`])"
)
_LONG_STRING = lazy_pattern(r"[bBrRuU]?(?:\"\"(?=\"\w)|''(?='\w)|`(?=`\w))(?P<slashes>)(?P<quote>[\"'`])")
_EMPTY = lazy_pattern(r"[\[{]\s*(?:\\+[nrt]\s*)*[\]}]|\[REDACTED\]")
_MATRIX = lazy_pattern(r"/[\w.-]+;\Z")


def decide_assignment(name: str, lead: str, ahead: str, ends: bool) -> Decision | None:
    """Whether the name (found after `lead`) is tied to a secret by a sign such as `=` or `:`."""
    sign = _SIGN.match(ahead)
    if sign is None or lead.endswith("//"):  # a user's name in a URL
        return None
    if name == "PASS" and lead.endswith("--- "):  # a test of Go
        return None
    if lead.endswith(":") and "arn:" in lead[-90:] and sign["sign"] == ":" and not sign["gap"]:
        return None
    strength = name_strength(name)
    if strength is Strength.NONE:
        return None
    close = sign["close"].rstrip("]").removesuffix("%5D").removesuffix("%5d")
    place = Place(name, lead, strength, sign["sign"], close, not sign["space"] and not sign["gap"])
    rest = ahead[sign.end() :]
    items = _decide_items(place, sign["gap"], rest, ends) if "\n" in sign["gap"] else None
    return move(items or _decide_value(place, rest, ends), sign.end())


def _decide_items(place: Place, gap: str, ahead: str, ends: bool) -> Decision | None:
    """`passwords:`, and below it a list of YAML: from its first item on, as far as it goes."""
    indent = gap.rpartition("\n")[2]
    if not indent.endswith("- ") or place.strength < Strength.TEXT:
        return None
    tail = _ItemsTail(indent=indent)
    end, is_cut = tail.consume(ahead, 0, final=ends)
    last = ahead.rfind("\n" + indent, 0, end) + 1
    if (quote := _CLOSED.match(ahead, last, end)) and not is_cut:  # the string in which the list stands
        end = quote.end()
    items = ahead[:end].replace("\r", "").split("\n" + indent)
    known = list(map(_YAML_ITEM.fullmatch, items[:-1] if is_cut else items))
    texts = [found[1].strip("\"'") for found in known if found]
    if len(items) < 2 or len(texts) < len(known):
        return None
    if not any(looks_chosen(text) and not (is_stand_in(text) or is_code(text)) for text in texts):
        return None
    return 0, end, tail if is_cut else None, REDACTED


class _ItemsTail(Tail):
    """The rest of a list of YAML whose items stand behind such an indent."""

    indent: str
    level: int = 0

    def inside(self, level: int) -> _ItemsTail:
        return _ItemsTail(indent=self.indent, level=level)

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        line = r"\\+n" if self.level else r"\r?\n"
        within = r"[^\n\"\\]|\\+[^n]" if self.level else r"[^\r\n]"
        found = re.compile(rf"(?:{within}|{line}{re.escape(self.indent)}(?=\S))*+").match(text, position)
        end = found.end() if found else position
        return end, not final and len(text) - end < len(self.indent) + self.level + 4


_CLOSED = lazy_pattern(r"[ \t]*(?:- )?[^\s\"'{}\[\]]+(?=[\"'])")
_YAML_ITEM = lazy_pattern(r"([\"'].+|\$\{[^{}\s]*\}|[^\s\"'{}\[\]]*[^\s\"'{}\[\]:])[ \t]*(?:#[^\n]*)?")


def _decide_value(place: Place, ahead: str, ends: bool) -> Decision | None:
    if place.close:
        return decide_field(place, ahead)
    lowered = place.name.lower()
    if lowered.endswith("authorization"):
        return decide_authorization(ahead)
    if lowered.endswith("cookie"):
        return decide_cookie(place.lead, ahead, ends) if place.strength is Strength.FULL else None
    if place.sign == ">":
        return _decide_element(place, ahead, ends)
    if ahead[0] == "[" and place.strength is Strength.MANY:
        return _decide_list(ahead)
    return _decide_variable(place, ahead, ends)


def decide_field(place: Place, ahead: str) -> Decision | None:
    """`"name": value` of JSON or a literal of a program."""
    if not place.lead.endswith(place.close) and not place.name.startswith("_auth"):
        return None
    if _EITHER.search(place.lead[-24:]):
        return None
    if found := _STRING.match(ahead):
        return _decide_text_field(place, ahead, found)
    value = _LINE_VALUE.match(ahead)
    if value and states_alone(place, value["secret"]):
        return take(value)
    if place.sign != ":" or place.close[-1] != '"':
        return None
    quoted = f"{place.close}{REDACTED}{place.close}"
    number = _NUMBER.match(ahead)
    if place.strength is Strength.FULL and number and number.end() > 2:
        return 0, number.end(), None, quoted
    if place.strength < Strength.MANY or not _JSON.match(ahead):
        return None
    if _EMPTY.match(ahead) or _SCHEMA.match(ahead) or _complains(ahead):
        return None
    return 0, 0, BracketTail(len(place.close) - 1), quoted


def _decide_text_field(place: Place, ahead: str, found: re.Match[str]) -> Decision | None:
    content, decision = _read_string(ahead, found)
    if _is_computed(ahead, content) or is_harmless(place, _SCHEME.sub("", content)):
        return None
    if place.is_compared and not looks_chosen(content):
        return None
    weak = place.strength is Strength.WEAK and not place.belongs_to_login(ahead)
    return None if weak and not looks_issued(content) else decision


def _read_string(ahead: str, opening: re.Match[str]) -> tuple[str, Decision]:
    """What stands in the quotes, as far as it is seen, and that all of it is secret."""
    start, quote, level = opening.end(), opening["quote"], len(opening["slashes"])
    end = find_close(ahead, start, quote, level)
    if end < 0:
        return ahead[start:], (start, len(ahead), StringTail(quote, level), REDACTED)
    tail = StringTail(quote, level) if level == 0 and may_go_on(ahead, end) else None
    return ahead[start:end], (start, end, tail, REDACTED)


def _complains(ahead: str) -> bool:
    """Whether a list holds what is wrong with the field: `["is too short"]`."""
    texts = _TEXTS.match(ahead)
    return texts is not None and all(map(is_complaint, _TEXT.findall(ahead[: texts.end() + 1])))


_TEXTS = lazy_pattern(r"\[\s*(?:\\*\"[^\"\\]*\\*\"[\s,]*)+")
_TEXT = lazy_pattern(r"\"([^\"\\]*)\\*\"[\s,\]]")


_EITHER = lazy_pattern(r"\?\s*\\*[\"']\Z")  # `hidden ? "password" : "text"`
_SCHEME = lazy_pattern(r"(?i)^(?:bearer|basic|token)\s*(?=\W|\Z)")
_LINE_VALUE = lazy_pattern(r"(?P<secret>[A-Za-z0-9][^\s\"'`\\<>&;,|(){}\[\]]+)[ \t]*(?:\n|\Z)")


def _decide_element(place: Place, ahead: str, ends: bool) -> Decision | None:
    """`<password>value</password>`"""
    found = _ELEMENT.match(ahead) if _TAG.search(place.lead) else None
    if found is None or is_stand_in(content := found["secret"].strip()) or is_path(content):
        return None
    if is_prose(content) or (place.name.lower() == "auth" and not looks_issued(content)):
        return None
    if not ahead.startswith("</", found.end()) and (ends or found.end() < len(ahead)):
        return None
    return take(found, _ELEMENT_TAIL)


_TAG = lazy_pattern(r"<[\w.:-]*\Z")
_ELEMENT = lazy_pattern(r"(?P<secret>[^<\n]+)")
_ELEMENT_TAIL = RunTail(r"[^<\n]")


def _decide_default(place: Place, ahead: str) -> Decision | None:
    """`${DB_PASSWORD:-value}` of a shell, `${db.password:value}` of Spring."""
    found = _DEFAULT.match(ahead)
    if found is None or is_stand_in(found["secret"]):
        return None
    stated = looks_issued if place.strength is Strength.WEAK else looks_chosen
    return take(found) if stated(found["secret"]) else None


_DEFAULT = lazy_pattern(r"[-=]?(?P<secret>[^\s\"'`\\<>{}?$][^\s\"'`\\<>{}$]*)\}")


def _decide_variable(place: Place, ahead: str, ends: bool) -> Decision | None:
    if place.lead.endswith("${"):
        return _decide_default(place, ahead)
    if found := (
        _LONG_STRING.match(ahead) if place.sign == "=" or ahead[0] == "`" else None
    ) or _STRING.match(ahead):
        return _decide_literal(place, ahead, found)
    if place.lead.endswith(";") and (found := _BRACED.match(ahead)) and looks_chosen(found["secret"]):
        return take(found)
    found = (_PARAMETER if place.is_parameter else _VALUE).match(ahead)
    if found is None:
        return None
    whole, value = found.group(), _strip_stop(place, found)
    if (
        not value
        or value[0] in "!&"
        or is_label("", value)
        or is_stand_in(value)
        or (value != whole and is_placeholder(whole))
    ):
        return None
    if place.is_parameter:
        return _decide_parameter(place, value, len(whole))
    rest = ahead[len(value) :]
    if not states_word(place, value, rest):
        words = _WORDS.match(ahead)
        return take(words) if words and states_words(place, words["secret"]) else None
    if place.lead.endswith(";") and (more := _SPACED_VALUE.match(rest)):
        return 0, len(value) + more.end(), None, REDACTED
    if whole == ahead and not (ends and value != whole):
        return 0, len(ahead), _VALUE_TAIL, REDACTED
    return 0, len(value), None, REDACTED


_WORDS = lazy_pattern(
    r"(?P<secret>[^\s\"'`\\<>;,#=:(){}]+(?: [^\s\"'`\\<>;,#=:(){}]+){1,6})[ \t]*(?:\r?\n|\Z|[ \t][;#])"
)


def _decide_list(ahead: str) -> Decision | None:
    """`passwords = ["value", "value"]`"""
    found = _LIST.match(ahead)
    stated = found and any(
        looks_chosen(text) and not is_stand_in(text) for text in _ITEM.findall(ahead[: found.end()])
    )
    return take(found) if found and stated else None


_LIST = lazy_pattern(
    r"\[\s{0,20}(?P<secret>([\"'])[^\"'\\\n]{1,80}\2(?:\s{0,20},\s{0,20}\2[^\"'\\\n]{1,80}\2){0,20}),?\s{0,20}\]"
)
_ITEM = lazy_pattern(r"[\"']([^\"']{1,80})[\"']")


def _decide_parameter(place: Place, value: str, length: int) -> Decision | None:
    """`?name=value` of a URL"""
    if (place.strength is Strength.WEAK and len(value) < 6) or value[0] in "{<$":
        return None
    if value.isupper() and not has_digit(value) and repeats_name(place.name, value):
        return None
    if _MATRIX.search(place.lead) and "/" in value:
        return 0, value.index("/"), None, REDACTED
    return 0, length, _PARAMETER_TAIL, REDACTED


def _strip_stop(place: Place, found: re.Match[str]) -> str:
    """The value without the sentence's punctuation; a `!` at the end of a line of a file is part of it."""
    value = found.group()
    kept = (place.tight or has_digit(value)) and place.sign == "=" and value[-1] == "!"
    kept = kept and ends_line(found.string, found.end())
    return value if kept else value.rstrip(".,:!?)")


_SPACED_VALUE = lazy_pattern(r"(?: [^\s;=\"'\\]+){1,6}(?=;[A-Za-z])")
"""The other words of a value in a connection string."""


def _decide_literal(place: Place, ahead: str, found: re.Match[str]) -> Decision | None:
    """`name = "value"`"""
    content, decision = _read_string(ahead, found)
    if (found["quote"] == "`" and place.name.isupper()) or _is_computed(ahead, content):
        return None
    if _closes_before(place, found["quote"], len(found["slashes"]), content):
        return None
    return decision if states_text(place, content, ahead) else None


def _is_computed(ahead: str, content: str) -> bool:
    """`f"{value}"`, and between backticks `user-${value}`, unless a password stands beside the value"""
    if ahead[0] == "`" and "${" in content:
        return not looks_chosen(_INSERTED.sub("", content))
    return ahead[0] in "fF" and "{" in content


_INSERTED = lazy_pattern(r"\$\{[^{}]*\}")


def _closes_before(place: Place, quote: str, slashes: int, content: str) -> bool:
    """Whether the quote after the sign ends a string in which the name stands (`'--key=' + value`)."""
    lead = place.lead.rstrip("-:")
    inner = len(lead) - len(lead[:-1].rstrip("\\")) - 1  # backslashes before that quote
    return (lead[-1:] == quote and slashes <= inner) or _GOES_ON.match(content) is not None


_GOES_ON = lazy_pattern(r"\s*[+%] |[)\],;}](?:[\s;,).:]|\Z)|\s*\+\s*\w|\.(?:format|join)\(")
