"""Where marketplaces and plugins come from, as people type it and as files say it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.given import suggest
from robota.core.messages import Json, JsonObject
from robota.sdk.bundle.names import BundleError

SourceKind: TypeAlias = Literal["github", "git", "git-subdir", "archive", "manifest", "directory"]
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ADDRESS = re.compile(r"(?:https?|ssh|git|file)://[^\s]+")
_SCP = re.compile(r"[\w.-]+@[\w.-]+:[^\s]+", re.ASCII)
MANIFEST = os.path.join(".claude-plugin", "marketplace.json")
_ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2")
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_REF = re.compile(r"[\w.][\w./+-]*", re.ASCII)
_UNSUPPORTED: Mapping[str, str] = {
    "npm": "packages of npm can run scripts when they are installed, so they are not: use its repository",
    "pip": "packages of Python can run code when they are installed, so they are not: use its repository",
    "command": "robota runs no command to get a plugin: use a repository, a directory or an archive",
    "settings": "a marketplace inside of settings is not known here: use a repository or a directory",
    "hostPattern": "it is a rule for marketplaces, not one of them",
    "pathPattern": "it is a rule for marketplaces, not one of them",
}


class Source(Struct, frozen=True, kw_only=True):
    """One place to get something from."""

    kind: SourceKind
    location: str
    """`owner/name`, an address, or an absolute path."""
    ref: str = ""
    """A branch or a tag."""
    sha: str = ""
    """The commit it has to be."""
    path: str = ""
    """Of the directory inside of it."""
    sha256: str = ""
    """Of an archive."""

    @property
    def address(self) -> str:
        """What git or a client is told."""
        return f"https://github.com/{self.location}.git" if self.kind == "github" else self.location

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, of which a stranger's marketplace knows nothing."""
        return self.kind == "directory" or self.address.startswith("file:")

    @property
    def host(self) -> str:
        found = re.match(r"https?://(?:[^/@]*@)?(\[[^\]]+\]|[^/:?#]+)", self.address)
        return found[1].strip("[]") if found else ""

    def describe(self) -> str:
        """With all that pins it."""
        pins = [f"#{self.ref}" if self.ref else "", f"@{self.sha[:12]}" if self.sha else ""]
        return f"{self.location}{f'/{self.path}' if self.path else ''}{''.join(pins)}"

    def to_json(self) -> JsonObject:
        """As the files of registries have it."""
        where = {"github": "repo", "directory": "path"}.get(self.kind, "url")
        found: JsonObject = {"source": self.kind, where: self.location}
        for key in ("ref", "sha", "sha256"):
            if getattr(self, key):
                found[key] = getattr(self, key)
        return found | ({"path": self.path} if self.path and self.kind != "directory" else {})


def parse_source(text: str, cwd: str = "") -> Source:
    """What a person types: `owner/name`, an address, a directory; `#` names a branch or tag, or a commit."""
    text = text.strip()
    place = os.path.expanduser(text)
    if text.startswith((".", "/", "~")) or os.path.isdir(os.path.join(cwd, place)):
        path = os.path.abspath(os.path.join(cwd, place))
        if path.endswith(MANIFEST):
            path = os.path.dirname(os.path.dirname(path))
        return Source(kind="directory", location=path)
    location, _, ref = text.partition("#")
    if "@" in location and _REPOSITORY.fullmatch(location.partition("@")[0]):
        location, _, ref = location.partition("@")
    pins: dict[str, str] = {"sha": ref} if re.fullmatch(r"[0-9a-f]{40}", ref) else {"ref": ref}
    if _REPOSITORY.fullmatch(location):
        return _check(Source(kind="github", location=location.removesuffix(".git"), **pins))
    if _ADDRESS.fullmatch(location) or _SCP.fullmatch(location):
        kind = _kind_of(location)
        return _check(Source(kind=kind, location=location, **pins))
    raise BundleError(
        f"{text!r} is no source of plugins: write owner/name for GitHub, the address of a git repository or "
        "of a .zip, .tar.gz or marketplace.json file, or the path of a directory."
    )


def _kind_of(location: str) -> SourceKind:
    """By how an address ends."""
    if location.startswith(("http://", "https://")) and location.endswith(".json"):
        return "manifest"
    return "archive" if location.endswith(_ARCHIVES) else "git"


def read_source(value: Json, *, what: str) -> Source:
    """What a file says: `{"source": "github", "repo": …}` and the like; `what` is named when it is wrong."""
    if not isinstance(value, dict):
        raise BundleError(f"{what} has no usable source: an object with `source` was expected.")
    kind = str(value.get("source", value.get("type")) or "")
    if kind in _UNSUPPORTED:
        raise BundleError(f"{what} has a source of type {kind!r}: {_UNSUPPORTED[kind]}.")
    text = {
        key: str(value.get(key) or "") for key in ("repo", "url", "path", "ref", "sha", "sha256", "commit")
    }
    pins = {"ref": text["ref"], "sha": text["sha"] or text["commit"]}
    source: Source | None = None
    match kind:
        case "github" if _REPOSITORY.fullmatch(text["repo"]):
            source = Source(kind="github", location=text["repo"], path=text["path"], **pins)
        case "git" | "url" | "git-subdir" if text["url"]:
            location = text["url"]
            if _REPOSITORY.fullmatch(location):
                location = f"https://github.com/{location}.git"
            plain: SourceKind = _kind_of(location) if kind == "url" else "git"
            source = Source(
                kind="git-subdir" if text["path"] else plain, location=location, path=text["path"], **pins
            )
        case "manifest" if text["url"]:
            source = Source(kind="manifest", location=text["url"])
        case "archive" if text["url"]:
            source = Source(kind="archive", location=text["url"], sha256=text["sha256"])
        case "directory" | "local" | "file" if text["path"]:
            source = parse_source(os.path.abspath(os.path.expanduser(text["path"])))
    if source is None:
        known = ("github", "git", "url", "git-subdir", "archive", "directory")
        hint = (
            f"there is no type {kind!r}; {suggest(kind, known)}"
            if kind not in known
            else "its address is missing"
        )
        raise BundleError(f"{what} has no usable source: {hint}.")
    return _check(source)


def _check(source: Source) -> Source:
    """Nothing in it may be read as an option or lead out of what is fetched."""
    parts = source.path.replace("\\", "/").split("/")
    address = source.address
    wrong = (
        source.kind != "directory" and not (_ADDRESS.fullmatch(address) or _SCP.fullmatch(address)),
        source.ref and not _REF.fullmatch(source.ref),
        source.sha and not _SHA.fullmatch(source.sha),
        source.path.startswith(("/", "-")) or ".." in parts,
    )
    if any(wrong):
        raise BundleError(
            f"The source {source.describe()!r} cannot be used: an address, branch or path in it is malformed."
        )
    return source
