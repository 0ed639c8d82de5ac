"""Skills that are about certain files (`paths:`): the model is told of one when it touches such a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from robota._lazy_pattern import lazy_pattern
from robota.core.events import ToolEnded
from robota.sdk.context.nested import find_touched
from robota.sdk.context.path_globs import compile_globs, read_globs
from robota.sdk.context.reminders import Reminders, remind
from robota.sdk.skills.skill import Skill

if TYPE_CHECKING:
    from robota.sessions.session import Session

_OFFER = (
    "There is a skill for files such as {path}. When it fits, call it with the Skill tool:\n- {name}: {about}"
)
_OFFERED = lazy_pattern(r"There is a skill for files such as .*\n- (?P<name>.*?): ")


class SkillOffers:
    """What one session was told of that kind; the conversation itself knows it."""

    def __init__(self, session: Session, skills: Callable[[], Iterable[Skill]]) -> None:
        self._session = session
        self._skills = skills
        self._known: Iterable[Skill] | None = None
        self._about_files: list[Skill] = []
        """Those of `_known` that have to be offered."""
        self._reminders = Reminders(session)
        session.events.on(ToolEnded, self._look_at_call)

    def _look_at_call(self, event: ToolEnded) -> None:
        skills = self._skills()
        if skills is not self._known:
            self._known = skills
            self._about_files = [skill for skill in skills if skill.for_model and skill.paths]
        if not self._about_files:
            return
        self._reminders.look()
        told = {found["name"] for found in map(_OFFERED.match, self._reminders.words) if found}
        cwd = self._session.cwd
        paths = [os.path.relpath(os.path.join(cwd, path), cwd) for path in find_touched(self._session, event)]
        for skill in self._about_files:
            globs, _ = read_globs(list(skill.paths))
            matches = compile_globs(globs)
            path = next(filter(matches, paths), None)
            if path is not None and skill.name not in told:
                about = f"{skill.description} {skill.when_to_use}".strip()
                remind(self._session, _OFFER.format(path=path, name=skill.name, about=about))
