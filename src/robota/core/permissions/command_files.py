"""The files that a shell command reads and writes, against deny and ask rules for files."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from robota.core.permissions.command_patterns import path_items
from robota.core.permissions.command_reading import Reading
from robota.core.permissions.matchers import Call, Hit
from robota.core.permissions.paths import DeniedPaths, Resolver, in_workspace, is_protected, shorten
from robota.core.permissions.processes import leave_processes
from robota.core.permissions.repositories import find_top
from robota.core.permissions.rules import Rule
from robota.core.permissions.started import LANGUAGES
from robota.core.permissions.subjects import READING_TOOLS
from robota.core.permissions.variables import find_values
from robota.core.shell.effects import Touch, known_path
from robota.core.shell.expansions import splits
from robota.core.shell.invocations import Invocation
from robota.core.shell.lists import are_all_listed, find_handed_suffixes
from robota.core.shell.programs import load_programs
from robota.core.shell.script import FOUND_WORD, UNKNOWN_WORD, Piece, Word, build_word
from robota.core.shell.writes import WHOLE_REPOSITORY, find_possible_writes

_NAMES = re.compile(r"[=@:,;{}\[\]]")
_ALL_OF = re.compile(r"(?:/|/\.|\A\.)\Z")
"""How a source is written whose contents are copied, not itself."""
_LIVE = re.compile(r"[*?\[]")
_LINKERS = frozenset({"ln", "link", "mount", "bindfs", "cpio", "rsync"})
_COPIES_LINKS = re.compile(
    r"-[a-zA-Z]*[adPRrsl]|--(?:archive|no-dereference|symbolic-link|link|recursive|preserve)"
)


def _is_interpreter(program: str) -> bool:
    known = load_programs()
    return program in LANGUAGES or program in known.shells or program in known.other_shells


def _without_globs(word: Word) -> Word:
    pieces: list[Piece] = [(kind, text, True) for kind, text, _ in word.pieces]
    return build_word(pieces, word.raw) if pieces else word


def _climb(word: Word, directory: str | None) -> list[Word]:
    """The word, and with the directories that it begins with as their links lead; none where that cannot be
    told."""
    if directory is None or word.tilde:
        return [] if ".." in word.text else [word]
    begin, rest = _split_directories(word)
    if ".." in build_word(rest, word.raw).text:
        return []
    named = posixpath.normpath(posixpath.join(directory, begin))
    places = {
        named,
        posixpath.normpath(posixpath.join(os.path.realpath(directory), begin)),
        os.path.realpath(posixpath.join(directory, begin)),
    }
    found = [] if ".." in begin else [word]
    places -= {named} if found else set()
    made: list[list[Piece]] = [[("text", place.rstrip("/") + "/", True), *rest] for place in sorted(places)]
    return [*found, *(build_word(pieces, word.raw) for pieces in made)]


def _split_directories(word: Word) -> tuple[str, list[Piece]]:
    """The known text of a word up to its last slash, and the pieces that follow."""
    known = ""
    for kind, text, quoted in word.pieces:
        fixed = text if quoted else _LIVE.split(text, 1)[0]
        known += fixed if kind == "text" else ""
        if kind != "text" or fixed != text:
            break
    begin = known[: known.rfind("/") + 1]
    rest, passed = list[Piece](), len(begin)
    for kind, text, quoted in word.pieces:
        cut = min(passed, len(text)) if kind == "text" else 0
        rest.append((kind, text[cut:], quoted))
        passed -= cut
    return begin, rest


def _is_walked(touch: Touch, denied: DeniedPaths, path: str | None) -> bool:
    """Whether what lies below the path is touched too."""
    return (
        touch.recursive
        and not touch.mentioned
        and not denied.ends_otherwise(touch.suffixes)
        and (touch.hidden or not denied.is_hidden_in(path))
    )


def _find_linking(every: Sequence[Invocation]) -> str | None:
    """The first part that makes links, so that where later paths lead cannot be told before."""
    for each in every:
        copies = each.program == "cp" and any(_COPIES_LINKS.match(word.text) for word in each.words[1:])
        if copies or each.program in _LINKERS:
            return each.command.text
    return None


def _find_unread_text(reading: Reading) -> str | None:
    """The first part that runs a text of which nothing is known."""
    for each in reading.every:
        if each.opaque and each.unwrapped is not None and _is_interpreter(each.program):
            waits = each.unwrapped.reads_input and not each.command.piped and not reading.redirects
            if not waits:  # for somebody who types
                return each.command.text
    return None


def _reads_one(touch: Touch) -> bool:
    """Whether a program that is known reads the file, and nothing below it."""
    return touch.kind == "read" and not touch.mentioned and not touch.recursive


class CommandFiles:
    def __init__(self, call: Call, reading: Reading) -> None:
        self._call, self._reading = call, reading
        self._script, self._every, self._home = reading.script, reading.every, reading.home

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(self._home)

    @cached_property
    def _assigned(self) -> frozenset[str]:
        return frozenset(self._script.assigned)

    @property
    def touches(self) -> list[Touch]:
        return self._reading.touches

    @cached_property
    def _possible_writes(self) -> list[Touch]:
        return list(find_possible_writes(self._every, self._home))

    def filled_trees(self) -> list[str]:
        """The directories that programs other than git fill with files of which no word tells."""
        found = [
            touch
            for touch in self._possible_writes
            if not touch.mentioned and not touch.suffixes and touch.part[:4] != "git "
        ]
        copying = [touch for touch in self.touches if touch.kind == "write" and touch.recursive]
        parts = {touch.part for touch in copying}
        whole = {
            touch.part for touch in self.touches if touch.kind == "read" and _ALL_OF.search(touch.word.text)
        }
        found += [touch for touch in self.touches if touch.kind == "write" and touch.part in parts]
        paths = [
            (touch, known_path(touch.word, directory, self._home, self._assigned))
            for touch in found
            for directory in touch.directories
        ]
        return [
            posixpath.normpath(path)
            for touch, path in paths
            # What is copied into a directory that is there already has a path of its own.
            if path and (touch not in copying or touch.part in whole or not os.path.isdir(path))
        ]

    @cached_property
    def linking(self) -> str | None:
        return _find_linking(self._every)

    @cached_property
    def _unlinked(self) -> frozenset[str]:
        """The parts that are not concerned: that one, and the ones before it where nothing is repeated."""
        parts = [each.command.text for each in self._every]
        if self.linking is None or self._script.unsteady:
            return frozenset([self.linking or ""])
        at = parts.index(self.linking)
        return frozenset(parts[: at + 1]) - frozenset(parts[at + 1 :])

    def hit(self, rule: Rule, unread: str | None) -> Hit | None:
        """How a rule for files applies; `unread` says why the command was not understood."""
        reading = rule.tool in READING_TOOLS
        doubt: Hit | None = None
        if rule.pattern is None:
            kind = "read" if reading else "write"
            return next((Hit(touch.part) for touch in self.touches if touch.kind == kind), None)
        denied = DeniedPaths(rule.pattern, self._call.place, self._resolver)
        for touch in (*self.touches, *(self._reading.mentions if reading else self._possible_writes)):
            if not reading and touch.kind == "read":
                continue
            if reading and touch.kind == "delete":
                touch = replace(touch, mentioned=True)  # what goes with a tree is not read
            if touch.word is WHOLE_REPOSITORY and ".git" in rule.pattern.split("/"):
                continue  # what git keeps for itself comes from no commit
            found = self._touch_hit(touch, denied)
            if found is not None and found.certain:
                return found
            doubt = doubt or found
            if doubt is None and self.linking is not None and touch.part not in self._unlinked:
                reason = "a link that the command makes may lead elsewhere"
                doubt = Hit(touch.part, certain=False, reason=reason)
        if unread is not None:
            return self._unread_hit(denied, unread)
        return (
            doubt
            if doubt is not None or self._runs_text is None
            else Hit(self._runs_text, certain=False, reason="what it runs is only known when it runs")
        )

    @cached_property
    def _runs_text(self) -> str | None:
        return _find_unread_text(self._reading)

    @cached_property
    def _found_suffixes(self) -> frozenset[str]:
        return find_handed_suffixes(self._every)

    @cached_property
    def _all_listed(self) -> bool:
        return are_all_listed(self._every)

    def _touch_hit(self, touch: Touch, denied: DeniedPaths) -> Hit | None:
        doubt: Hit | None = None
        for directory in touch.directories:
            found = self._touch_hit_in(directory, touch, denied)
            if found is not None and found.certain:
                return found
            doubt = doubt or found
        return doubt

    def _touch_hit_in(self, directory: str | None, touch: Touch, denied: DeniedPaths) -> Hit | None:
        path, sure = known_path(touch.word, directory, self._home, self._assigned), touch.sure
        if touch.word is WHOLE_REPOSITORY and directory is not None:
            path = find_top(directory)
        if path is not None and path.startswith("/proc/"):
            path, led = leave_processes(posixpath.normpath(path), directory)
            sure = sure and led
        if path is None:
            return self._unknown_hit(directory, touch, denied)
        try:
            forms = self._resolver.resolve(path, directory or "/")
        except (OSError, ValueError):
            return (
                Hit(touch.part, certain=False, reason="the path cannot be resolved") if touch.sure else None
            )
        if denied.hits(forms, directory=touch.recursive):
            return Hit(
                touch.part, certain=sure, reason="" if sure else "it may use a file that the rule is about"
            )
        if touch.told and denied.is_named_in(touch.word.text):
            return Hit(touch.part, certain=False, reason="it may use a file that the rule is about")
        if touch.mentioned and touch.sure and os.path.isdir(path) and denied.hits(forms, directory=True):
            return Hit(touch.part, certain=False, reason="it may reach what is in this directory")
        copied = touch.kind == "write" and touch.sure  # whatever is there already is not touched
        if (
            _is_walked(touch, denied, posixpath.normpath(path))
            and (os.path.isdir(path) if copied else not os.path.isfile(path))
            and denied.reaches_below(forms)
        ):
            return Hit(touch.part, certain=False, reason="it may also reach files that the rule is about")
        return None

    def _unknown_hit(self, directory: str | None, touch: Touch, denied: DeniedPaths) -> Hit | None:
        word = touch.word
        # What is read is judged by the directories that `find` searches.
        if word is FOUND_WORD and (touch.kind == "read" or denied.ends_otherwise(self._found_suffixes)):
            return None
        if (word is UNKNOWN_WORD and _reads_one(touch) and self._all_listed) or denied.ends_otherwise(
            touch.suffixes
        ):
            return None
        if values := find_values(word, self._script, self._every):
            made = [replace(touch, word=value, sure=touch.sure and sure) for value, sure in values.items()]
            hits = [self._touch_hit_in(directory, each, denied) for each in made]
            return next((hit for hit in hits if hit is not None), None)
        words = _climb(word, directory)
        walked = _is_walked(touch, denied, None)
        # A glob that no file matches stands for itself.
        if (
            not words
            or "/proc/" in word.text
            or splits(word, self._script)
            or any(
                denied.may_hit(items) or (walked and denied.may_hit_below(items))
                for each in words
                for form in (each, _without_globs(each))
                for items in (path_items(form, directory, self._home, self._assigned),)
            )
        ):
            return Hit(touch.part, certain=False, reason="which file it uses is only known when it runs")
        return None

    def _unread_hit(self, denied: DeniedPaths, unread: str) -> Hit:
        """In a command that was not understood any word may name a file."""
        texts = {part for each in self._every for word in each.words for part in _NAMES.split(word.text)}
        named = any(self._names_denied(text, denied) for text in texts if text)
        return Hit(None, certain=named, reason=unread)

    def _names_denied(self, text: str, denied: DeniedPaths) -> bool:
        path = self._home + text[1:] if text == "~" or text.startswith("~/") else text
        try:
            return denied.hits(self._resolver.resolve(path, self._call.place.cwd), directory=False)
        except (OSError, ValueError):
            return False

    def rules_for_writing(self) -> list[str] | None:
        """The narrowest rules for what redirections write; None when there is no safe one."""
        rules: list[str] = []
        for touch in self.touches:
            for directory in touch.directories if touch.redirected and touch.kind == "write" else ():
                path = known_path(touch.word, directory, self._home, self._assigned)
                if path is None:
                    continue
                forms = self._resolver.resolve(path, "/")
                if is_protected(forms) or not in_workspace(forms, self._call.place):
                    return None
                rules.append(f"Write({shorten(forms.lexical[0], self._call.place)})")
        return rules
