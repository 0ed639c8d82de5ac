"""The one way in which git is run here: for its answer, never for what a repository would have it run.

Hooks, file monitors and the programs that convert files come from the configuration inside of a repository,
which nobody was asked about. Those that the user's own configuration names are the user's, and do run.
"""

from __future__ import annotations

import os

from robota.core.errors import ConfigurationError
from robota.core.process import OUTPUT_LIMIT, ProcessResult, clean_environment, run_process

_PLAIN = (
    "git", "--no-pager", "--no-optional-locks",
    "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit",
    "-c", "submodule.recurse=false",
)  # fmt: skip
_VARIABLES = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
"""No remote is contacted: how that is done is configured in the repository too."""
_OFF = {
    "filter": ("clean=", "smudge=", "process=", "required=false"),
    "hook": ("command=", "enabled=false"),
}
"""What makes git run a program by a name of the repository's own, and how that is turned off."""
_OWN = frozenset(("global", "system"))
_LIST = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^(filter|hook)\.")
_NO_MATCH = 1
_STDOUT = 1
_MAX_NAMES = 1 << 16


async def run_git(
    cwd: str, *arguments: str, timeout: float, output_limit: int = OUTPUT_LIMIT
) -> ProcessResult:
    """What git answers. A repository that cannot be kept from running programs raises."""
    variables = git_environment()
    listed = bytearray()  # as it is: what is shown of an output has no control characters, and names may

    def collect(stream: int, data: bytes) -> None:
        if stream == _STDOUT:
            listed.extend(data[: _MAX_NAMES - len(listed)])

    found = await run_process([*_PLAIN, *_LIST], cwd=cwd, env=variables, timeout=timeout, on_output=collect)
    if found.error is not None or found.exit_code not in (0, _NO_MATCH):
        return found
    options = [option for name in _find_foreign(bytes(listed)) for option in _turn_off(name)]
    return await run_process(
        [*_PLAIN, *options, *arguments], cwd=cwd, env=variables, timeout=timeout, output_limit=output_limit
    )


def plain_command(*arguments: str) -> list[str]:
    """A command line for what compares no content, and so calls for no filter: the list of files, say."""
    return [*_PLAIN, *arguments]


def git_environment() -> dict[str, str]:
    """The variables that git gets."""
    variables = {name: value for name, value in clean_environment().items() if not name.startswith("GIT_")}
    return variables | _VARIABLES


def _find_foreign(listed: bytes) -> list[str]:
    """The keys that are not the user's own, from pairs of scope and key."""
    if len(listed) == _MAX_NAMES:
        raise ConfigurationError("The repository's configuration names too many programs to turn off.")
    words = os.fsdecode(listed).split("\0")
    return sorted({key for scope, key in zip(words[::2], words[1::2], strict=False) if scope not in _OWN})


def _turn_off(key: str) -> list[str]:
    """Options against the driver that a key, such as `filter.lfs.smudge`, is about."""
    driver = key.rpartition(".")[0]
    if "=" in driver:  # where the name ends could not be told
        raise ConfigurationError(
            f"The repository's configuration has a program {driver!r}, which cannot be turned off: rename it "
            "without `=`."
        )
    return [word for off in _OFF[driver.partition(".")[0]] for word in ("-c", f"{driver}.{off}")]
