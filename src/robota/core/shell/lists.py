"""Files that one command of a pipeline lists and `xargs` at its end hands to another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from robota.core.shell.effects import chosen_suffixes, find_roots, found_suffixes
from robota.core.shell.invocations import Invocation
from robota.core.shell.script import UNKNOWN_WORD, Command, Script, Word, plain_word

_AS_LISTED = re.compile(r"-[0rtx]+\Z|-[nLP]\d*\Z|\d+\Z|--null\Z|--no-run-if-empty\Z")
"""Options of `xargs` with which it hands the names on as they are: neither `-I` nor `-a`."""
_PRINTS_MORE = re.compile(r"-(?:f?printf|f?ls|exec|execdir|ok|okdir|delete|files0-from)\b")
_LISTS_NAMES = re.compile(r"-[zcom]+\Z|--(?:cached|others|modified|exclude-standard)\Z|--\Z")
"""Options of `git ls-files` with which it prints nothing but names."""
_FILTERS = {
    "sort": re.compile(r"-[urnzVf]+\Z"),
    "uniq": re.compile(r"-[uz]+\Z"),
    "head": re.compile(r"-[zn]?\d*\Z|\d+\Z"),
    "tail": re.compile(r"-[zn]?\d*\Z|\d+\Z"),
    "grep": re.compile(r"-[vEFPiwxz]+\Z|--invert-match\Z"),
}
"""Programs that let whole lines through, with the words that change nothing of that."""


class Listed(Struct, frozen=True, gc=False):
    roots: tuple[Word, ...]
    suffixes: frozenset[str]


def find_handed_suffixes(every: Sequence[Invocation]) -> frozenset[str]:
    """How all files end that `find` hands on; nothing when that cannot be told."""
    each = [found_suffixes(one.words) for one in every if one.program == "find" and one.inner]
    return frozenset().union(*each) if all(each) else frozenset()


def are_all_listed(every: Sequence[Invocation]) -> bool:
    """Whether all that arrives at run time are files whose trees and suffixes are judged beside it."""
    fed = (each for each in every if any(UNKNOWN_WORD in one.words for one in each.inner))
    return all(find_listed(each) is not None for each in fed)


def find_listed(invocation: Invocation) -> Listed | None:
    """What `xargs` hands on, if all of it is known to end in one of a few ways."""
    if invocation.program != "xargs" or invocation.unwrapped is None or not invocation.command.piped:
        return None
    options = invocation.words[1 : min(each.start for each in invocation.unwrapped.inner)]
    if not all(_AS_LISTED.match(word.text) for word in options) or invocation.command.redirections:
        return None
    lister = _find_lister(invocation.script, invocation.command)
    listed = None if lister is None else _list(lister.words)
    return listed if listed is not None and listed.suffixes else None


def _find_lister(script: Script, command: Command) -> Command | None:
    """The command that the pipeline starts with, if all others before this one are filters."""
    commands = script.commands
    last = at = next((index for index, each in enumerate(commands) if each is command), 0)
    while at and commands[at].piped:
        at -= 1
        if commands[at].redirections or (commands[at].piped and not _filters(commands[at].words)):
            return None
    # In `{ echo x; find; } | xargs` the pipeline begins before.
    begins = (start for start, end, _ in script.unsteady if start <= last < end)
    return commands[at] if at < last and at == max(begins, default=-1) else None


def _filters(words: Sequence[Word]) -> bool:
    known = _FILTERS.get(words[0].text)
    if known is None:
        return False
    others = [word for word in words[1:] if not known.match(word.text)]
    patterns = 1 if words[0].text == "grep" else 0
    return len(others) == patterns and not any(word.text[:1] == "-" or word.computed for word in others)


def _list(words: Sequence[Word]) -> Listed | None:
    texts = [word.text for word in words]
    if texts[0] == "find" and not any(map(_PRINTS_MORE.match, texts)):
        return Listed(find_roots(words), found_suffixes(words))
    if texts[:2] == ["git", "ls-files"]:
        chosen = [text for text in texts[2:] if not _LISTS_NAMES.match(text)]
        names = [text.rpartition("/")[2] for text in chosen]
        outside = any(text[:1] in ("-", ":", "/", "~") or ".." in text for text in chosen)
        computed = any(word.computed for word in words)
        return None if outside or computed else Listed((plain_word("."),), chosen_suffixes(names))
    return None
