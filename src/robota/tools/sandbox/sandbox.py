"""The sandbox of one agent: which kind works here, and command lines wrapped in it."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from robota.core.errors import ConfigurationError, ToolExecutionError
from robota.core.given import require_texts
from robota.core.ports import new_uuid
from robota.core.process import ProcessResult, run_process
from robota.tools.sandbox.bubblewrap import Placeholders, find_bubblewrap, wrap_in_bubblewrap
from robota.tools.sandbox.landlock import MINIMUM_ABI, landlock_abi
from robota.tools.sandbox.policy import Network, SandboxPolicy, workspace_policy

SandboxMode: TypeAlias = Literal["off", "auto", "required"]
"""`auto` uses a sandbox that works and says if there is none; `required` then runs nothing."""
Backend: TypeAlias = Literal["bubblewrap", "landlock"]

BACKENDS: tuple[Backend, ...] = ("bubblewrap", "landlock")
_LAUNCH = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from robota.tools.sandbox.__main__ import main; main(sys.argv[2:])"
)
_PACKAGES = os.path.abspath(__file__).removesuffix("robota/tools/sandbox/sandbox.py")
_PROBE_SECONDS = 20.0
_PROBE_SCRIPT = """
echo probe > "$1/allowed/file"
mkdir "$1/missing"
echo probe > "$1/fixed"
for path in "${@:3}"; do echo probe > "$path"; done
exec 3<>"/dev/tcp/127.0.0.1/$2"
"""


class Confinement(Struct, frozen=True, kw_only=True):
    """A command line ready to run, confined or not."""

    argv: list[str]
    env: dict[str, str]
    backend: Backend | None = None
    """`None` when it runs as it is."""
    policy: SandboxPolicy | None = None
    note: str | None = None
    """What the user should know, said once."""
    release: Callable[[], None] = lambda: None
    """To be called when the command has ended; one that runs as it is holds nothing."""


class Sandbox:
    """Confines commands to the workspace they work in; the options are those of `workspace_policy`.

    The kinds in `backends` are tried once, in this order, by running a command under each.
    """

    def __init__(
        self,
        mode: SandboxMode,
        *,
        additional_dirs: Sequence[str] = (),
        read_only: Sequence[str] = (),
        deny_read: Sequence[str] = (),
        network: Network = "off",
        home: str | None = None,
        backends: Sequence[Backend] = BACKENDS,
    ) -> None:
        if mode not in ("off", "auto", "required"):
            raise ConfigurationError(f"sandbox must be 'off', 'auto' or 'required', not {mode!r}.")
        if network not in ("off", "on"):
            raise ConfigurationError(f"The network of a sandbox is 'off' or 'on', not {network!r}.")
        self.mode = mode
        self.network = network
        self.backends = tuple(backends)
        self._make_policy = partial(
            workspace_policy,
            additional_dirs=require_texts("additional_dirs", additional_dirs),
            read_only=require_texts("read_only", read_only),
            deny_read=require_texts("deny_read", deny_read),
            network=network,
            home=home,
        )
        self._found: tuple[Backend | None, str] | None = None
        self._lock = anyio.Lock()
        self._noted: set[str] = set()
        self._tmp: str | None = None

    async def find_backend(self) -> tuple[Backend | None, str]:
        """The kind that works here; if none does, why."""
        async with self._lock:
            if self._found is None:
                self._found = await self._probe()
            return self._found

    async def confine(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Confinement:
        """The command line under the sandbox, or as it is where the mode allows that.

        Raises `ToolExecutionError` when it must not run.
        """
        if self.mode == "off":
            return Confinement(argv=list(argv), env=dict(env))
        backend, reason = await self.find_backend()
        if backend is None:
            return self._do_without(argv, env, reason)
        with ExitStack() as undo:
            placeholders = undo.enter_context(Placeholders())
            try:
                policy = await to_thread.run_sync(self._make_policy, cwd, self._private_tmp())
                wrapped = await to_thread.run_sync(_wrap, backend, argv, cwd, policy, placeholders)
            except (OSError, ValueError) as error:
                raise ToolExecutionError(f"The command was not run: no sandbox for it, {error}.") from error
            undo.pop_all()
        return Confinement(
            argv=wrapped,
            env={**env, "TMPDIR": policy.tmp},
            backend=backend,
            policy=policy,
            release=placeholders.release,
        )

    def _do_without(self, argv: Sequence[str], env: Mapping[str, str], reason: str) -> Confinement:
        if self.mode == "required":
            raise ToolExecutionError(
                f"The command was not run: the sandbox is required, and none works here ({reason}). "
                "Install bubblewrap, or set the sandbox to 'auto' or 'off'."
            )
        note = None if reason in self._noted else f"Commands run without a sandbox: {reason}."
        self._noted.add(reason)
        return Confinement(argv=list(argv), env=dict(env), note=note)

    async def _probe(self) -> tuple[Backend | None, str]:
        faults = []
        for backend in self.backends:
            fault = await find_fault(partial(_wrap, backend), self.network)
            if fault is None:
                return backend, ""
            faults.append(f"{backend}: {fault}")
        return None, "; ".join(faults) or "no kind of sandbox is allowed"

    def _private_tmp(self) -> str:
        """Made with the first command, removed with this object or at the end of the program."""
        if self._tmp is None:
            self._tmp = tempfile.mkdtemp(prefix="robota-")
            weakref.finalize(self, shutil.rmtree, self._tmp, ignore_errors=True)
        return self._tmp


def _wrap(
    backend: Backend, argv: Sequence[str], cwd: str, policy: SandboxPolicy, placeholders: Placeholders
) -> list[str]:
    """Raises OSError or ValueError when this kind of sandbox is not to be had."""
    if backend == "bubblewrap":
        program = find_bubblewrap(policy)
        if program is None:
            raise OSError("it is not installed")
        return wrap_in_bubblewrap(program, argv, cwd, policy, placeholders)
    abi = landlock_abi()
    if abi < MINIMUM_ABI:
        raise OSError(f"this kernel offers version {abi} of it, and {MINIMUM_ABI} is needed")
    data = msgspec.json.encode(policy).decode()
    # Isolated and without site packages: nothing in the workspace can take the place of a module of ours.
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, _PACKAGES, "--policy", data, "--", *argv]


Wrap: TypeAlias = Callable[[Sequence[str], str, SandboxPolicy, Placeholders], list[str]]
"""A command line under a policy: `argv`, working directory, policy, placeholders."""


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
            result = await run_process(argv, cwd=trial.root, timeout=_PROBE_SECONDS)
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
        return ["bash", "-c", _PROBE_SCRIPT, "probe", self.root, port, *self.outside]

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
