"""Whether what stands behind a name is the secret itself, by how name and value are written.

The same name means different things in a program, a configuration file and a sentence. Programs compute
secrets (`password = getpass()`), files state them.
"""

from __future__ import annotations

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.values import (
    has_digit,
    is_camel,
    is_code,
    is_complaint,
    is_dashed,
    is_dotted,
    is_label,
    is_masked,
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


class Place(Struct, frozen=True):
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
    def is_compared(self) -> bool:
        return self.sign[:2] in ("==", "!=")

    @property
    def starts_line(self) -> bool:
        return _LINE_START.search(self.lead[-12:]) is not None

    @property
    def in_row(self) -> bool:
        """Whether another `name=value` stands right before."""
        return _PAIR_BEFORE.match(self.lead[:-80:-1]) is not None

    def belongs_to_login(self, ahead: str) -> bool:
        """Whether it is called `pass` or `pw`, and a user is named before or behind."""
        return (
            self.name.lower() in ("pass", "pw") and _LOGIN.search(self.lead[-120:] + ahead[:80]) is not None
        )


_PARAMETER_LEADS = ("?", "&", ";", "[", "%5B", "%5b", "%")
_LINE_START = lazy_pattern(r"(?:\n|\A|\\n|[\"'`])(?:export |set |ENV |ARG |- )?\Z")
_PAIR_BEFORE = lazy_pattern(r"[ \t;,&]{1,4}[^\s=;,&]{0,60}=[\w.-]")  # read backwards
_LOGIN = lazy_pattern(r"(?i)(?:\b|smtp_?)(?:user|username|login|email|id)\\*[\"']?\s*[:=]")

# --- whether a text in quotes is the secret itself -----------------------------------------------------


def is_harmless(place: Place, content: str) -> bool:
    """Whether the text of a field is a reference, a type, a label, a version, a path or mere punctuation."""
    if not _ALNUM.search(content) or is_reference(content) or is_masked(content) or is_type(content):
        return True
    if is_label(place.name, content) or _CHECKED.fullmatch(content) or _OPTION.fullmatch(content):
        return True
    name = place.name.lower()
    if (name.endswith("string") and content.startswith("{")) or (name == "id-token" and content == "write"):
        return True
    if content.lower() == name or is_name(content) or is_chain(content):
        return True
    if name.endswith("pwd") or place.strength is Strength.TEXT:
        return is_path(content)
    return name == "cookie" and _VERSION.match(content) is not None


def is_chain(content: str) -> bool:
    return is_dotted(content) and not _DIGITS.search(content)


_ALNUM = lazy_pattern(r"[^\W_]")
_DIGITS = lazy_pattern(r"\d\D+\d|\d{3}")
_OPTION = lazy_pattern(r"--?[a-z][a-z-]*")
_CHECKED = lazy_pattern(
    r"(?:required|nullable|sometimes|confirmed|hashed|encrypted|(?:min|max|current_password):\w+)"
    r"(?:\|[a-z_]+(?::[\w,.]+)?)*"
)
"""What a field must be like, or how it is kept."""
_VERSION = lazy_pattern(r"[\^~<>=v]*\d+\.\d+|\*|latest\b|workspace:")


def states_text(place: Place, content: str, rest: str) -> bool:
    """Whether the text in `name = "text"` is the secret itself."""
    if is_stand_in(content) or is_type(content) or is_path(content) or is_name(content):
        return False
    if is_label(place.name, content) or (not place.is_shell and (is_prose(content) or is_chain(content))):
        return False
    if place.is_compared:
        return place.strength is Strength.FULL and looks_chosen(content)
    if place.name.isupper() and not place.tight and not name_strength(place.name.lower()):
        return looks_issued(content) and has_digit(content)
    if place.belongs_to_login(rest):
        return True
    if place.strength is Strength.WEAK:
        return looks_issued(content)
    if repeats_name(place.name, content) and not _NUMBERED.search(content):
        return False
    if place.strength is not Strength.TEXT or place.is_shell or is_dashed(content):
        return True
    return _PLAIN.fullmatch(content) is None


_NUMBERED = lazy_pattern(r"[A-Za-z].*?(?:\d{3}|\d[!@#$%^&*])")
_PLAIN = lazy_pattern(r"[A-Za-z_][A-Za-z_.:-]*")

# --- whether a word without quotes is ------------------------------------------------------------------


def states_alone(place: Place, value: str) -> bool:
    """Whether the rest of a line after a quoted name is a secret and no expression."""
    if is_code(value) or is_snake(value) or repeats_name(place.name, value) or is_placeholder(value):
        return False
    return looks_chosen(value)


def states_word(place: Place, value: str, rest: str) -> bool:
    """Whether a bare word after a name is the secret itself and not a word, a type or an expression."""
    if rest[:1] in ("(", "[", "{") or (place.tight and place.sign == ":" and _ARTIFACT.fullmatch(value)):
        return False
    shell = place.is_shell and place.starts_line
    if is_path(value) or (is_code(value) and not (shell and value.isascii() and not _CALL.search(value))):
        return False
    if is_number(value):
        return place.strength is Strength.FULL and len(value) >= 4
    if place.strength is Strength.WEAK:
        if (
            place.name.lower() == "pw"
            and place.sign == ":"
            and _MADE_UP.fullmatch(value)
            and ends_line(rest, 0)
        ):
            return True
        if looks_chosen(value) and (place.belongs_to_login(rest) or place.name.startswith("-")):
            return True
        return looks_issued(value) and not repeats_name(place.name, value)
    line_ends = _REST.match(rest) is not None
    if place.sign == "=" and place.tight:
        return _states_tightly(place, value, rest, line_ends=line_ends)
    return _states_loosely(place, value, rest, line_ends=line_ends)


_MADE_UP = lazy_pattern(r"(?=[^a-zA-Z]*[a-zA-Z].*[0-9])(?!\w{0,12}\Z|https?:)[!-~]{6,}")
_ARTIFACT = lazy_pattern(r"[a-z][a-z-]+[:-]\d+\.\d+[\w.]*")  # io.jsonwebtoken:jjwt-api:0.11.2
_CALL = lazy_pattern(r"[()\[\]{}$]|(?i:key|token|secret|password)\Z")
_REST = lazy_pattern(r"[ \t]*(?:\r?\n|\\+[nr]|\Z|[\"'`]|\\+[\"']|[#;]|//|\*/|--+>|,?[ \t]*\})")


def ends_line(text: str, position: int) -> bool:
    """Whether a line, a string, a statement or a block ends there."""
    return _REST.match(text, position) is not None


def _states_loosely(place: Place, value: str, rest: str, *, line_ends: bool) -> bool:
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
    if is_dashed(value):
        return True
    beside = _YAML_NEXT.match(rest) or _YAML_BEFORE.search(place.lead)
    return beside is not None and _LOWER.fullmatch(value) is not None


def states_words(place: Place, words: str) -> bool:
    """`password = some bare words` in an INI file"""
    if place.sign != "=" or not place.starts_line or not _PASSWORD.search(place.name):
        return False
    return _SECTION.search(place.lead) is not None and not (
        is_prose(words) or is_complaint(words) or _TOLD.search(words)
    )


_TOLD = lazy_pattern(r"(?i)\b(?:not|see|ask|use|set|the|your|this|same|from|in|by)\b")


_TYPE_NAME = lazy_pattern(r"[A-Z][A-Za-z0-9]*(?:(?:Private|Public|Secret)Keys?|Types?|Str|Ref)")
_SECTION = lazy_pattern(r"(?:\A|\n)\[[a-z][\w.:/ -]*\]\n(?:[a-z][\w.-]* *= *[^\n]*\n){0,4}\Z")
"""The lines of an INI file before this one, from the heading of its section on."""
_PASSWORD = lazy_pattern(r"(?i)pass(?:word|wd|phrase)s?\d*\Z|_pass\Z")
_LOWER = lazy_pattern(r"[a-z]+(?:-[a-z]+)?")
_YAML_NEXT = lazy_pattern(r"\r?\n[ \t-]*[A-Za-z][\w-]*:(?:[ \t]+[\w./:@-]+)?[ \t]*(?:\r?\n|\Z)")
_YAML_BEFORE = lazy_pattern(
    r"(?:\A|\n)([ \t]*)(?:- (?=[^\n]+\n\1  \S*\Z))?[A-Za-z][\w-]*:[ \t]+[\w./:@-]+\r?\n\1(?:  )?\Z"
)


def _states_tightly(place: Place, value: str, rest: str, *, line_ends: bool) -> bool:
    """`NAME=value` without blanks: a shell, a file, a connection string, or the argument of a call."""
    if place.name.isupper() and place.strength >= Strength.TEXT:
        if value.isalpha() and value.islower() and value not in place.name.lower():
            return True  # a shell would write its variables with a sign
        return not repeats_name(place.name, value) or has_digit(value)
    if repeats_name(place.name, value) or is_snake(value):
        return False
    if rest[:1] in (",", ")") and not (place.in_row and _MOUNTED.match(rest)):
        return looks_chosen(value)
    if place.name.startswith("-") and is_name(value):  # --secret=db-password
        return False
    if place.name.startswith("-") or (line_ends and place.starts_line) or looks_chosen(value):
        return True
    if place.in_row or _PAIR_AFTER.match(rest):
        return True
    return _OPTION_BEFORE.search(place.lead[-60:]) is not None and (line_ends or rest[:2] == " -")


_OPTION_BEFORE = lazy_pattern(r"\s--?[a-zA-Z][\w-]*[ =][\"']?\Z")  # `--set name=value`
_PAIR_AFTER = lazy_pattern(r"[ \t;,&]+[A-Za-z_][\w.-]*=")
_MOUNTED = lazy_pattern(r",[a-z_.]+=")  # no blank, as in the options of a mount
