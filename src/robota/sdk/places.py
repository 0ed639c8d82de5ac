"""Where things are: the directory somebody works in, and the homes of settings, skills and agents.

Everything that reads files gets a `Places`, so that a server may ignore its own home and a test has one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from robota.core.errors import ConfigurationError


class Places(Struct, frozen=True, kw_only=True):
    """Absolute paths; none of them needs to exist but `cwd`."""

    cwd: str
    home: str
    """The user's home directory."""
    robota_home: str
    """`$ROBOTA_HOME`, else `~/.robota`."""
    claude_home: str
    """`$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    def project(self, *parts: str) -> str:
        """A path below the working directory, such as `project(".robota", "settings.json")`."""
        return os.path.join(self.cwd, *parts)

    def user(self, *parts: str) -> str:
        """A path below robota's home."""
        return os.path.join(self.robota_home, *parts)

    def claude(self, *parts: str) -> str:
        """A path below the home of `.claude` files."""
        return os.path.join(self.claude_home, *parts)

    def locate(self, text: str) -> str:
        """A path as people write it, absolute."""
        at_home = text == "~" or text.startswith("~/")
        return os.path.normpath(os.path.join(self.cwd, self.home + text[1:] if at_home else text))

    def shown(self, path: str) -> str:
        """A path as people write it: relative to the working directory, or with `~`."""
        for root, prefix in ((self.cwd, ""), (self.home, "~/")):
            if path.startswith(root.rstrip(os.sep) + os.sep):
                return prefix + path[len(root.rstrip(os.sep)) + 1 :]
        return path


def find_places(
    cwd: str | os.PathLike[str] | None = None, environment: Mapping[str, str] = os.environ
) -> Places:
    """The places of somebody who works in `cwd`, by default the working directory."""
    try:
        where = os.path.abspath(os.getcwd() if cwd is None else os.fspath(cwd))
    except OSError as error:
        raise ConfigurationError(
            f"The working directory cannot be used ({error.strerror}): change to another one."
        ) from error
    if not os.path.isdir(where):
        raise ConfigurationError(
            f"The working directory {where} does not exist: create it or choose another."
        )
    home = os.path.abspath(environment.get("HOME") or os.path.expanduser("~"))
    robota_home = environment.get("ROBOTA_HOME") or os.path.join(home, ".robota")
    claude_home = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    return Places(
        cwd=where,
        home=home,
        robota_home=os.path.abspath(robota_home),
        claude_home=os.path.abspath(claude_home),
    )
