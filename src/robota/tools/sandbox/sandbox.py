"""The sandbox of one agent: which kind works here, and command lines wrapped in it."""

from __future__ import annotations

import asyncio
import os
import socket
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from anyio import to_thread
from msgspec import Struct

from robota.core.errors import ConfigurationError, ToolExecutionError
from robota.core.given import require_texts
from robota.core.ports import new_uuid
from robota.core.process import ProcessResult, Start, run_process
from robota.tools.sandbox.bubblewrap import Placeholders, find_bubblewrap, wrap_in_bubblewrap
from robota.tools.sandbox.policy import (
    Caches,
    Network,
    Protection,
    SandboxPolicy,
    find_caches,
    workspace_policy,
)
from robota.tools.sandbox.refusal import take_back

if TYPE_CHECKING:
    from robota.tools.sandbox.fork_server import ForkServer

SandboxMode: TypeAlias = Literal["off", "auto", "required"]
"""`auto` uses a sandbox that works and says if there is none; `required` then runs nothing."""
Backend: TypeAlias = Literal["bubblewrap", "landlock"]

BACKENDS: tuple[Backend, ...] = ("bubblewrap", "landlock")
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
    start: Start | None = None
    """A quicker way to start the same from this process, where there is one."""
    backend: Backend | None = None
    """`None` when it runs as it is."""
    policy: SandboxPolicy | None = None
    may_leave: bool = False
    """Whether a call may ask to run outside."""
    note: str | None = None
    """What the user should know, said once."""
    release: Callable[[], Sequence[str]] = tuple
    """To be called when the command has ended; what had to be put right then, in a sentence each."""


class Sandbox:
    """Confines commands to the workspace they work in; the options are those of `workspace_policy`.

    The kinds in `backends` are tried once, in this order, by running a command under each. What may change
    while a session lasts (`additional_dirs`, `network`) can be a function. `auto` prefers work that succeeds:
    under Landlock, which knows no exceptions, it lets commands change protected files of the workspace
    (`holds_protected` says so), where `required` lets them make nothing beside one.
    """

    def __init__(
        self,
        mode: SandboxMode,
        *,
        additional_dirs: Sequence[str] | Callable[[], Sequence[str]] = (),
        read_only: Sequence[str] = (),
        deny_read: Sequence[str] = (),
        network: Network | Callable[[], Network] = "off",
        home: str | None = None,
        backends: Sequence[Backend] = BACKENDS,
    ) -> None:
        if mode not in ("off", "auto", "required"):
            raise ConfigurationError(f"sandbox must be 'off', 'auto' or 'required', not {mode!r}.")
        if not callable(network) and network not in ("off", "on"):
            raise ConfigurationError(f"The network of a sandbox is 'off' or 'on', not {network!r}.")
        self.mode = mode
        self.backends = tuple(backends)
        self._network = network
        self._additional_dirs = (
            additional_dirs
            if callable(additional_dirs)
            else require_texts("additional_dirs", additional_dirs)
        )
        self._home = os.path.realpath(os.path.expanduser("~") if home is None else home)
        self._make_policy = partial(
            workspace_policy,
            read_only=require_texts("read_only", read_only),
            deny_read=require_texts("deny_read", deny_read),
            home=self._home,
        )
        self._lasting = Placeholders()
        weakref.finalize(self, _unless_forked, os.getpid(), self._lasting.release)
        self._caches: Caches | None = None
        self._found: tuple[Backend | None, str] | None = None
        self._lock = asyncio.Lock()
        self._noted: set[str] = set()
        self._tmp: str | None = None
        self._forks: ForkServer | None = None

    async def find_backend(self) -> tuple[Backend | None, str]:
        """The kind that works here; if none does, why."""
        async with self._lock:
            if self._found is None:
                self._found = await self._probe()
            return self._found

    @property
    def network(self) -> Network:
        return self._network() if callable(self._network) else self._network

    async def holds_protected(self) -> bool:
        """Whether a sandbox works here that keeps commands from changing protected files."""
        backend, _ = await self.find_backend()
        return backend is not None and self._protection(backend, lasting=False) != "none"

    async def confine(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        *,
        workspace: str | None = None,
        lasting: bool = False,
    ) -> Confinement:
        """The command line under the sandbox, or as it is where the mode allows that.

        It starts in `cwd` and may write in `workspace`, which is the same if it is not given. `lasting` says
        that nobody waits for its end. Raises `ToolExecutionError` when it must not run.
        """
        if self.mode == "off":
            return Confinement(argv=list(argv), env=dict(env))
        backend, reason = await self.find_backend()
        if backend is None:
            return self._do_without(argv, env, reason)
        with ExitStack() as undo:
            placeholders = undo.enter_context(Placeholders(self._lasting))
            try:
                protection = self._protection(backend, lasting=lasting)

                def prepare() -> tuple[SandboxPolicy, Wrapped]:
                    policy = self._policy(workspace or cwd, protection)
                    return policy, self._wrap(backend, argv, cwd, policy, placeholders)

                policy, wrapped = await to_thread.run_sync(prepare)
            except (OSError, ValueError) as error:
                raise ToolExecutionError(f"The command was not run: no sandbox for it, {error}.") from error
            undo.pop_all()
        return Confinement(
            argv=wrapped.argv,
            start=wrapped.start,
            env={**env, **self._find_caches().variables, "TMPDIR": policy.tmp},
            backend=backend,
            policy=policy,
            may_leave=self.mode == "auto",
            release=partial(_let_go, policy, placeholders),
        )

    def _protection(self, backend: Backend, *, lasting: bool) -> Protection:
        if backend == "landlock":
            return "all" if self.mode == "required" else "none"
        return "all" if lasting else "existing"

    def _policy(self, workspace: str, protection: Protection) -> SandboxPolicy:
        added = self._additional_dirs
        return self._make_policy(
            workspace,
            self._private_tmp(),
            additional_dirs=tuple(added() if callable(added) else added),
            caches=self._find_caches().writable,
            network=self.network,
            protection=protection,
        )

    def _find_caches(self) -> Caches:
        if self._caches is None:
            self._caches = find_caches(self._home, os.environ, self._private_tmp())
        return self._caches

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
            fault = await find_fault(partial(self._wrap, backend), self.network)
            if fault is None:
                return backend, ""
            faults.append(f"{backend}: {fault}")
        return None, "; ".join(faults) or "no kind of sandbox is allowed"

    def _wrap(
        self, backend: Backend, argv: Sequence[str], cwd: str, policy: SandboxPolicy, held: Placeholders
    ) -> Wrapped:
        """Raises OSError or ValueError when this kind of sandbox is not to be had."""
        if backend == "landlock":
            return self._wrap_in_landlock(argv, policy)
        program = find_bubblewrap(policy)
        if program is None:
            raise OSError("it is not installed")
        return Wrapped(wrap_in_bubblewrap(program, argv, cwd, policy, held))

    def _wrap_in_landlock(self, argv: Sequence[str], policy: SandboxPolicy) -> Wrapped:
        from robota.tools.sandbox.fork_server import ForkServer, launcher_command  # noqa: PLC0415
        from robota.tools.sandbox.landlock import MINIMUM_ABI, landlock_abi  # noqa: PLC0415 - loads ctypes

        abi = landlock_abi()
        if abi < MINIMUM_ABI:
            raise OSError(f"this kernel offers version {abi} of it, and {MINIMUM_ABI} is needed")
        self._forks = self._forks or ForkServer()
        places = {
            "--write": policy.writable,
            "--keep": policy.read_only_even_if_missing,
            "--hide": policy.deny_read,
            "--network": (policy.network,),
        }
        words = [word for option, values in places.items() for value in values for word in (option, value)]
        command = launcher_command("main(sys.argv[2:])", *words, "--", *argv)
        return Wrapped(command, partial(self._forks.start, places, argv))

    def _private_tmp(self) -> str:
        """Made with the first command, removed with this object or at the end of the program."""
        if self._tmp is None:
            from tempfile import mkdtemp  # noqa: PLC0415 - with the first command

            self._tmp = mkdtemp(prefix="robota-")
            weakref.finalize(self, _unless_forked, os.getpid(), remove_tree, self._tmp)
        return self._tmp


def _unless_forked(owner: int, action: Callable[..., object], *arguments: object) -> None:
    """What a process cleans up at its end is not for its forks to clean up at theirs."""
    if os.getpid() == owner:
        action(*arguments)


def _let_go(policy: SandboxPolicy, placeholders: Placeholders) -> list[str]:
    placeholders.release()
    try:
        moved = take_back(policy.refused)
    except OSError as error:
        return [f"{error.filename} decides what runs later and could not be moved away: {error.strerror}."]
    return [f"{path} decides what runs later: it was renamed to {place}." for path, place in moved]


def remove_tree(root: str) -> None:
    """Remove a directory with everything in it. Some caches are read-only directories, which hold their
    entries until that is changed; what lies around the directory is not ours to change."""
    import shutil  # noqa: PLC0415 - when somebody leaves something to remove

    def remove_anyway(remove: Callable[[str], object], path: str, _: object) -> None:
        with suppress(OSError):
            if path != root:
                os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            remove(path)

    shutil.rmtree(root, onerror=remove_anyway)


class Wrapped(NamedTuple):
    """A command line in a sandbox."""

    argv: list[str]
    start: Start | None = None


Wrap: TypeAlias = Callable[[Sequence[str], str, SandboxPolicy, Placeholders], Wrapped]
"""A command line under a policy: `argv`, working directory, policy, placeholders."""


async def find_fault(wrap: Wrap, network: Network) -> str | None:
    """Run the probe; what is wrong with this way to confine commands, `None` if nothing is."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - before the first command

    with (
        TemporaryDirectory(prefix="robota-probe-") as directory,
        socket.create_server(("127.0.0.1", 0)) as server,
        Placeholders() as placeholders,
    ):
        trial = _Trial(directory, server, network)
        command = trial.command
        try:
            wrapped = await to_thread.run_sync(wrap, command, trial.root, trial.policy, placeholders)
            result = await run_process(
                wrapped.argv, cwd=trial.root, timeout=_PROBE_SECONDS, start=wrapped.start
            )
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
