"""`$ENV:NAME` in settings: what it stands for, looked up after the merge.

Only whole values are references. A project's files get no credentials by them, as its commands do not, unless
the user's `passEnv` names the variable.
"""

from __future__ import annotations

from collections.abc import Mapping

from robota.core.credentials import (
    ENV_REFERENCE_PREFIX,
    is_credential,
    is_env_reference,
    resolve_env_reference,
)
from robota.core.messages import Json
from robota.sdk.problems import Problem
from robota.sdk.settings.layers import Layer
from robota.sdk.settings.merge import Merged, make_printable

_NEVER_RESOLVED = ("permissions", "hooks")
"""Rules and commands mean what is written; a command reads its variables itself."""


class References:
    def __init__(self, merged: Merged, layers: tuple[Layer, ...], environment: Mapping[str, str]) -> None:
        self._merged = merged
        self._environment = environment
        self._of_project = {layer.path for layer in layers if layer.of_project}
        self._passed = merged.values.get("passEnv") or ()

    def is_secret(self, name: str) -> bool:
        """Whether a variable is a credential that the user does not pass on."""
        return name not in self._passed and is_credential(name, self._environment.get(name, ""))

    def resolve_all(self) -> dict[str, Json]:
        """All values with references resolved."""
        return {
            name: value if name.startswith(_NEVER_RESOLVED) else self._resolve(value, (name,))
            for name, value in self._merged.values.items()
        }

    def _resolve(self, value: Json, path: tuple[str, ...]) -> Json:
        if isinstance(value, dict):
            return {name: self._resolve(each, (*path, name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self._resolve(each, path) for each in value]
        if not is_env_reference(value) or (path[0] == "providers" and path[-1] == "apiKey"):
            return value  # keys stay references until a provider is made
        return self._look_up(value, path)

    def _look_up(self, written: str, path: tuple[str, ...]) -> str:
        name = written.removeprefix(ENV_REFERENCE_PREFIX).strip()
        stands_for = resolve_env_reference(written, self._environment)
        sources = self._merged.origins.get(".".join(path)) or self._merged.origins[path[0]]
        if stands_for is None:
            reason = f"the variable {name} is not set"
        elif self.is_secret(name) and not self._of_project.isdisjoint(sources):
            reason = (
                f"the variable {name} is a credential, which a project gets only if your passEnv names it"
            )
        else:
            return stands_for
        message = make_printable(f"{reason}, so the reference stays as it is.")
        subject = make_printable(".".join(path))
        self._merged.problems.append(Problem(sources[-1], message, subject=subject))
        return written
