"""Files that a prompt names with `@path`: their content goes with it.

What looks like a reference and is none, such as an address or a decorator, stays what it is. A reference
that cannot be followed is a failure in one sentence, and the prompt is not sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import ImagePart, JsonObject, Part, Prompt, TextPart
from robota.sdk.context.markdown import find_imports, mask_code
from robota.sdk.context.text_file import Unreadable, quote_file, read_bytes, read_text
from robota.tools.files.change import hash_content
from robota.tools.files.path import contained
from robota.tools.files.reading import MAX_PDF_BYTES, recognise

ENTRY = "prompt-file-reference"
"""The type of the timeline's entry."""
MAX_REFERENCES = 8
MAX_DEPTH = 2
"""A file that a prompt names may name others."""
MAX_FILE_BYTES = 64 * 1024
MAX_TOTAL_BYTES = 256 * 1024
MAX_NAMES = 200
"""Of a directory."""
_REFERENCE = lazy_pattern(
    r"(?:^|(?<=[\s(\[{\"',;:]))@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<plain>(?:\\ |[^\s\"'`<>()\[\]{}\\,;])+))",
    re.MULTILINE,
)
_LINES = lazy_pattern(r"#L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?\Z")
_EXPLICIT = lazy_pattern(r"\A(?:\.{1,2}/|/|~/)|/[^/]*\.\w{1,5}\Z")
_COMMON = lazy_pattern(r"\.(?:md|txt|py|pyi|[jt]sx?|json|toml|ya?ml|rs|go|c|h|cpp|java|rb|sh|html|css)\Z")
_PUNCTUATION = ".:!?*_"


class FileReference(Struct, frozen=True, kw_only=True):
    """A file that went with a prompt."""

    path: str
    size: int
    """Bytes that were sent."""
    lines: str = ""
    """Which of its lines, if not all."""
    version: str = ""
    """The hash of a text that was sent whole: the model knows it and may change it."""
    real: str = ""


class ExpandedPrompt(Struct, frozen=True, kw_only=True):
    """A prompt with what it refers to."""

    prompt: Prompt
    references: tuple[FileReference, ...] = ()
    failures: tuple[str, ...] = ()
    """Sentences for the user; with any of them the prompt is not to be sent."""

    def describe(self) -> JsonObject:
        """The data of the timeline's entry."""
        return {
            "references": [
                {"path": each.path, "size": each.size} | ({"lines": each.lines} if each.lines else {})
                for each in self.references
            ]
        }


class ReferenceScope(Struct, frozen=True, kw_only=True):
    """Which files a prompt may refer to."""

    cwd: str
    home: str
    additional_dirs: Sequence[str] = ()
    is_denied: Callable[[str], bool] | None = None
    lenient: bool = False
    """What cannot be followed stays as it is: the words are not those of whoever sends the prompt."""
    others: tuple[str, ...] = ()
    """How references begin that are no files."""


def expand_references(prompt: Prompt, scope: ReferenceScope) -> ExpandedPrompt:
    """The prompt, and behind it each file that it names."""
    texts = (
        [prompt] if isinstance(prompt, str) else [part.text for part in prompt if isinstance(part, TextPart)]
    )
    expansion = _Expansion(scope)
    for text in texts:
        expansion.take_prompt(text)
    if expansion.failures:
        return ExpandedPrompt(prompt=prompt, failures=tuple(expansion.failures))
    if not expansion.references:
        return ExpandedPrompt(prompt=prompt)
    words = "\n\n".join(expansion.blocks)
    expanded: Prompt
    if isinstance(prompt, str) and not expansion.parts:
        expanded = f"{prompt}\n\n{words}"
    else:
        given: tuple[Part, ...] = (TextPart(prompt),) if isinstance(prompt, str) else tuple(prompt)
        expanded = (*given, *([TextPart(words)] if words else []), *expansion.parts)
    return ExpandedPrompt(prompt=expanded, references=tuple(expansion.references))


class _Expansion:
    """What was found so far."""

    def __init__(self, scope: ReferenceScope) -> None:
        self.scope = scope
        self.references: list[FileReference] = []
        self.blocks: list[str] = []
        self.parts: list[Part] = []
        self.failures: list[str] = []
        self._seen: set[tuple[str, str]] = set()
        self._size = 0

    def take_prompt(self, text: str) -> None:
        for found in _REFERENCE.finditer(mask_code(text)):
            if found["quoted"]:
                self._take(found["quoted"], self.scope.cwd, required=True)
            elif not found["plain"].startswith(self.scope.others):
                self._take(found["plain"].replace("\\ ", " "), self.scope.cwd)

    def _take(self, name: str, directory: str, *, required: bool = False, depth: int = 1) -> None:
        """Follow a reference, if it is one."""
        lines = _LINES.search(name)
        bare = name[: lines.start()] if lines else name
        for wanted in dict.fromkeys((bare, bare.rstrip(_PUNCTUATION))):
            full = self._locate(wanted, directory)
            if wanted and os.path.lexists(full):
                try:
                    self._add(self._show(full), full, lines, depth)
                except Unreadable as error:
                    self._fail(wanted, str(error), depth)
                return
        explicit = _EXPLICIT.search(bare) or _COMMON.search(bare)
        if depth == 1 and (required or explicit):
            self._fail(wanted or bare, "does not exist: correct the path", depth)

    def _fail(self, name: str, reason: str, depth: int) -> None:
        """Whoever wrote a prompt is told; a file that leads nowhere is as it is."""
        if depth == 1 and not self.scope.lenient:
            self.failures.append(f"@{name} {reason}.")

    def _locate(self, name: str, directory: str) -> str:
        expanded = self.scope.home + name[1:] if name.startswith("~/") else name
        return os.path.normpath(os.path.join(directory, expanded))

    def _show(self, full: str) -> str:
        cwd = self.scope.cwd.rstrip(os.sep) + os.sep
        return full.removeprefix(cwd)

    def _add(self, shown: str, full: str, lines: re.Match[str] | None, depth: int) -> None:
        span = lines[0].removeprefix("#") if lines else ""
        scope, real = self.scope, os.path.realpath(full)
        if (real, span) in self._seen:
            return
        if not contained(full, (scope.cwd, *scope.additional_dirs)):
            raise Unreadable("lies outside the workspace: add its directory with --add-dir")
        if scope.is_denied is not None and (scope.is_denied(full) or scope.is_denied(real)):
            raise Unreadable("may not be read: a deny rule of the settings covers it")
        if len(self.references) >= MAX_REFERENCES:
            raise Unreadable(f"is one file too many: a prompt may refer to {MAX_REFERENCES}")
        self._seen.add((real, span))
        if os.path.isdir(full):
            self._add_text(f"{shown}/", self._list(full))
            return
        try:
            self._add_file(shown, full, lines, span)
        except FileNotFoundError as error:
            raise Unreadable("does not exist: correct the path") from error
        if depth < MAX_DEPTH and full.endswith(".md") and not span:
            for name in find_imports(self.blocks[-1]):
                self._take(name, os.path.dirname(full), depth=depth + 1)

    def _add_file(self, shown: str, full: str, lines: re.Match[str] | None, span: str) -> None:
        data, size = read_bytes(full, MAX_PDF_BYTES)
        medium = recognise(data, size)
        if medium is not None:
            if medium.problem:
                raise Unreadable(f"cannot be shown: {medium.problem}")
            self.parts.append(medium.carry(data, os.path.basename(full)))
            self.blocks.append(f"[{shown} is attached.]")
            self.references.append(FileReference(path=shown, size=len(data)))
            return
        file = read_text(full, MAX_FILE_BYTES if lines is None else MAX_PDF_BYTES)
        text = file.text if lines is None else _choose(file.text, lines)
        if len(text.encode("utf-8", "replace")) > MAX_FILE_BYTES or (file.cut and lines is None):
            raise Unreadable(
                f"has {file.size:,} bytes, and {MAX_FILE_BYTES:,} go with a prompt: name lines, as in "
                f"@{shown}#L1-200"
            )
        self._add_text(shown, text, span)
        if not span:
            known = {"version": hash_content(data), "real": os.path.realpath(full)}
            self.references[-1] = replace(self.references[-1], **known)

    def _add_text(self, shown: str, text: str, span: str = "") -> None:
        size = len(text.encode("utf-8", "replace"))
        self._size += size
        if self._size > MAX_TOTAL_BYTES:
            raise Unreadable(
                f"is too much: all files of a prompt may have {MAX_TOTAL_BYTES:,} bytes together"
            )
        self.blocks.append(quote_file(f"{shown}#{span}" if span else shown, text))
        self.references.append(FileReference(path=shown, size=size, lines=span))

    def _list(self, directory: str) -> str:
        """The names in a directory that may be seen."""
        is_denied = self.scope.is_denied
        try:
            with os.scandir(directory) as entries:
                names = sorted(
                    f"{entry.name}/" if entry.is_dir() else entry.name
                    for entry in entries
                    if is_denied is None or not is_denied(entry.path)
                )
        except OSError as error:
            raise Unreadable(f"cannot be read ({error.strerror or error})") from error
        more = [f"[{len(names) - MAX_NAMES} more]"] if len(names) > MAX_NAMES else []
        return "\n".join((*names[:MAX_NAMES], *more))


def refer_to(path: str) -> str:
    """How a prompt names a file; empty for a name that it has no way to write."""
    for spelling in (f"@{path}", f'@"{path}"'):
        found = _REFERENCE.fullmatch(spelling)
        if found is not None and path == (found["quoted"] or found["plain"].replace("\\ ", " ")):
            return spelling
    return ""


def read_image(data: bytes) -> ImagePart | None:
    """A picture that models take; `None` for what is none, is damaged or too large."""
    medium = recognise(data, len(data))
    part = None if medium is None or medium.problem else medium.carry(data)
    return part if isinstance(part, ImagePart) else None


def _choose(text: str, lines: re.Match[str]) -> str:
    """Lines of a text, counted from 1."""
    first = int(lines["first"])
    last = int(lines["last"] or first)
    chosen = text.split("\n")[max(first, 1) - 1 : last]
    if not chosen:
        raise Unreadable(f"has no line {first}")
    return "\n".join(chosen)
