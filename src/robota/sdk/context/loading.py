"""All that is known about a project before the first prompt: instructions, rules, its kind."""

from __future__ import annotations

import os

from msgspec import Struct

from robota.core.messages import JsonObject
from robota.sdk.context.instructions import InstructionFile, InstructionReader, Reading, list_places
from robota.sdk.context.markdown import find_compact_instructions
from robota.sdk.context.project import ProjectFacts, detect_project
from robota.sdk.problems import Problem


class ProjectContext(Struct, frozen=True, kw_only=True):
    """What `load_context` found."""

    reading: Reading
    """How it was read, so that what is found later is read alike."""
    files: tuple[InstructionFile, ...] = ()
    """What the model is told from the beginning, the most general first."""
    rules: tuple[InstructionFile, ...] = ()
    """Rules for some files, which it is told when it comes to those."""
    project: ProjectFacts = ProjectFacts()
    has_repository: bool = False
    """The working directory belongs to a git repository."""
    compact_instructions: str = ""
    """What summaries of conversations about this project should mind."""
    outside_imports: tuple[str, ...] = ()
    """Files outside the project that its instructions import, and that were left out for want of consent."""
    problems: tuple[Problem, ...] = ()

    def describe(self) -> JsonObject:
        """For the journal: which files were read. Their texts are in the system prompt."""
        return {
            "files": [
                {"path": file.path, "kind": file.kind, "source": file.source, "size": file.size}
                for file in (*self.files, *self.rules)
            ],
            "project": self.project.type,
            "problems": [str(problem) for problem in self.problems],
        }


def load_context(reading: Reading) -> ProjectContext:
    """Read the user's own instructions, then those of each directory from the root down to the working
    directory. Nothing is started, and nothing is read that the project only points to."""
    reader = InstructionReader(reading)
    reader.read_user_files()
    ancestors = list_ancestors(reading.places.cwd)
    for directory in ancestors:
        reader.read_directory(directory)
    project = detect_project(reading.places.cwd)
    told = tuple(file for file in reader.files if not file.paths)
    found = (find_compact_instructions(file.text) for file in told)
    return ProjectContext(
        reading=reading,
        files=told,
        rules=tuple(file for file in reader.files if file.paths),
        project=project,
        has_repository=any(os.path.exists(os.path.join(each, ".git")) for each in ancestors),
        compact_instructions="\n\n".join(filter(None, found)),
        outside_imports=tuple(reader.outside),
        problems=(*reader.problems, *project.problems),
    )


def list_watched(context: ProjectContext) -> list[str]:
    """The paths that decide what `load_context` finds."""
    places = context.reading.places
    own = [places.user("AGENTS.md"), places.claude("CLAUDE.md"), places.claude("rules")]
    found = [path for directory in list_ancestors(places.cwd) for path in list_places(directory)]
    return list(dict.fromkeys([*own, *found, *(file.path for file in (*context.files, *context.rules))]))


def list_ancestors(directory: str) -> list[str]:
    """The directories from the file system's root to this one."""
    found = [directory]
    while (parent := os.path.dirname(found[-1])) != found[-1]:
        found.append(parent)
    return found[::-1]
