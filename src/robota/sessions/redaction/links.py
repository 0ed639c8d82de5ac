"""Secrets that stand beside their name: the rules that begin with a name, and every tie but a plain sign.

`define('DB_PASSWORD', '…')`, `| API_KEY | … |`, `<key>API_KEY</key><string>…`, `API_KEY: &str = "…"`,
`{"name": "x-api-key", "value": "…"}`, `using API key …`. A value after such a tie must look like one.
"""

from __future__ import annotations

import re

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.assignments import decide_assignment, decide_field
from robota.sessions.redaction.commands import chosen_argument, issued_argument
from robota.sessions.redaction.names import NEEDS, STEMS, TRAILERS, Strength, clean_name, name_strength
from robota.sessions.redaction.places import Place
from robota.sessions.redaction.rules import REDACTED, Decision, Rule, RunTail, move, take
from robota.sessions.redaction.values import (
    PHRASE,
    has_digit,
    is_code,
    is_dashed,
    is_name,
    is_path,
    is_placeholder,
    is_prose,
    is_snake,
    is_stand_in,
    looks_chosen,
    looks_issued,
    repeats_name,
)

_QUOTE = r"(?:\\{0,15}[\"'`]|&quot;|\\{1,8}u0022|%22)"
_TYPES = r"(?:string|str|text|n?varchar2?(?:\(\w{1,4}\))?|char(?:\(\d{1,4}\))?|\[\]byte|bytes)"
_LINKS = (
    # ("name", "value")   ['name', b'value']   define('NAME', 'value')   getenv("NAME", "default")
    rf"{_QUOTE}[ \t]{{0,4}},\s{{0,40}}b?{_QUOTE}(?:\\?\")?",
    # page.fill('input[name="password"]', "value")
    rf"{_QUOTE}\]{_QUOTE},\s{{0,8}}{_QUOTE}",
    # page.locator("#password").fill("value")      user.type(getByLabelText("Password"), "value")
    rf"\]?{_QUOTE}\)(?:\.(?:fill|type|send_?keys|setvalue)\(|,\s{{0,8}}){_QUOTE}",
    # {"name": "NAME", "value": "value"}   <add key="NAME" value="value"/>   <input name="NAME" value="value">
    rf"{_QUOTE}(?:[ \t,]|\s)[^{{}}<>\n]{{0,80}}?\b(?:value|content|default|defaultvalue)"
    rf"{_QUOTE}?\s{{0,8}}[=:]\s{{0,8}}{_QUOTE}",
    # &quot;name&quot;:&quot;value&quot;   \u0022name\u0022:\u0022value\u0022
    r"(?:&quot;|\\{1,8}u0022|%22)\s{0,4}(?::|%3a)\s{0,4}(?:&quot;|\\{1,8}u0022|%22)",
    # - name: NAME\n  value: value      NAME:\n  value: value      variable "NAME" {\n default = "value"
    r"[\"']?\s{0,4}(?::|\{)?\s{0,40}"
    r"(?:\n[+>-]?[ \t]{0,40}(?:type|description|sensitive|nullable)[ \t]{0,12}[:=][^\n]{0,60}){0,3}"
    r"\r?\n[+>-]?[ \t]{0,40}(?:value|default)[ \t]{0,12}[:=][ \t]{1,4}[\"']?",
    # variable "NAME" { type = string, default = "value"
    r"[\"'][ \t]{0,4}\{[ \t]{0,4}(?:(?:type|description|sensitive|nullable)[ \t]{0,4}=[ \t]{0,4}"
    r"(?:\\?\"[^\"\\\n]{0,60}\\?\"|[a-z]{1,20})[ \t,;]{1,4}){0,3}default[ \t]{0,4}=[ \t]{0,4}\\?\"",
    # <key>NAME</key><string>value      <string name="NAME">value      <x:Password Type="…">value
    r"</(?:key|name)>\s{0,40}[+>]?\s{0,20}<(?:string|value)>(?:<string>)?"
    r"|[\"'](?:[ \t]{1,3}[a-z:]{2,20}=[\"'][^\"'<>\n]{0,60}[\"'])?>\s{0,20}<value>|[\"']>"
    r"|[ \t]{1,3}[a-z:]{2,20}=[\"'][^\"'<>\n]{0,60}[\"']>",
    # | NAME | value |      <td>NAME</td><td>value
    r"</t[dh]>\s{0,20}<td[^<>\n]{0,40}>|`?[ \t]{1,20}[|│][ \t]{1,20}[`']?",
    # NAME: type = "value"      NAME type = "value"      Name { get; set; } = "value"
    r"[ \t]{0,4}:[ \t]{0,4}[&'\w\[\]<>.?| ]{1,30}?[ \t]{0,4}:?=[ \t]{0,4}"
    r"(?:(?:String::from|SecretStr|SecretString|Some|field)\((?:default=)?)?[bf]?(?=[\"'])"
    rf"|[ \t]{{1,4}}{_TYPES}[ \t]{{1,4}}:?=[ \t]{{0,4}}(?=[\"'`])"
    r"|[ \t]\{ get;[^}\n]{0,24}\}[ \t]{0,4}=[ \t]{0,4}(?=[\"'])",
    # setPassword("value")      password{"value"}
    r"[({](?:(?:SecretString::(?:from|new)|SecretStr|String::from|Some)\()?(?=[\"'])"
    r"|[\"']\r?\n[ \t]{0,20}\r?\n[ \t]{0,20}",
    # :name "value"      %3Fname%3Dvalue
    r"[ \t]{1,8}(?=[\"'`])|[\"'] (?:to|->) (?=[\"'])|%3d",
    # \x1b[32mNAME\x1b[0m=value, NAME=\x1b[31mvalue
    r"\x1b\[[0-9;]{0,8}m[=:][ \t]?(?:\x1b\[[0-9;]{0,8}m)?|[=:][ \t]?\x1b\[[0-9;]{0,8}m",
    # process.env.SECRET || "value"      Dim password As String = "value"
    r"\)?[\"']?\]?\)?[ \t]{1,4}(?:\|\||\?\?|\?:|or|(?<=\) )\{)[ \t]{1,4}(?=[\"'`])"
    r"|[ \t]as[ \t]\w{1,20}[ \t]=[ \t](?=\")",
    # $password = q{value}
    r"[ \t]{0,4}=>?[ \t]{0,4}qq?[{(\[|!/]",
    # **Password:** value
    r"(?::\*\*|\*\*:)[ \t]{1,3}`?",
    # password: >-\n  value      password: &anchor value
    r"[ \t]{0,2}:[ \t]{1,4}(?:[|>][+-]?\r?\n[+>-]?[ \t]{1,20}|&\w{1,20}[ \t]|!!?\w{1,20}[ \t])",
    # password = <<EOF\nvalue
    r"[ \t]{0,4}=[ \t]{0,4}<<[<~-]?[\"']?[a-z]{2,12}[\"']?\r?\n[ \t]{0,20}",
    # Password:\n  value      password = (\n  "value"
    r"(?:[ \t]is)?:[ \t]{0,2}(?:\r?\n[ \t]{0,20}){1,2}(?=[^\s\"'{\[-])"
    r"|[ \t]{0,4}=[ \t]{0,4}\((?:\s{1,40}(?=[\"'])|(?=[\"'][^\"'\n]{1,80}[\"']\)))",
    r"[\"']?\]?=>\s{0,20}string\(\d{1,6}\) (?=\")|><!\[cdata\[|>\n[ \t]{0,20}",
)
_LINK = lazy_pattern(rf"(?is)(?:{'|'.join(_LINKS)})(?=\S)")
_AND = r"&(?![\w#]{1,12}[=;])"  # no entity, and no next parameter
_VALUE = lazy_pattern(rf"\\{{0,15}}[\"'`]?(?P<secret>(?:[^\s\"'`\\<>|&\x00\x1b]|{_AND})+)")
_QUOTED = lazy_pattern(rf"(?P<secret>(?:[^\"'`\\<>|&\x00\x1b\n]|{_AND})+)")
_PHRASED = lazy_pattern(rf"\\{{0,15}}[\"'](?P<secret>{PHRASE})(?=\\{{0,15}}[\"'])")
_DEFINED = lazy_pattern(r"(?P<secret>[^\"'\\\n]+)(?=[\"'])")
_TAIL = RunTail(rf"[^\s\"'`\\<>|&\x00\x1b]|{_AND}", look=15)
_LISTED = lazy_pattern(rf"(?:\[|[\])],)\s*[\[(]\s*b?{_QUOTE}\Z")
"""Before the first of two strings: a list of pairs, as headers are kept."""
_PASSWORD = lazy_pattern(r"(?i)password\Z")
_REFUSED = lazy_pattern(r"(?i)\b(?:invalid|expired|unknown|revoked|using|with) \Z")
_FORM = lazy_pattern(r"(?i)form-data; name=\\*[\"']\Z")
_ATTRIBUTE = lazy_pattern(r"<(?:[\w:.-]*|[^<>\n]*\b(?:name|key|id|n)=\\*[\"'](?:[\w.-]+[:/])*)\Z")
_LONG = 24
_DIGIT_PART = lazy_pattern(r"-\d")
_BLOCK = lazy_pattern(r"[|>][+-]?\r?\n")
_SCREEN = lazy_pattern(rf"\]?{_QUOTE}\),")
_SELECTED = lazy_pattern(rf"{_QUOTE}\]{_QUOTE},")
_FILLED = lazy_pattern(rf"(?:fill|type|val|value)\({_QUOTE}[^\n]{{0,60}}={_QUOTE}\Z")
_FOUND = lazy_pattern(rf"(?:By\.?\w{{2,20}}|locator)\({_QUOTE}#?\Z")
_PAIR = lazy_pattern(rf"{_QUOTE}[ \t]*,")
_PAIR_BEFORE = lazy_pattern(rf"(?:[(\[]\s*b?|\bString\", ?){_QUOTE}#?\Z")
_PAIR_AFTER = lazy_pattern(
    r"\\*[\"'`]{1,2}(?:, ?(?:\d|[\"'](?:User|Machine|Process)[\"']|\[?[\w.]*Target\]?\W[\w:]+))?"
    r"\s*(?:[)\]]|\Z)"
)
_CELL_BEFORE = lazy_pattern(r"(?:[|│]|(?:\n|\A)[ \t]*\w+ +\| [^\n|]*\n)[ \t]*`?\Z")
_CELL_AFTER = lazy_pattern(r"[`']?[ \t]*(?:[|│]|\r?\n|\Z)")
_ALONE = lazy_pattern(r"[ \t]*(?:\r?\n|\\n|\Z)")
_SETTER = lazy_pattern(r"^(?:[\w.]*\.)?(?:set|with|use|add)(?:_|(?=[A-Z]))|^[\w.]*\.")


def _decide_link(name: str, lead: str, ahead: str) -> Decision | None:
    """Whether the name (found after `lead`) is tied to a secret by one of the links."""
    head = _LINK.match(ahead)
    if head is None:
        return None
    link = head.group()
    pattern = _value_pattern(link, lead, ahead[head.end() :])
    found = pattern.match(ahead, head.end())
    if found is None or REDACTED in link or REDACTED in found["secret"]:
        return None
    secret = found["secret"].rstrip(";,)]}") if pattern is _VALUE else found["secret"]
    if link.lower() == "%3d":
        secret = secret.partition("%")[0]
    if not _links(link, name, lead, ahead[found.start("secret") + len(secret) :]):
        return None
    strength = name_strength(_SETTER.sub("", name) if link == "(" else name)
    bare = secret.lstrip("*.")
    if "," in link and (is_name(bare) or (bare.isalpha() and name_strength(bare) is not Strength.NONE)):
        return None
    if strength is Strength.NONE or is_placeholder(secret) or repeats_name(name, secret):
        return None
    if not (pattern is _DEFINED and len(secret) > _LONG) and _is_other(link, secret):
        return None
    gap = link.rpartition(":")[2]
    if "\n" in gap and gap.isspace() and secret.endswith(":"):  # the next key of a file
        return None
    listed = pattern is _DEFINED or (
        "," in link and strength is Strength.FULL and _LISTED.search(lead[-60:]) is not None
    )
    stated = looks_issued(secret) if strength is Strength.WEAK else listed or _is_stated(name, link, secret)
    if not stated:
        return None
    whole = found.end() == len(ahead) and secret == found["secret"]
    end = found.end() if whole else found.start("secret") + len(secret)
    return found.start("secret"), end, _TAIL if whole else None, REDACTED


def _is_other(link: str, secret: str) -> bool:
    """Whether the value is a piece of a program, a path or, beside a name, a sentence."""
    sentence = "," in link and secret.count(" ") > 1 and is_prose(secret)
    return sentence or is_code(secret) or is_path(secret)


def _value_pattern(link: str, lead: str, rest: str) -> re.Pattern[str]:
    if not link.strip() and _PHRASED.match(rest):
        return _PHRASED
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
    if "\n" in link and is_dashed(secret):
        return True
    return looks_chosen(secret) or (name.isupper() and ("value" in link or not secret.isalpha()))


def _links(link: str, name: str, lead: str, rest: str) -> bool:
    """Whether this link, between these neighbours, ties a name to its value."""
    if link.strip(" \t") == "":
        return rest[:1] != " " and (
            _REFUSED.search(lead[-12:]) is not None
            or lead.endswith((" :", "{:"))
            or lead.rstrip(" \t")[-1:] in ("", "\n", "{", ";", ",", "(", ":")
            or _PASSWORD.search(name) is not None
        )
    if _PAIR.match(link):
        return _PAIR_BEFORE.search(lead) is not None and _PAIR_AFTER.match(rest) is not None
    if "||" in link:
        return True
    if _SELECTED.match(link):
        return _FILLED.search(lead) is not None
    if _SCREEN.match(link):
        return _FOUND.search(lead[-40:]) is not None
    if link[:1] in ("'", '"') and link[1:].isspace():  # the body of a form's field
        return _FORM.search(lead) is not None
    if link.rstrip(" \t\r\n")[-1:] == ":" and "\n" in link:
        return _ALONE.match(rest) is not None and name_strength(name) >= Strength.TEXT
    if ("|" in link or "│" in link) and "\n" not in link and "->" not in link and "=" not in link:
        return _CELL_BEFORE.search(lead) is not None and _CELL_AFTER.match(rest) is not None
    if link.endswith(">") and "</" not in link:
        return _ATTRIBUTE.search(lead) is not None
    return True


def _decide_object(name: str, lead: str, ahead: str) -> Decision | None:
    """`{"name": "NAME", …, "value": value}` and `"NAME": {"value": value}`"""
    link = _OBJECT.match(ahead)
    strength = name_strength(name)
    if link is None or strength is Strength.NONE:
        return None
    if not lead.endswith(link["close"]):  # the name may end a path
        if not _PATCHED.search(lead) and not ("SecureString" in link.group() and _PATH_LEAD.search(lead)):
            return None
        lead = link["close"]
    if _LABELLED.search(lead) and strength < Strength.TEXT:
        return None
    rest = ahead[link.end() :]
    decision = decide_field(Place(name, lead, strength, ":", link["close"], False), rest)
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
_PATCHED = lazy_pattern(r"[\"']path\\*[\"']\s*:\s*\\*[\"'](?:/[\w.-]+)*/\Z")
_LABELLED = lazy_pattern(r"\b(?:id|label)\\*[\"']\s*:\s*\\*[\"']\Z")


def _value_first(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`value="…" name="password"`: the name comes after its value; `(id, password) VALUES (1, '…')`."""
    if before.endswith("("):
        return _decide_column(before, ahead)
    found = _REVERSED.match(ahead)
    if found is None or name_strength(found["name"]) < Strength.TEXT:
        return None
    secret = found["secret"]
    return None if is_stand_in(secret) or repeats_name(found["name"], secret) else take(found)


_REVERSED = lazy_pattern(
    rf"(?P<secret>[^\"'\\\n]{{1,80}}){_QUOTE}[ \t,]\s{{0,8}}{_QUOTE}?(?:name|key){_QUOTE}?"
    rf"\s{{0,4}}[=:]\s{{0,4}}{_QUOTE}(?P<name>[\w.-]{{1,40}}){_QUOTE}"
)


def _decide_column(before: str, ahead: str, _ends: bool = True) -> Decision | None:
    """`INSERT INTO users (id, password) VALUES (1, '…'), (2, '…')`"""
    columns = _COLUMNS.search(before)
    values = _CELLS.match(ahead)
    if columns is None or values is None:
        return None
    for column, value in zip(columns[1].split(","), _CELL.finditer(values.group()), strict=False):
        quoted = _TEXT_CELL.fullmatch(value.group())
        if quoted is None or name_strength(column.strip(' \t\n`"[]')) < Strength.TEXT:
            continue
        if not is_stand_in(quoted["secret"]):
            return move(take(quoted), value.start())
    return None


_CELL_SOURCE = r"(?:'[^'\n]*'|[^',\n)])+"
_COLUMNS = lazy_pattern(r"(?i)\(([^()]{1,160})\)\s*values\s*\((?:[^()]*\),\s*\()*\Z")
_CELL = lazy_pattern(_CELL_SOURCE)
_CELLS = lazy_pattern(rf"{_CELL_SOURCE}(?:,{_CELL_SOURCE})*")
_TEXT_CELL = lazy_pattern(r"\s*[NE]?'(?P<secret>[^'\n]+)'\s*")


def _change(before: str, ahead: str, _ends: bool) -> Decision | None:
    """`API_KEY: old -> new`"""
    found = _VALUE.match(ahead)
    name = _CHANGED.search(before[max(before.rfind("\n"), len(before) - 160) + 1 :])
    if found is None or name is None or name_strength(name["name"]) < Strength.TEXT:
        return None
    secret = found["secret"].rstrip(";,)]}:")
    if is_stand_in(secret) or is_code(secret) or not (looks_chosen(secret) or ahead[0] in "\"'"):
        return None
    return found.start("secret"), found.start("secret") + len(secret), None, REDACTED


_CHANGED = lazy_pattern(
    r"(?P<name>[\w.-]+)[ \t]{0,4}[:=][ \t]{0,4}[\"']?[^\s\"'()]{1,80}[\"']?[ \t]{1,4}->[ \t]{1,4}\Z"
)


def _decide_spoken(name: str, lead: str, ahead: str) -> Decision | None:
    """A secret after its name with nothing but words between them: `using API key …`."""
    found = _SPOKEN.match(ahead)
    if found is None:
        return _decide_exchanged(name, lead, ahead)
    named = " " in name or name.lower().endswith("authtoken") or lead.endswith("snyk ")
    named = named or ("_" in name and name_strength(name) >= Strength.TEXT and not _COMMIT.match(ahead))
    if found["column"] and not (
        name.isupper() and name_strength(name) >= Strength.TEXT and _BEGUN.search(lead)
    ):
        return None
    if (found["bare"] and not named) or (found["owner"] and name_strength(name) < Strength.FULL):
        return None
    judge = issued_argument if found["bare"] else chosen_argument
    return move(judge(lead, ahead[found.end() :], False), found.end())


def _decide_exchanged(name: str, lead: str, ahead: str) -> Decision | None:
    """`changed the password from old to new`"""
    found = _EXCHANGED.match(ahead)
    if found is None or not _PASSWORD.search(name):
        return None
    if not found["passive"] and not _EXCHANGES.search(lead[-60:]):
        return None
    texts = [text for text in (found["old"], found["new"]) if text]
    chosen = any(looks_chosen(text) and has_digit(text) and not is_stand_in(text) for text in texts)
    return take(found) if chosen and not any(is_code(text) or is_path(text) for text in texts) else None


_EXCHANGES = lazy_pattern(r"(?i)\b(?:chang|rotat|updat|reset|switch)\w* (?:[\w'@.]+ ){0,4}\Z")
_WORD = r"[^\s\"'`\\,;()<>-]{1,60}"
_EXCHANGED = lazy_pattern(
    r"[ \t](?:(?P<passive>(?:(?:was|is|has been) )?(?:changed|reset) )?from (?=\S+ to )|to )"
    rf"(?P<secret>(?:(?<=from )(?P<old>{_WORD}) to )?(?P<new>{_WORD}?))"
    r"(?=[.:!?]?(?:[\s,;)\"'`\\]|\Z))"
)
_COMMIT = lazy_pattern(r"[ \t][0-9a-f]{40}(?![A-Za-z0-9+/=])")
_BEGUN = lazy_pattern(r"(?:\A|\n|\\n|\")[ \t]*\Z")
_SPOKEN = lazy_pattern(
    r"(?P<bare>[ \t](?=[A-Za-z0-9+/=_-]{20}))|[ \t]\d{1,2}: (?=\S{20})"
    r"|(?:: [\w.@-]{1,40} /| are [\w.@-]{1,40}[:/]) ?(?=\S)"
    r"|[ \t](?:is generated )?for (?:user |account )?[\w.@-]{1,60}(?:: | is )(?=\S)"
    r"|(?P<column>[ \t]{2,30})(?=\S{5,80}[ \t]*(?:\r?\n|\\n|\Z))"
    r"|[ \t]for (?P<owner>(?:[\w.@-]{1,30} ){1,4}[\w.@-]{1,30} is )(?=\S)"
    r"|:?[ \t]?\\*[\"'][;\s]{1,4}(?:exp_)?send (?:-- )?\\*[\"'](?=[^\"'\n\\$]{4,80}\\{1,3}[rn])"
    r"|[ \t]for key \\*[\"'][^\"'\n]{1,80}[\"']: (?=\S)"
    r"|[ \t](?:(?:was|is|has been) )?(?:changed|set|reset) to (?=\S)"
    r"|[ \t]to proceed[^\n:]{0,30}:\s{1,40}(?=\S{16})"
)

# --- the rules: one for each stem, so that every search begins with a literal ---


def _decide_named(before: str, ahead: str, ends: bool) -> Decision | None:
    backwards = _NAME.match(before[:-82:-1])
    if backwards is None:
        return None
    lead = before[: len(before) - backwards.end()]
    name = clean_name(before[len(lead) :], lead)
    if lead.endswith(" ") and (words := _SPACED.search(lead[-40:])):  # `API key: …`
        name = f"{words.group()}{name}"
        lead = lead[: -len(words.group())]
    return (
        decide_assignment(name, lead, ahead, ends)
        or _decide_object(name, lead, ahead)
        or _decide_link(name, lead, ahead)
        or _decide_spoken(name, lead, ahead)
    )


_NAME = lazy_pattern(r"[A-Za-z0-9_.$@-]{1,80}")
_SPACED = lazy_pattern(
    r"(?i)\b(?:(?:api|access|secret|private|auth|client|bearer|refresh|signing|encryption|master|unseal"
    r"|session|public key) ){1,2}\Z"
)


def _escaped(before: str, ahead: str, ends: bool) -> Decision | None:
    """A name of JSON with letters written as `\\u0077`."""
    found = _ESCAPED.search(before[-120:])
    if found is None:
        return None
    name = _LETTER.sub(lambda letter: chr(int(letter[1], 16)), found.group())
    return decide_assignment(name, before[: len(before) - len(found.group())], ahead, ends)


_LETTER = lazy_pattern(r"\\u00([2-7][0-9a-fA-F])")
_ESCAPED = lazy_pattern(r"(?:[\w.-]|\\u00[2-7][0-9a-fA-F])+\Z")
# What may come between a name and its value, seen from the name's end; most words of a sentence fail here.
_NEXT = (
    r"(?=[\\\"'`\]=:>(*&<|│\x1b{\[%% \t\r\n])(?=[\"'`\]=:>(*&<|│\x1b]"
    r"|[ \t]{1,20}+(?:[\"'`=:|│{>\[]|(?:for|changed|set|reset|has|are) "
    r"|\\{1,7}[\"']|\?[=?:]|<-|[.!]=|(?:is|was)[ :]|or \\{0,7}[\"']|as \w"
    rf"|{_TYPES}[ \t]{{1,4}}:?=%s"
    r"|[a-z:]{2,20}+=\\{0,7}[\"'])"
    r"|\\{1,15}[\"'`]|\{\\{0,7}[\"']|\[\d{0,4}\][ \t]{0,4}=|%%(?:3d|5d|22)|\\{1,8}u00"
    r"|[ \t]{0,4}(?:\r?\n|\\{1,7}n)(?:[+>\s0-9→|:-]|\\{1,7}t){0,48}+"
    r"(?:value|default|type|description|sensitive|nullable))"
)
_COLUMN = r"|(?<=[ \t]{2})\S{5,80}[ \t]{0,8}(?:\r?\n|\\n|\Z)"
_ISSUED = "|[a-z0-9+/=_-]{20}"
_ALSO_NEXT = {
    "token": _ISSUED + _COLUMN,
    "auth": _ISSUED,
    "key": rf"{_ISSUED}|\d{{1,2}}: {_COLUMN}",
    "pass": "|(?:to|from) " + _COLUMN,
    "secret": _COLUMN,
}
"""What else may follow these in a sentence."""
_TOKEN_OWNERS = ("access", "refresh", "api", "auth", "bearer")
_ENDINGS = {
    "pass": "(?:wor[dt]s?|wd|[_-]?phrases?|code|e(?<=mot de passe))?+",
    "secret": "(?:s(?<=client.secrets)|s(?<=clientsecrets))?+",
    "token": rf"(?:s(?:{'|'.join(f'(?<={owner}tokens)|(?<={owner}.tokens)' for owner in _TOKEN_OWNERS)}))?+",
    # `key` alone names nothing secret
    "key": "(?:(?<=[a-z0-9_.-]key)|(?<=(?:api|uth) key)|(?<=(?:cess|ster|cret|vate|ning|tion|seal) key))s?+",
    "cred": "entials?+",
    "cookie": "s?+",
    "auth": "(?:orization|tok)?+",
}

NAMED: tuple[Rule, ...] = (
    *(
        Rule(
            stem,
            rf"{_ENDINGS.get(stem, '')}[0-9_]{{0,3}}+(?:(?=[_a-z-])[_-]?(?:{'|'.join(TRAILERS)})[0-9]?)?+"
            + _NEXT % _ALSO_NEXT.get(stem, ""),
            _decide_named,
            needs=(need,),
            folded=True,
        )
        for stem, need in STEMS.items()
    ),
    Rule("\\u00", r"[2-7][0-9a-fA-F](?:[\w.-]|\\u00[2-7][0-9a-fA-F]){0,60}(?=\")", _escaped, needs=("\\",)),
    Rule(
        "value",
        rf"(?:s\s{{0,8}}\(|{_QUOTE}?\s{{0,4}}[=:]\s{{0,4}}{_QUOTE}(?=[^\"'\s]))",
        _value_first,
        needs=NEEDS,
        folded=True,
    ),
    Rule("),", r"\s{0,20}\((?=[\sNE]{0,8}['\d])", _decide_column, needs=NEEDS),
    Rule("->", r"(?<=[\w\"'] ->)[ \t]{1,4}(?=\S)", _change, needs=NEEDS),
)
