"""The hosts that a shell command may contact, against deny and ask rules for `WebFetch`.

An address is told by its scheme. Elsewhere any part of a word may be a host, whichever program it is given
to; programs that only handle files and texts are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from robota.core.permissions.command_reading import Reading
from robota.core.permissions.matchers import Hit
from robota.core.permissions.rules import text_glob
from robota.core.permissions.started import LANGUAGES
from robota.core.permissions.url_matcher import host_matches, host_of, lower_host, read_domain
from robota.core.shell.expansions import names_set_by_commands
from robota.core.shell.hazards import after_options
from robota.core.shell.invocations import Invocation
from robota.core.shell.mentions import set_variables
from robota.core.shell.programs import find_options, is_known, load_programs
from robota.core.shell.script import Script, Word

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>|]*", re.IGNORECASE)
_KNOWN_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?[\w.-]+[:/?#]", re.IGNORECASE)
_NAMES = re.compile(r"[\w.-]+|\[[0-9a-f:.]+\]")
_SEPARATED = re.compile(r"[{}\[\]]")
_FETCHING_GIT = frozenset(
    {"clone", "fetch", "pull", "push", "ls-remote", "remote", "submodule", "archive", "subtree"}
)
_LISTS = frozenset({"-K", "--config", "-i", "--input-file"})
_ADDRESSES = frozenset({"--url", "-x", "--proxy", "--preproxy", "--connect-to", "--resolve", "--doh-url"})
"""Options of programs that fetch whose value says where to; those of others are data."""


class Hosts:
    """What one rule is about."""

    def __init__(self, pattern: str) -> None:
        self._glob = None if pattern.startswith("domain:") else text_glob(lower_host(pattern))
        place = pattern if self._glob is None else "domain:" + pattern.partition("://")[2].partition("/")[0]
        self._host = read_domain(place)[0] or "*"

    def hit(self, reading: Reading) -> Hit | None:
        doubt = None
        for invocation in reading.every:
            for text, fetches in _texts(invocation):
                found = self._compare(text, invocation.command.text, fetches=fetches)
                if found is not None and found.certain:
                    return found
                doubt = doubt or found
            if doubt is None and (invocation.opaque or _fetches_unknown(invocation)):
                doubt = _doubt(invocation.command.text)
        return doubt

    def _compare(self, text: str, part: str, *, fetches: bool) -> Hit | None:
        for address in _ADDRESS.findall(text):
            if address.endswith("://") or ":///" in address:  # a file
                continue
            host = host_of(address)
            if host is None or _SEPARATED.search(address.partition("://")[2].partition("/")[0]):
                return _doubt(part)
            if host_matches(self._host, host, below=True):
                return Hit(part) if self._glob is None or self._glob.matches(lower_host(address)) else None
        everywhere = self._host == "*" and not fetches
        names = [] if everywhere else _NAMES.findall(_ADDRESS.sub(" ", text).lower())
        names = [name.strip(".[]") for name in names]
        names += [name[2:] for name in names if name[:1] == "-"]  # `mysql -hHOST`
        if any(host_matches(self._host, name, below=True) for name in names):
            return _doubt(part)
        return None


def _doubt(part: str) -> Hit:
    return Hit(part, certain=False, reason="it may contact a host that the rule is about")


@lru_cache(maxsize=1)
def _offline() -> frozenset[str]:
    """Programs that contact nobody."""
    programs = load_programs()
    local = programs.names_only | programs.read_only | programs.files.keys()
    return frozenset(local - programs.contacting - LANGUAGES)


def _texts(invocation: Invocation) -> Iterator[tuple[str, bool]]:
    """What may name a host, and whether the program is one that fetches what it is given."""
    name, words, programs = invocation.program, invocation.words, load_programs()
    for redirection in invocation.command.redirections:
        if redirection.target is not None and redirection.target.text.startswith("/dev/"):
            yield redirection.target.text, True
    offline = invocation.computed or name in _offline() or (name == "git" and not _is_fetching_git(words))
    if not offline or name in programs.runners:
        yield from ((value.text, False) for _, value in set_variables(invocation))
    if offline:
        return
    coded = name in LANGUAGES or not is_known(name)
    fetches = name in programs.fetching
    for at, word in enumerate(words[1:], 1):
        if (fetches and _is_data(words, at)) or (" " in word.text and not coded):
            continue
        values = _known_values(word, invocation.script)
        yield from ((text, fetches) for text in values or (word.text,))
    for redirection in invocation.command.redirections if coded else ():
        yield redirection.body or (redirection.target.text if redirection.target else ""), False


def _is_fetching_git(words: Sequence[Word]) -> bool:
    start = after_options(words)
    settings = any("://" in word.text for word in words[1:start])
    return settings or (start < len(words) and words[start].text in _FETCHING_GIT | {"config"})


def _is_data(words: Sequence[Word], at: int) -> bool:
    """Whether a word is an option of a fetching program, or a value that does not say where to."""
    text, before = words[at].text, words[at - 1].text
    if text[:1] == "-":
        return text.partition("=")[0] not in _ADDRESSES
    options = find_options(words[0].text.rpartition("/")[2])
    return at > 1 and options is not None and before in options.valued - _ADDRESSES


def _known_values(word: Word, script: Script) -> list[str]:
    """The word with what the text itself gives the variable that it begins with, if that is known."""
    pieces = [piece for piece in word.pieces if piece[1]]
    if not pieces or pieces[0][0] != "variable":
        return []
    name, values = pieces[0][1], script.assigned.get(pieces[0][1], [])
    known = name in script.lasting and not {name, "*"} & names_set_by_commands(script)
    if not known or not all(value.literal for value in values):
        return []
    rest = "".join([text if kind == "text" else "$" for kind, text, _ in pieces[1:]])
    texts = [value.text + rest for value in values]
    return texts if not rest or all(map(_KNOWN_HOST.match, texts)) else []


def _fetches_unknown(invocation: Invocation) -> bool:
    """Whether a fetching program is given an address, or a list of some, that is only known when it runs."""
    words = invocation.words
    git = invocation.program == "git" and len(words) > 1 and words[1].text == "clone"
    if invocation.program not in load_programs().fetching and not git:
        return False
    for at, word in enumerate(words[1:], 1):
        if not git and word.text in _LISTS:
            return True
        if word.literal or _is_data(words, at) or _known_values(word, invocation.script):
            continue
        begins = "".join([text for _, text, _ in takewhile(lambda piece: piece[0] == "text", word.pieces)])
        if word.computed and not _KNOWN_HOST.match(begins):
            return True
    return False
