"""Whether a sandbox really holds: a command in it tries what it must not do, and we look what came of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory
from typing import TypeAlias

from anyio import to_thread

from robota.core.ports import new_uuid
from robota.core.process import ProcessResult, run_process
from robota.tools.sandbox.placeholder import Placeholders
from robota.tools.sandbox.policy import Network, SandboxPolicy

Wrap: TypeAlias = Callable[[Sequence[str], str, SandboxPolicy, Placeholders], list[str]]
"""A command line under a policy: `argv`, working directory, policy, placeholders."""

_SECONDS = 20.0
_SCRIPT = """
echo probe > "$1/allowed/file"
mkdir "$1/missing"
echo probe > "$1/fixed"
for path in "${@:3}"; do echo probe > "$path"; done
exec 3<>"/dev/tcp/127.0.0.1/$2"
"""


async def find_fault(wrap: Wrap, network: Network) -> str | None:
    """Run the probe; what is wrong with this way to confine commands, `None` if nothing is."""
    with (
        TemporaryDirectory(prefix="robota-probe-") as directory,
        socket.create_server(("127.0.0.1", 0)) as server,
        Placeholders() as placeholders,
    ):
        trial = _Trial(directory, server, network)
        command = trial.command
        try:
            argv = await to_thread.run_sync(wrap, command, trial.root, trial.policy, placeholders)
            result = await run_process(argv, cwd=trial.root, timeout=_SECONDS)
        except (OSError, ValueError) as error:
            return str(error)
        finally:
            escaped = trial.remove_what_escaped()
        placeholders.release()
        return escaped or trial.judge(result)


class _Trial:
    """A small workspace, and names outside in directories where we ourselves could create files."""

    def __init__(self, directory: str, server: socket.socket, network: Network) -> None:
        self.root = os.path.realpath(directory)
        self.server = server
        self.network = network
        name = f".robota-probe-{new_uuid()}"
        self.outside = [
            os.path.join(directory, name)
            for directory in ("/var/tmp", os.path.expanduser("~"))
            if os.access(directory, os.W_OK)
        ]
        os.mkdir(self.path("allowed"))
        os.mkdir(self.path("tmp"))
        open(self.path("fixed"), "x", encoding="utf-8").close()
        server.setblocking(False)

    def path(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    @property
    def policy(self) -> SandboxPolicy:
        return SandboxPolicy(
            writable=(self.root, self.path("tmp")),
            tmp=self.path("tmp"),
            read_only_even_if_missing=(self.path("fixed"), self.path("missing")),
            network=self.network,
        )

    @property
    def command(self) -> list[str]:
        port = str(self.server.getsockname()[1])
        return ["bash", "-c", _SCRIPT, "probe", self.root, port, *self.outside]

    def remove_what_escaped(self) -> str | None:
        escaped = [path for path in self.outside if os.path.lexists(path)]
        for path in escaped:
            os.unlink(path)
        return f"a command could write to {os.path.dirname(escaped[0])}" if escaped else None

    def judge(self, result: ProcessResult) -> str | None:
        if not os.path.exists(self.path("allowed", "file")):
            return result.error or result.stderr.strip().partition("\n")[0] or "a command did not run"
        if os.path.getsize(self.path("fixed")) or os.path.lexists(self.path("missing")):
            return "a command could change protected files"
        try:
            self.server.accept()[0].close()
        except BlockingIOError:
            return None
        return None if self.network == "on" else "a command could reach the network"
