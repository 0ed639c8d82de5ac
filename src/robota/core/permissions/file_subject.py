"""A call about files: reading, searching or writing them."""

from __future__ import annotations

from robota.core.permissions.calls import (
    PATH_ARGUMENTS,
    READING_TOOLS,
    SEARCHING_TOOLS,
    WRITING_TOOLS,
    Call,
    Cover,
    Gap,
    Hit,
    has_controls,
    parameter_hit,
    text_argument,
)
from robota.core.permissions.paths import (
    DeniedPaths,
    PathForms,
    anchor_pattern,
    covers,
    in_workspace,
    is_protected,
    resolve,
)
from robota.core.permissions.rules import Rule, text_glob


class FileSubject:
    def __init__(self, call: Call) -> None:
        self._call = call
        self.searches = call.tool in SEARCHING_TOOLS
        self.problem: str | None = None
        self.paths: list[tuple[str, PathForms]] = []
        for path in self._written_paths():
            self._add(path)
        if not self.paths and self.problem is None:
            self.problem = "the path is missing"

    def _written_paths(self) -> list[str]:
        arguments = self._call.arguments
        given = [arguments[name] for name in PATH_ARGUMENTS if arguments.get(name) is not None]
        if any(not isinstance(path, str) or not path for path in given):
            self.problem = "the path is not a text"
        paths = [path for path in given if isinstance(path, str) and path]
        if not self.searches:
            return paths
        roots = paths or ["."]
        prefix = _fixed_prefix(text_argument(arguments, "pattern") or "") if self._call.tool == "Glob" else ""
        file_glob = text_argument(arguments, "glob") or ""
        if self._call.tool == "Grep" and file_glob and not set(file_glob) & set("*?[{!"):
            prefix = file_glob
        return [
            root.rstrip("/") + "/" + prefix
            if prefix and not prefix.startswith(("/", "~"))
            else prefix or root
            for root in roots
        ]

    def _add(self, path: str) -> None:
        if has_controls(path):
            self.problem = "the path holds control or direction-changing characters"
        try:
            self.paths.append((path, resolve(path, self._call.place.cwd, self._call.place.home)))
        except (OSError, ValueError):
            self.problem = "the path cannot be resolved"

    def hit(self, rule: Rule) -> Hit | None:
        if not self._concerns(rule):
            return None
        pattern = rule.pattern
        if pattern is None:
            return Hit(self._shown)
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        if self.searches and rule.names(self._call.tool):
            wanted = text_argument(self._call.arguments, "pattern")
            if wanted is not None and text_glob(pattern).matches(wanted):
                return Hit(wanted)
        denied = DeniedPaths(anchor_pattern(pattern, self._call.place), self._call.place)
        for path, forms in self.paths:
            if denied.hits(forms, directory=self.searches):
                return Hit(path)
        problem = self.problem
        if problem is None and rule.names(self._call.tool):
            problem = self._missing_pattern
        if problem is not None:
            return Hit(self._shown, certain=False, reason=problem)
        return None

    @property
    def _missing_pattern(self) -> str | None:
        needed = self._call.tool in ("Grep", "Glob")
        if not needed or text_argument(self._call.arguments, "pattern") is not None:
            return None
        return "the pattern is missing or is not a text"

    def _concerns(self, rule: Rule) -> bool:
        """A Read rule binds searching and writing too, Write and Edit rules bind each other."""
        tool, writes = self._call.tool, self._call.tool_class == "modify" or self._call.tool in WRITING_TOOLS
        if rule.names(tool):
            return True
        if any(rule.names(each) for each in READING_TOOLS):
            return not writes or rule.pattern is not None
        return writes and any(rule.names(each) for each in WRITING_TOOLS)

    @property
    def _shown(self) -> str | None:
        return self.paths[0][0] if self.paths else None

    def cover(self) -> Cover | Gap:
        if self.problem is not None:
            return Gap(self._shown, self.problem)
        for rule in self._call.allow.rules:
            if rule.names(self._call.tool) and all(self._covers(rule, forms) for _, forms in self.paths):
                return Cover(rule.text, self._shown)
        return Gap(self._shown, "no rule allows it")

    def _covers(self, rule: Rule, forms: PathForms) -> bool:
        if rule.pattern is None:
            return not is_protected(forms)
        return covers(anchor_pattern(rule.pattern, self._call.place), forms, self._call.place)

    def mode_gap(self) -> Gap | None:
        """`acceptEdits` reaches the workspace and no protected file."""
        if self._call.mode != "acceptEdits" or self._call.tool_class != "modify":
            return None
        if self.problem is not None:
            return Gap(self._shown, self.problem)
        for path, forms in self.paths:
            if not in_workspace(forms, self._call.place):
                return Gap(path, "the file is outside the workspace")
            if is_protected(forms):
                return Gap(path, "the file decides what runs later and is protected")
        return None


def _fixed_prefix(pattern: str) -> str:
    """The directories of a search pattern before its first wildcard; a pattern without any is a path."""
    components = pattern.split("/")
    for index, component in enumerate(components):
        if set(component) & set("*?[{"):
            return "/".join(components[:index])
    return pattern
