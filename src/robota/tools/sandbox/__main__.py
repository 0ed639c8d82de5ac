"""The Landlock launcher: `python -m robota.tools.sandbox --policy JSON -- command …`.

It confines itself and becomes the command: no code of ours runs between fork and exec of a threaded program.
The policy has the fields of `SandboxPolicy`. If it cannot be applied, the command does not run.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

from robota.tools.sandbox.landlock import (
    INTERNET,
    NETWORK_ABI,
    allow_sockets,
    can_filter,
    confine,
    landlock_abi,
)

REFUSED = 125
"""The exit code when the sandbox could not be set up."""


def main(arguments: list[str]) -> NoReturn:
    if len(arguments) < 4 or arguments[0] != "--policy" or arguments[2] != "--":
        _refuse("usage: python -m robota.tools.sandbox --policy JSON -- command …")
    try:
        policy: dict[str, Any] = json.loads(arguments[1])
        network = policy.get("network", "off") == "on"
        if not network and not can_filter() and landlock_abi() < NETWORK_ABI:
            _refuse("this kernel cannot keep commands off the network")
        confine(
            policy["writable"],
            policy.get("read_only_even_if_missing", ()),
            policy.get("deny_read", ()),
            network=network,
        )
        if can_filter():
            allow_sockets(INTERNET if network else ())
    except (OSError, ValueError, KeyError, AttributeError) as error:
        _refuse(str(error))
    command = arguments[3:]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _refuse(f"could not start {command[0]!r}: {error.strerror}")


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"robota sandbox: {reason}; nothing was run.\n")
    sys.exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
