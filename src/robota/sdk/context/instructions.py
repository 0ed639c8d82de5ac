"""Instruction files: AGENTS.md, CLAUDE.md and what they import, as texts for the model.

They are words and nothing else: reading them starts nothing, and what a project's file imports from outside
the project is left out until the user has agreed to it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from robota._lazy_pattern import lazy_pattern
from robota.core.permissions.paths import is_inside
from robota.sdk.context.markdown import find_imports, strip_comments
from robota.sdk.context.path_globs import compile_globs, read_globs
from robota.sdk.context.text_file import TextFile, Unreadable, read_text
from robota.sdk.frontmatter import list_markdown, parse_document
from robota.sdk.places import Places
from robota.sdk.problems import Problem

InstructionKind: TypeAlias = Literal["agents", "notes", "rule"]
"""`AGENTS.md`, `CLAUDE.md`, a file of `.claude/rules`; what a file imports is of its kind."""
Source: TypeAlias = Literal["user", "project", "local"]
ALL_SOURCES: tuple[Source, ...] = get_args(Source)

MAX_FILE_BYTES = 64 * 1024
MAX_TOTAL_BYTES = 256 * 1024
MAX_FILES = 200
MAX_DEPTH = 4
"""Imports in imports."""
_NAMES: tuple[tuple[str, InstructionKind, Source], ...] = (
    ("AGENTS.md", "agents", "project"),
    ("CLAUDE.md", "notes", "project"),
    (os.path.join(".claude", "CLAUDE.md"), "notes", "project"),
    ("CLAUDE.local.md", "notes", "local"),
)
_RULES = os.path.join(".claude", "rules")
_KINDS: dict[str, InstructionKind] = {"AGENTS.md": "agents", "CLAUDE.md": "notes"}
_NAMES_A_FILE = lazy_pattern(r"\A(?:\.{1,2}/|/|~/)|\.(?:md|mdc|txt|rst|adoc|json|ya?ml|toml)\Z")
_PUNCTUATION = ".,;:!?)]}'\"*_>"


class InstructionFile(Struct, frozen=True, kw_only=True):
    """One file as the model is given it."""

    path: str
    kind: InstructionKind
    source: Source
    text: str
    size: int = 0
    """Bytes on the disk."""
    imported_by: str = ""
    base: str = ""
    """The directory that the globs of a rule are about."""
    paths: tuple[str, ...] = ()
    """Globs of a rule that applies only to some files."""


class Reading(Struct, frozen=True, kw_only=True):
    """What may be read, and where."""

    places: Places
    sources: Collection[str] = ALL_SOURCES
    imports_allowed: bool = False
    """The user agreed that files of this project import others from outside it."""
    is_denied: Callable[[str], bool] | None = None
    """A rule of the user forbids to read a path."""
    excludes: Sequence[str] = ()
    """Globs of files to leave alone (`claudeMdExcludes`)."""


class _Origin(Struct, frozen=True):
    """The file that somebody put there, to which its imports belong."""

    kind: InstructionKind
    source: Source
    base: str
    """The directory that it is about."""
    chain: tuple[str, ...] = ()
    """The real paths from that file to the one that imports."""
    importer: str = ""


def list_places(directory: str) -> list[str]:
    """Where the instructions of a directory would be."""
    return [os.path.join(directory, name) for name in (*(name for name, _, _ in _NAMES), _RULES)]


class InstructionReader:
    """Reads files in order, each once, whether it is found, imported or repeated word for word."""

    def __init__(self, reading: Reading, known: Sequence[InstructionFile] = ()) -> None:
        """`known` were read before."""
        self.reading = reading
        self.files: list[InstructionFile] = []
        self.problems: list[Problem] = []
        self.outside: list[str] = []
        """Imports that wait for the user's consent."""
        self._directories: dict[str, str] = {}
        """Where those lead that were met."""
        self._seen = {self._resolve(file.path) for file in known}
        self._texts = {file.text for file in known}
        self._size = 0
        self._is_excluded = compile_globs(tuple(self._read_excludes()))

    def _read_excludes(self) -> list[str]:
        usable: list[str] = []
        for glob in self.reading.excludes:
            found, problem = read_globs([_widen(glob, self.reading.places)])
            usable += found
            if problem:
                self._note("settings", f"{problem}; it was left out.", "claudeMdExcludes")
        return usable

    # --- where they are -------------------------------------------------------------------------------------

    def read_user_files(self) -> None:
        """The user's own, which may import from everywhere."""
        places = self.reading.places
        if "user" in self.reading.sources:
            self._read(places.user("AGENTS.md"), _Origin("agents", "user", places.robota_home))
            self._read(places.claude("CLAUDE.md"), _Origin("notes", "user", places.claude_home))
            self._read_rules(places.claude("rules"), _Origin("rule", "user", places.cwd))

    def read_directory(self, directory: str) -> None:
        """The files that a directory has, rules included."""
        for name, kind, source in _NAMES:
            if source in self.reading.sources:
                self._read(os.path.join(directory, name), _Origin(kind, source, directory))
        if "project" in self.reading.sources:
            self._read_rules(os.path.join(directory, _RULES), _Origin("rule", "project", directory))

    def _read_rules(self, directory: str, origin: _Origin) -> None:
        if os.path.isdir(directory):
            for path in list_markdown(directory):
                self._read(path, origin)

    # --- one file -------------------------------------------------------------------------------------------

    def _read(self, path: str, origin: _Origin) -> bool:
        """Take a file and what it imports; whether it is there, as far as that may be found out."""
        real = self._resolve(path)
        if not real:
            return False
        if real in self._seen or not self._may_read(path, real, origin):
            return True
        try:
            file = read_text(path, MAX_FILE_BYTES)
        except FileNotFoundError:
            return False
        except Unreadable as error:
            self._note(path, f"It {error} and was left out.")
            return True
        self._seen.add(real)
        self._size += min(file.size, MAX_FILE_BYTES)
        if len(self._seen) > MAX_FILES or self._size > MAX_TOTAL_BYTES:
            limits = f"{MAX_TOTAL_BYTES >> 10} KiB in {MAX_FILES} files"
            self._note(path, f"It was left out, because instructions may have {limits} altogether.")
            return True
        self._take(path, file, replace(origin, chain=(*origin.chain, real)))
        return True

    def _take(self, path: str, file: TextFile, origin: _Origin) -> None:
        body, paths = file.text, tuple[str, ...]()
        if origin.kind == "rule":
            body, paths = self._read_head(path, file.text)
        text = strip_comments(body).strip()
        at, imports = len(self.files), find_imports(text)
        if len(origin.chain) <= MAX_DEPTH:
            followed = [name for name in imports if self._follow(name, path, file.text, origin)]
        else:
            followed = []
            if any(_NAMES_A_FILE.search(name) for name in imports):
                self._note(path, f"Its imports were left out: they are nested more than {MAX_DEPTH} deep.")
        words = text
        for name in followed:
            words = words.replace(f"@{name}", "")
        if not words.strip() or text in self._texts:  # all that it says is said
            return
        self._texts.add(text)
        if file.cut:
            self._note(path, f"Only its first {MAX_FILE_BYTES >> 10} KiB are used: split it.")
            text += f"\n[The rest of {os.path.basename(path)} is left out here, because it is too long.]"
        made = InstructionFile(
            path=path,
            kind=_KINDS.get(os.path.basename(path), origin.kind),
            source=origin.source,
            text=text,
            size=file.size,
            imported_by=origin.importer,
            base=origin.base,
            paths=paths,
        )
        self.files.insert(at, made)

    def _read_head(self, path: str, text: str) -> tuple[str, tuple[str, ...]]:
        document = parse_document(text, path)
        if document.problem is not None:
            self.problems.append(document.problem)
        globs, problem = read_globs(document.fields.get("paths"))
        if problem:
            self._note(path, f"{problem}; the rule counts for all files.", subject="paths")
        return document.body, globs

    def _may_read(self, path: str, real: str, origin: _Origin) -> bool:
        reading, places = self.reading, self.reading.places
        if self._is_excluded(path):
            return False
        denied = reading.is_denied
        if denied is not None and (denied(path) or (real != path and denied(real))):
            self._note(path, "It was left out: a deny rule of the settings covers it.")
            return False
        importer = origin.chain[-1] if origin.chain else ""
        if origin.source == "user" and not (importer and self._is_below(importer, [places.cwd])):
            return True
        roots = [places.cwd]
        if not importer or origin.base not in (places.home, os.path.dirname(origin.base)):
            roots.append(origin.base)  # but all that somebody has is too much to import from
        if reading.imports_allowed or self._is_below(real, roots) or not os.path.isfile(path):
            return True
        self.outside.append(path)
        self._note(
            origin.importer or path,
            f"{places.shown(path)} lies outside the project and was left out: agree to such imports, or "
            "import it from your own instructions.",
            subject=f"@{path}" if importer else "",
        )
        return False

    def _follow(self, name: str, path: str, source: str, origin: _Origin) -> bool:
        """Read an import, if it is one; whether its text stands elsewhere."""
        directory, home = os.path.dirname(path), self.reading.places.home
        for wanted in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
            full = home + wanted[1:] if wanted.startswith("~/") else os.path.join(directory, wanted)
            if not wanted or os.path.isdir(full):
                continue
            full = os.path.normpath(full)
            real = self._resolve(full)
            if real in origin.chain:
                ways = " → ".join(os.path.basename(step) for step in (*origin.chain, full))
                self._note(path, f"It imports itself ({ways}); remove one of these imports.", f"@{wanted}")
                return True
            if self._read(full, replace(origin, importer=path)):
                return real in self._seen
        if _NAMES_A_FILE.search(wanted):
            line = source[: max(source.find(f"@{wanted}"), 0)].count("\n") + 1
            self._note(path, "There is no such file: correct the path.", f"@{wanted}", line)
        return False

    def _resolve(self, path: str) -> str:
        """Where a path leads; empty when nothing is there."""
        try:
            facts = os.lstat(path)
        except (OSError, ValueError):
            return ""
        if stat.S_ISLNK(facts.st_mode):
            return os.path.realpath(path)
        directory, name = os.path.split(path)
        return os.path.join(self._resolve_directory(directory), name)

    def _resolve_directory(self, directory: str) -> str:
        real = self._directories.get(directory)
        if real is None:
            self._directories[directory] = real = os.path.realpath(directory)
        return real

    def _is_below(self, real: str, roots: Sequence[str]) -> bool:
        return any(is_inside(real, self._resolve_directory(root)) for root in roots)

    def _note(self, path: str, message: str, subject: str = "", line: int = 0) -> None:
        self.problems.append(Problem(path, message, line, subject))


def _widen(glob: str, places: Places) -> str:
    """A glob that is compared with absolute paths; one that is not absolute may begin anywhere."""
    if glob.startswith("~/"):
        return places.home + glob[1:]
    return glob if glob.startswith(("/", "**")) else f"**/{glob}"
