"""Names and values tied by something other than `=` or `:`: calls, tables, tags, declarations, directives.

`define('DB_PASSWORD', '…')`, `| API_KEY | … |`, `<key>API_KEY</key><string>…`, `API_KEY: &str = "…"`,
`{"name": "x-api-key", "value": "…"}`, `ENV DB_PASSWORD …`. The value must look like one.
"""

from __future__ import annotations

import re

from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.places import decide_column
from robota.sessions.redaction.scan import REDACTED, Decision, Rule, RunTail
from robota.sessions.redaction.values import (
    is_code,
    is_dashed,
    is_name,
    is_placeholder,
    is_snake,
    looks_chosen,
    looks_issued,
    repeats_name,
)

_QUOTE = r"(?:\\{0,15}[\"'`]|&quot;|\\{1,8}u0022|%22)"
_LINKS = (
    # ("name", "value")   ['name', b'value']   define('NAME', 'value')   getenv("NAME", "default")
    rf"{_QUOTE}[ \t]{{0,4}},\s{{0,40}}b?{_QUOTE}(?:\\\")?",
    # {"name": "NAME", "value": "value"}   <add key="NAME" value="value"/>   <input name="NAME" value="value">
    rf"{_QUOTE}(?:[ \t,]|\s)[^{{}}<>\n]{{0,80}}?\b(?:value|content|default|defaultvalue)"
    rf"{_QUOTE}?\s{{0,8}}[=:]\s{{0,8}}{_QUOTE}",
    # &quot;name&quot;:&quot;value&quot;   \u0022name\u0022:\u0022value\u0022
    r"(?:&quot;|\\{1,8}u0022|%22)\s{0,4}(?::|%3a)\s{0,4}(?:&quot;|\\{1,8}u0022|%22)",
    # - name: NAME\n  value: value      NAME:\n  value: value      variable "NAME" {\n default = "value"
    r"[\"']?\s{0,4}(?::|\{)?\s{0,40}(?:\n[+>-]?[ \t]{0,40}type\s{0,4}[:=][^\n]{0,40})?"
    r"\r?\n[+>-]?[ \t]{0,40}(?:value|default)\s{0,4}[:=][ \t]{1,4}[\"']?",
    # <key>NAME</key><string>value      <string name="NAME">value      <x:Password Type="…">value
    r"</(?:key|name)>\s{0,40}[+>]?\s{0,20}<(?:string|value)>(?:<string>)?|[\"']>"
    r"|[ \t]{1,3}[a-z:]{2,20}=[\"'][^\"'<>\n]{0,60}[\"']>",
    # | NAME | value |
    r"`?[ \t]{1,20}[|│][ \t]{1,20}[`']?",
    # NAME: type = "value"      Name { get; set; } = "value"
    r"[ \t]{0,4}:[ \t]{0,4}[&\w\[\]<>.?| ]{1,30}?[ \t]{0,4}=[ \t]{0,4}(?=[\"'])"
    r"|[ \t]\{ get;[^}\n]{0,24}\}[ \t]{0,4}=[ \t]{0,4}(?=[\"'])",
    # setPassword("value")      password{"value"}
    r"[({](?=[\"'])|[\"']\r?\n[ \t]{0,20}\r?\n[ \t]{0,20}",
    # :name "value"      %3Fname%3Dvalue
    r"[ \t]{1,8}(?=[\"'])|[\"'] (?:to|->) (?=[\"'])|%3d",
    # \x1b[32mNAME\x1b[0m=value, NAME=\x1b[31mvalue
    r"\x1b\[[0-9;]{0,8}m[=:][ \t]?(?:\x1b\[[0-9;]{0,8}m)?|[=:][ \t]?\x1b\[[0-9;]{0,8}m",
    # process.env.SECRET || "value"      Dim password As String = "value"
    r"\)?[\"']?\]?\)?[ \t]{1,4}(?:\|\||\?\?|\?:|or)[ \t]{1,4}(?=[\"'`])"
    r"|[ \t]as[ \t]\w{1,20}[ \t]=[ \t](?=\")",
    # **Password:** value
    r"(?::\*\*|\*\*:)[ \t]{1,3}`?",
    # password: >-\n  value      password: &anchor value
    r"[ \t]{0,2}:[ \t]{1,4}(?:[|>][+-]?\r?\n[+>-]?[ \t]{1,20}|&\w{1,20}[ \t]|!!?\w{1,20}[ \t])",
    r"[\"']?\]?=>\s{0,20}string\(\d{1,6}\) (?=\")|><!\[cdata\[|>\n[ \t]{0,20}",
)
_LINK = re.compile(rf"(?is)(?:{'|'.join(_LINKS)})(?=\S)")
_VALUE = re.compile(r"(?P<open>\\{0,15}[\"'`]?)(?P<secret>[^\s\"'`\\<>|&\x00\x1b]+)")
_QUOTED = re.compile(r"(?P<open>)(?P<secret>[^\"'`\\<>|&\x00\x1b\n]+)")
_DEFINED = re.compile(r"(?P<open>)(?P<secret>[^\"'\\\n]+)(?=[\"'])")
_TAIL = RunTail(r"[^\s\"'`\\<>|&\x00\x1b]")
_LISTED = re.compile(rf"(?:\[|[\])],)\s*[\[(]\s*b?{_QUOTE}\Z")
"""Before the first of two strings: a list of pairs, as headers are kept."""
_PASSWORD = re.compile(r"(?i)password\Z")
_REFUSED = re.compile(r"(?i)\b(?:invalid|expired|unknown|revoked|using|with) \Z")
_FORM = re.compile(r"(?i)form-data; name=\\*[\"']\Z")
_ATTRIBUTE = re.compile(r"<(?:[\w:.-]*|[^<>\n]*\b(?:name|key|id|n)=\\*[\"'](?:[\w.-]+[:/])*)\Z")
_DIGIT_PART = re.compile(r"-\d{2,}")
_BLOCK = re.compile(r"[|>][+-]?\r?\n")
_SETTER = re.compile(r"^(?:[\w.]*\.)?(?:set|with|use|add)_?(?=[A-Z])|^[\w.]*\.")


def decide_link(name: str, lead: str, ahead: str) -> Decision | None:
    """Whether the name (found after `lead`) is tied to a secret by one of the links."""
    head = _LINK.match(ahead)
    found = _value_pattern(head.group(), lead).match(ahead, head.end()) if head else None
    if head is None or found is None or REDACTED in head.group() or REDACTED in found["secret"]:
        return None
    link, secret = head.group(), found["secret"].rstrip(";,)]}")
    if link.lower() == "%3d":
        secret = secret.partition("%")[0]
    if not _links(link, name, lead, ahead[found.start("secret") + len(secret) :]):
        return None
    strength = name_strength(_SETTER.sub("", name) if link == "(" else name)
    bare = secret.lstrip("*.")
    if "," in link and (is_name(bare) or (bare.isalpha() and name_strength(bare) is not Strength.NONE)):
        return None
    if strength is Strength.NONE or is_placeholder(secret) or is_code(secret) or repeats_name(name, secret):
        return None
    listed = "," in link and strength is Strength.FULL and _LISTED.search(lead[-60:]) is not None
    stated = looks_issued(secret) if strength is Strength.WEAK else listed or _is_stated(name, link, secret)
    if not stated:
        return None
    whole = found.end() == len(ahead) and secret == found["secret"]
    end = found.end() if whole else found.start("secret") + len(secret)
    return found.start("secret"), end, _TAIL if whole else None, REDACTED


def _value_pattern(link: str, lead: str) -> re.Pattern[str]:
    if link[-1:] not in ("'", '"'):
        return _VALUE
    return _DEFINED if "," in link and "define(" in lead[-12:] else _QUOTED


def _is_stated(name: str, link: str, secret: str) -> bool:
    if link[:1] in ("'", '"') and link[1:].isspace():
        return True
    if _BLOCK.search(link):
        return not secret.isalpha()
    if "," in link and is_snake(secret):
        return False
    if "," in link and name[-6:].lower() == "cookie":
        return "=" in secret
    if "," in link and is_dashed(secret) and not _DIGIT_PART.search(secret):
        return name.isupper()
    return looks_chosen(secret) or (name.isupper() and not secret.isalpha())


def _links(link: str, name: str, lead: str, rest: str) -> bool:
    """Whether this link, between these neighbours, ties a name to its value."""
    if link.strip(" \t") == "":
        return (
            _REFUSED.search(lead[-12:]) is not None
            or lead.endswith((" :", "{:"))
            or lead.rstrip(" \t")[-1:] in ("", "\n", "{", ";", ",", "(")
            or _PASSWORD.search(name) is not None
        )
    if re.match(rf"{_QUOTE}[ \t]*,", link):
        return (
            re.search(rf"(?:[(\[]\s*b?|\bString\", ?){_QUOTE}\Z", lead) is not None
            and re.match(r"\\*[\"'`]{1,2}(?:, ?\d)?\s*(?:[)\]]|\Z)", rest) is not None
        )
    if "||" in link:
        return True
    if link[:1] in ("'", '"') and link[1:].isspace():  # the body of a form's field
        return _FORM.search(lead) is not None
    if ("|" in link or "│" in link) and "\n" not in link and "->" not in link:
        return (
            re.search(r"[|│][ \t]*`?\Z", lead) is not None and re.match(r"[`']?[ \t]*[|│]", rest) is not None
        )
    if link.endswith(">") and "</" not in link:
        return _ATTRIBUTE.search(lead) is not None
    return True


def _value_first(before: str, ahead: str, ends: bool) -> Decision | None:
    """`value="…" name="password"`: the name comes after its value; `(id, password) VALUES (1, '…')`."""
    if before.endswith("("):
        return decide_column(before, ahead, ends)
    found = _REVERSED.match(ahead)
    if found is None or name_strength(found["name"]) < Strength.TEXT:
        return None
    secret = found["secret"]
    if is_placeholder(secret) or repeats_name(found["name"], secret) or REDACTED in secret:
        return None
    return found.start("secret"), found.end("secret"), None, REDACTED


_REVERSED = re.compile(
    rf"(?P<secret>[^\"'\\\n]{{1,80}}){_QUOTE}[ \t,]\s{{0,8}}{_QUOTE}?(?:name|key){_QUOTE}?"
    rf"\s{{0,4}}[=:]\s{{0,4}}{_QUOTE}(?P<name>[\w.-]{{1,40}}){_QUOTE}"
)


def _change(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`API_KEY: old -> new`"""
    found = _VALUE.match(ahead)
    name = _CHANGED.search(before[max(before.rfind("\n"), len(before) - 160) + 1 :])
    if found is None or name is None or name_strength(name["name"]) < Strength.TEXT:
        return None
    secret = found["secret"].rstrip(";,)]}:")
    if REDACTED in secret or is_placeholder(secret) or is_code(secret) or not looks_chosen(secret):
        return None
    return found.start("secret"), found.start("secret") + len(secret), None, REDACTED


_CHANGED = re.compile(
    r"(?P<name>[\w.-]+)[ \t]{0,4}[:=][ \t]{0,4}[\"']?[^\s\"'()]{1,80}[\"']?[ \t]{1,4}->[ \t]{1,4}\Z"
)
CHANGES = Rule((" -",), r"->(?<=[\w\"'] ->)[ \t]{1,4}(?=\S)", decide=_change)
VALUE_FIRST = Rule(
    ("value",),
    rf"value(?:s\s{{0,8}}\(|{_QUOTE}?\s{{0,4}}[=:]\s{{0,4}}{_QUOTE}(?=[^\"'\s]))",
    decide=_value_first,
    folded=True,
)
