from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.support.processes import mark, read_fifo, running_with, sleeping

from robota.core.messages import ToolMessage
from robota.core.questions import PermissionQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.background import kill_bash_tool
from robota.tools.builtins.bash import bash_tool
from robota.tools.processes import ProcessTable
from robota.tools.sandbox.landlock import MINIMUM_ABI, landlock_abi
from robota.tools.sandbox.sandbox import Backend, Sandbox

__all__ = ["mark"]

pytestmark = [pytest.mark.system, pytest.mark.anyio, pytest.mark.usefixtures("mark")]

BACKENDS: tuple[Backend, ...] = ("bubblewrap", "landlock")
LISTED = [".git", "link", "src", "top"]
TRY = 'if {{ {}; }} 2>/dev/null; then echo "DONE: {}"; fi\n'


@pytest.fixture
def place() -> Iterator[Path]:
    """Not below /tmp, of which a sandbox has its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        path = Path(name).resolve()
        path.chmod(0o777)
        yield path


@pytest.fixture
def workspace(place: Path) -> Path:
    """A repository with a file outside, and a link to it."""
    path = place / "workspace"
    (path / "src").mkdir(parents=True)
    (path / "top").write_text("old\n")
    (place / "outside").write_text("old\n")
    (path / "link").symlink_to(place / "outside")
    subprocess.run(["git", "init", "-q", path], check=True)
    return path


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "bubblewrap":
        assert shutil.which("bwrap"), "bubblewrap is missing: run `make test-system`, which installs it"
    else:
        assert landlock_abi() >= MINIMUM_ABI, "this kernel has no usable Landlock (Linux 6.2 or later)"
    kind: Backend = request.param
    return kind


async def run(
    command: str, workspace: Path, backend: Backend, *, timeout: int = 60_000, **options: Any
) -> ToolResult:
    tool = bash_tool(sandbox=Sandbox("required", backends=[backend], **options))
    arguments = {"command": command, "timeout": timeout}
    result = await tool.run(arguments, ToolContext(cwd=str(workspace)))
    assert result.metadata.get("sandbox") == backend, result.text
    return result


def attempts(*commands: str) -> str:
    """Tries each command and prints the ones that worked."""
    return "".join(TRY.format(command, command) for command in commands) + "echo tried"


# --- what works ----------------------------------------------------------------------------------------


async def test_the_probe_finds_it_working(backend: Backend) -> None:
    assert await Sandbox("required", backends=[backend]).find_backend() == (backend, "")


async def test_files_can_be_read_and_the_workspace_written(workspace: Path, backend: Backend) -> None:
    result = await run(
        "cat link && head -1 /etc/passwd >/dev/null && echo new > top && mkdir src/d && echo x > src/d/f && "
        'mv src/d/f src/g && rmdir src/d && echo t > "$TMPDIR/t" && cat "$TMPDIR/t" && pwd && '
        "git status --short",
        workspace,
        backend,
    )
    assert result.text == f"old\nt\n{workspace}\n?? link\n?? src/\n?? top"
    assert (workspace / "top").read_text() == "new\n"
    assert (workspace / "src" / "g").read_text() == "x\n"
    assert sorted(os.listdir(workspace)) == LISTED


async def test_an_added_directory_can_be_written(workspace: Path, place: Path, backend: Backend) -> None:
    (place / "added" / "below").mkdir(parents=True)
    command = f"echo x > {place}/added/below/f && echo written"
    assert (await run(command, workspace, backend, additional_dirs=["../added"])).text == "written"


async def test_a_workspace_below_a_protected_directory_can_be_written(
    workspace: Path, backend: Backend
) -> None:
    below = workspace / ".claude" / "worktrees" / "one"
    (below / "src").mkdir(parents=True)
    command = attempts("echo x > ../../settings.json") + "; echo x > src/f && cat src/f"
    assert (await run(command, below, backend, additional_dirs=[str(workspace)])).text == "tried\nx"


async def test_a_protected_directory_stays_so_if_it_is_added(workspace: Path, backend: Backend) -> None:
    (workspace / ".claude").mkdir()
    command = attempts("echo x > .claude/settings.json")
    assert (await run(command, workspace, backend, additional_dirs=[".claude"])).text == "tried"
    assert os.listdir(workspace / ".claude") == []


async def test_under_bubblewrap_entries_of_the_workspace_come_and_go_and_git_commits(workspace: Path) -> None:
    result = await run(
        "echo x > new && rm link && mv top top2 && git add -A && "
        "git -c user.name=a -c user.email=b commit -qm one && git log --format=%s --stat",
        workspace,
        "bubblewrap",
    )
    assert result.text == "one\n\n new  | 1 +\n top2 | 1 +\n 2 files changed, 2 insertions(+)"
    assert sorted(os.listdir(workspace)) == [".git", "new", "src", "top2"]


async def test_under_landlock_entries_beside_protected_ones_stay_as_they_are(workspace: Path) -> None:
    result = await run(attempts("touch new", "rm link", "mv top top2", "rm -r src"), workspace, "landlock")
    assert result.text == "tried"
    assert sorted(os.listdir(workspace)) == LISTED


ORDINARY_WORK = r"""
git config --list > /dev/null; git status -s && git log -1 --format=%s || true
echo new > new && mv new newer && rm newer && mkdir -p build/deep && rmdir build/deep build
echo 'all: out' > Makefile; printf 'out: top\n\tcp top out\n' >> Makefile; make -s all && test -f out
sed -i s/old/changed/ top && grep -q changed top
python3 -m venv --without-pip .venv && .venv/bin/python -c 'open("made", "w").close()'
python3 -c 'import multiprocessing as m; m.Pool(2).map(len, ["a"])'
ln -s top soft && ln top hard && chmod +x top && touch -d yesterday top
git add -A . && git -c user.name=a -c user.email=b commit -qm one && git tag v1 && git checkout -qb topic
git stash list && git mv hard harder && git reset -q --hard && git merge -q v1 && git clean -qn
tar cf all.tar src top && tar xf all.tar && cp -r src copy && rm -r copy
mktemp > /dev/null && echo x > /tmp/x && cat /tmp/x > /dev/null && sort -o sorted top
"""


async def test_ordinary_work_is_done(workspace: Path, backend: Backend) -> None:
    tool = bash_tool(sandbox=Sandbox("auto", backends=[backend]))
    for line in ORDINARY_WORK.strip().splitlines():
        result = await tool.run({"command": f"set -e; {line}"}, ToolContext(cwd=str(workspace)))
        assert result.metadata == {"exitCode": 0, "sandbox": backend}, (line, result.text)


async def test_auto_under_landlock_says_that_protected_files_are_not_held(workspace: Path) -> None:
    assert not await Sandbox("auto", backends=["landlock"]).holds_protected()
    assert await Sandbox("required", backends=["landlock"]).holds_protected()
    assert await Sandbox("auto", backends=["bubblewrap"]).holds_protected()
    tool = bash_tool(sandbox=Sandbox("auto", backends=["landlock"]))
    result = await tool.run({"command": "echo x > .mcp.json"}, ToolContext(cwd=str(workspace)))
    assert "was renamed to" in result.text
    assert not (workspace / ".mcp.json").exists()


async def test_caches_can_be_written(place: Path, workspace: Path, backend: Backend) -> None:
    home = place / "home"
    (home / ".cache" / "pip").mkdir(parents=True)
    (home / ".cargo").mkdir()
    tool = bash_tool(sandbox=Sandbox("auto", backends=[backend], home=str(home)))
    command = (
        f"cd {home}; for file in .cache/pip/x .cargo/registry/x .cargo/config.toml .bashrc "
        "$npm_config_cache/x $GOPATH/x; do echo x > $file; done; cat $GOPATH/x"
    )
    result = await tool.run({"command": command}, ToolContext(cwd=str(workspace)))
    assert result.text.splitlines()[0] == "x"
    files = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    assert files == [".cache/pip/x", ".cargo/registry/x"]


async def test_a_failed_command_is_told_where_it_ran(workspace: Path, backend: Backend) -> None:
    result = await run("echo x > /etc/robota-test", workspace, backend)
    assert "refused: bash: line 1: /etc/robota-test: " in result.text
    facts = result.text.splitlines()[-1]
    assert facts.startswith(f"[sandbox: {backend}; writable: {workspace}, ")
    assert "network: off" in facts
    if backend == "landlock":
        assert f"nothing can be made, renamed or removed directly in {workspace}, {workspace}/.git" in facts


# --- what does not -------------------------------------------------------------------------------------


async def test_nothing_outside_can_be_written(workspace: Path, place: Path, backend: Backend) -> None:
    result = await run(
        attempts(
            f"echo x > {place}/new",
            f"echo x >> {place}/outside",
            "echo x >> link",
            f"truncate -s 0 {place}/outside",
            f"rm {place}/outside",
            f"mv {place}/outside src/",
            f"ln {place}/outside src/hard",
            f"mv src {place}/",
            f"mkdir {place}/directory",
            "echo x > ~/robota-test",
            "echo x > /etc/robota-test",
        ),
        workspace,
        backend,
    )
    assert result.text == "tried"
    assert sorted(os.listdir(place)) == ["outside", "workspace"]
    assert (place / "outside").read_text() == "old\n"


async def test_protected_files_stay_as_they_are(workspace: Path, backend: Backend) -> None:
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "settings.json").write_text("{}")
    (workspace / ".mcp.json").write_text("{}")
    before = (workspace / ".git" / "config").read_bytes()
    result = await run(
        attempts(
            "echo x > .claude/settings.json",
            "echo x > .claude/settings.local.json",
            "rm .claude/settings.json",
            "mv .claude claude",
            "echo x > .mcp.json",
            "mv top .mcp.json",
            "echo x >> .git/config",
            "git config core.fsmonitor evil",
            "echo x > .git/hooks/pre-commit",
            "mv .git/hooks .git/hooks2",
            "mv .git git",
            "chmod -R u+w .git/hooks && echo x > .git/hooks/pre-commit",
        ),
        workspace,
        backend,
    )
    assert result.text == "tried"
    assert (workspace / ".git" / "config").read_bytes() == before
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    assert os.listdir(workspace / ".claude") == ["settings.json"]
    assert (workspace / ".mcp.json").read_text() == "{}"


async def test_missing_protected_files_are_missing_when_a_command_has_ended(
    workspace: Path, backend: Backend
) -> None:
    shutil.rmtree(workspace / ".git" / "hooks")
    names = (".claude/settings.json", ".robota/settings.json", ".vscode/tasks.json")
    files = (".mcp.json", ".gitmodules", ".envrc")
    result = await run(
        attempts(
            *(f"mkdir -p $(dirname {name}) && echo x > {name}" for name in names),
            *(f"echo x > {name}" for name in files),
            "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
            "rm -rf .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
            "echo / > .git/commondir",
            "ln -s ../top .git/hooks",
            "mv src .zed",
        ),
        workspace,
        backend,
    )
    left = sorted(os.listdir(workspace))
    assert not {"hooks", "commondir", "config.worktree"} & set(os.listdir(workspace / ".git"))
    if backend == "landlock":
        assert (result.text, left) == ("tried", LISTED)
        return
    made = [*(name.partition("/")[0] for name in names), *files, ".zed"]
    assert left == sorted([".git", "link", "top", *(f"{name}.refused" for name in made)])
    for name in made:
        place = workspace / name
        assert (
            f"[sandbox: {place} decides what runs later: it was renamed to {place}.refused.]" in result.text
        )


async def test_a_refused_name_that_is_taken_gets_a_number(workspace: Path) -> None:
    (workspace / ".mcp.json.refused").write_text("mine")
    await run("echo x > .mcp.json", workspace, "bubblewrap")
    assert (workspace / ".mcp.json.refused").read_text() == "mine"
    assert (workspace / ".mcp.json.refused-2").read_text() == "x\n"


async def test_placeholders_are_not_seen(workspace: Path, backend: Backend) -> None:
    await run("git add -A", workspace, "bubblewrap")
    result = await run("ls -A; git status --short --ignored; git clean -ndx", workspace, backend)
    assert result.text == "\n".join([*LISTED, "A  link", "A  top", "Would remove src/"])


async def test_a_repository_can_be_made_where_none_is(place: Path) -> None:
    empty = place / "empty"
    empty.mkdir()
    assert (await run("git init -q", empty, "bubblewrap")).text == "(no output)"
    commit = "touch a && git add a && git -c user.name=a -c user.email=b commit -qm one"
    assert (await run(f"{commit} && git log --format=%s", empty, "bubblewrap")).text == "one"


@pytest.mark.parametrize(
    "more",
    [
        "git config core.fsmonitor ./evil",
        "echo x > .git/hooks/post-checkout",
        "printf '[include]\\npath = ../c\\n' >> .git/config",
        "printf '[core]\\n\\tbare = false \\\\\\n\\n' >> .git/config",
        "echo .. > .git/commondir",
        "rm -r .git/hooks; ln -s .. .git/hooks",
        "mv .git/config c; ln -s ../c .git/config",
        "mv .git other; ln -s other .git",
        "mv .git other; echo 'gitdir: other' > .git",
    ],
)
async def test_a_repository_that_could_run_something_is_no_repository_afterwards(
    place: Path, more: str
) -> None:
    empty = place / "empty"
    empty.mkdir()
    result = await run(f"git init -q; {more}", empty, "bubblewrap")
    assert f"{empty}/.git decides what runs later" in result.text
    assert not (empty / ".git").exists()
    assert os.path.lexists(empty / ".git.refused")


async def test_a_home_in_the_workspace_keeps_its_start_up_files(place: Path, backend: Backend) -> None:
    home = place / "home"
    home.mkdir()
    commands = attempts(
        "echo x > .bashrc", "mkdir .ssh && echo x > .ssh/authorized_keys", "echo x > .config/fish/config.fish"
    )
    assert (await run(commands, home, backend, home=str(home))).text == "tried"
    assert os.listdir(home) == []


async def test_what_may_not_be_read_cannot_be(workspace: Path, place: Path, backend: Backend) -> None:
    (place / "secrets").mkdir()
    (place / "secrets" / "key").write_text("secret")
    (workspace / "src" / ".env").write_text("secret")
    hidden = [str(place / "secrets"), "src/.env", "/no/such/file"]
    command = f"grep -c secret {place}/secrets/key src/.env; cat src/.env; cat top"
    result = await run(command, workspace, backend, deny_read=hidden)
    assert "secret\n" not in result.text
    assert "old" in result.text.splitlines()


@pytest.mark.skipif(os.geteuid() != 0, reason="about root's powers")
async def test_root_has_no_powers(workspace: Path, place: Path, backend: Backend) -> None:
    result = await run(
        attempts(
            "mount -o remount,rw /",
            "umount -l .git/hooks",
            f"mount --bind {place} src",
            "mknod src/disk b 8 0",
            "chroot / true",
            f"unshare -Urm sh -c 'umount -l .git/hooks; echo x > {workspace}/.git/hooks/a'",
        )
        + "; grep CapEff /proc/self/status",
        workspace,
        backend,
    )
    assert result.text == "tried\nCapEff:\t0000000000000000"


@pytest.mark.skipif(os.geteuid() != 0, reason="about root's powers")
async def test_root_cannot_change_the_settings_of_the_kernel(workspace: Path, backend: Backend) -> None:
    settings = Path("/proc/sys/kernel/printk_ratelimit")
    before = settings.read_text()
    command = attempts(f"echo {int(before) + 1} > {settings}", f"cat {settings} > {settings}")
    assert (await run(command, workspace, backend)).text == "tried"
    assert settings.read_text() == before
    assert (await run(f"cat {settings}", workspace, backend)).text == before.strip()


# --- the network ---------------------------------------------------------------------------------------

CONNECT = "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {})).sendall(b'x')\""
DATAGRAM = "python3 -c \"import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', {}))\""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield listening


async def test_without_network_not_even_this_machine_is_reached(
    workspace: Path, backend: Backend, server: socket.socket
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0)
        datagram = DATAGRAM.format(receiver.getsockname()[1])
        result = await run(f"{CONNECT.format(server.getsockname()[1])}; {datagram}", workspace, backend)
        with pytest.raises(BlockingIOError):
            receiver.recv(1)
    assert "Error" in result.text
    with pytest.raises(BlockingIOError):
        server.accept()


async def test_the_network_can_be_allowed(workspace: Path, backend: Backend, server: socket.socket) -> None:
    command = CONNECT.format(server.getsockname()[1]) + " && echo sent"
    assert (await run(command, workspace, backend, network="on")).text == "sent"
    connection, _ = server.accept()
    with connection:
        assert connection.recv(1) == b"x"


@pytest.mark.parametrize("network", ["off", "on"])
async def test_sockets_of_other_programs_are_out_of_reach(
    workspace: Path, backend: Backend, network: str, tmp_path: Path
) -> None:
    script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        listening.settimeout(0)
        result = await run(f'python3 -c "{script}" {tmp_path}/socket', workspace, backend, network=network)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert "Error" in result.text


# --- processes -----------------------------------------------------------------------------------------


async def test_a_command_that_takes_too_long_is_asked_to_end_and_then_made_to(
    workspace: Path, backend: Backend, mark: str
) -> None:
    command = "trap 'echo asked > src/asked; exit' TERM; setsid sleep 1000 & echo begun; sleep 1000 & wait"
    result = await run(command, workspace, backend, timeout=1500)
    assert (result.ok, result.error) == (False, "Command timed out after 1500ms")
    assert result.text.startswith("begun\n")
    assert (workspace / "src" / "asked").read_text() == "asked\n"
    assert running_with(mark) == []


async def test_what_a_command_leaves_behind_is_ended_and_named(
    workspace: Path, backend: Backend, mark: str
) -> None:
    is_sleep = (
        'until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done'  # and no longer the shell that became it
    )
    result = await run(f"sleep 1000 & {is_sleep}; echo started", workspace, backend)
    first, *_, last = result.text.splitlines()
    assert first == "started"
    assert last.startswith("[ended with the command: ")
    assert last.endswith(" sleep 1000]")
    assert running_with(mark) == []


@pytest.mark.parametrize(
    "runner",
    ["setsid", "env -i setsid", "env -i setsid setsid", "env -i setsid sh -c 'trap : TERM; \"$@\"; :' x"],
)
async def test_a_daemon_does_not_outlive_its_command(
    workspace: Path, backend: Backend, runner: str, mark: str
) -> None:
    (workspace / "src" / mark).symlink_to("/bin/sleep")  # the name that is left when the environment is gone
    command = f"{runner} src/{mark} 1000 > /dev/null 2>&1 & echo started"
    result = await run(command, workspace, backend)
    assert result.text.splitlines()[0] == "started"
    assert "still running" not in result.text
    assert named(mark) == []


async def test_a_hidden_daemon_ends_with_a_command_that_takes_too_long(
    workspace: Path, backend: Backend, mark: str
) -> None:
    (workspace / "src" / mark).symlink_to("/bin/sleep")
    command = f"trap : TERM; env -i setsid src/{mark} 1000 & while :; do sleep 0.1; done"
    assert (await run(command, workspace, backend, timeout=1500)).error_code == "timeout"
    assert named(mark) == []


def named(text: str) -> list[str]:
    """Command lines of running processes that hold the text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text(errors="replace").replace("\0", " "))
    return [line for line in found if text in line]


async def test_the_way_a_command_ended_is_passed_on(workspace: Path, backend: Backend) -> None:
    assert (await run("kill -TERM $$", workspace, backend)).metadata["exitCode"] == 143
    assert (await run("exit 7", workspace, backend)).metadata["exitCode"] == 7


async def test_output_is_capped_and_codes_are_passed_on(workspace: Path, backend: Backend) -> None:
    result = await run("head -c 100000000 /dev/zero | tr '\\0' x; exit 3", workspace, backend)
    assert result.metadata["exitCode"] == 3
    assert len(result.text) < 31_000
    assert "[exit code 3]" in result.text


async def test_a_command_in_the_background_stays_confined_when_another_one_ends(
    workspace: Path, backend: Backend, mark: str
) -> None:
    os.mkfifo(workspace / "src" / "fifo")
    async with ProcessTable() as table:
        tool = bash_tool(table=table, sandbox=Sandbox("required", backends=[backend]))
        context = ToolContext(cwd=str(workspace))
        try_it = attempts("mkdir -p .claude && echo x > .claude/settings.json", "echo x > .mcp.json")
        command = f"echo ready > src/fifo; cat src/fifo; {try_it}; echo tried > src/fifo; sleep 1000"
        started = await tool.run({"command": command, "run_in_background": True}, context)
        assert started.metadata["sandbox"] == backend, started.text
        assert await read_fifo(workspace / "src" / "fifo") == "ready\n"
        assert (await tool.run({"command": "true"}, context)).ok
        (workspace / "src" / "fifo").write_text("go\n")
        assert await read_fifo(workspace / "src" / "fifo") == "tried\n"
        await kill_bash_tool(table).run({"shell_id": "bash_1"}, context)
    assert sorted(os.listdir(workspace)) == LISTED
    assert running_with(mark) == []


async def test_modules_in_the_workspace_cannot_get_in_before_the_sandbox(
    workspace: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    escape = f"open({str(place / 'escaped')!r}, 'w')"
    for name in ("ctypes.py", "json.py", "sitecustomize.py", "robota.py"):
        (workspace / name).write_text(escape)
    assert (await run("echo ran", workspace, "landlock")).text == "ran"
    assert not (place / "escaped").exists()


# --- in a session --------------------------------------------------------------------------------------


async def test_a_session_is_told_what_was_refused_and_leaves_only_when_the_user_says_so(
    workspace: Path, place: Path
) -> None:
    asked: list[PermissionQuestion] = []

    async def person(question: PermissionQuestion) -> bool:
        asked.append(question)
        return len(asked) > 1

    command = f"touch {place}/made"
    leaving = call("Bash", command=command, dangerouslyDisableSandbox=True)
    provider = ScriptedProvider([call("Bash", command=command)], [leaving], [leaving], "done")
    session = InteractiveSession(
        cwd=workspace,
        provider=provider,
        permission_handler=person,
        settings={"permissions": {"allow": ["Bash(touch *)"]}},
    )
    await session.submit("go")
    said = session.session.messages
    refused, denied, made = [each.content for each in said if isinstance(each, ToolMessage)]
    assert f"[sandbox: refused: touch: cannot touch '{place}/made': Read-only file system]" in refused
    assert "`dangerouslyDisableSandbox` asks the user" in refused
    assert denied.startswith("Error: Permission denied.")
    assert made == "(no output)"
    assert (place / "made").exists()
    assert [question.rule for question in asked] == [None, None]
    assert all("outside the sandbox" in question.reason for question in asked)


async def test_a_working_directory_elsewhere_is_no_workspace(
    workspace: Path, place: Path, backend: Backend
) -> None:
    tool = bash_tool(sandbox=Sandbox("auto", backends=[backend]))
    arguments = {"command": "pwd; touch made; touch workspace/src/made", "working_directory": ".."}
    result = await tool.run(arguments, ToolContext(cwd=str(workspace)))
    assert result.text.startswith(f"{place}\n")
    assert not (place / "made").exists()
    assert (workspace / "src" / "made").exists()


COMMIT = "git add -A . && git -c user.name=a -c user.email=b commit -qm one && git log --format=%s -1"


@pytest.fixture(params=["below", "linked"])
def root(request: pytest.FixtureRequest, workspace: Path, place: Path) -> Path:
    """A directory whose git directory is elsewhere."""
    git = ["git", "-C", str(workspace), "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run([*git, "commit", "-qm", "zero", "--allow-empty"], check=True)
    if request.param == "below":
        return workspace / "src"
    subprocess.run([*git, "worktree", "add", "-q", place / "linked"], check=True)
    return place / "linked"


async def test_git_commits_where_its_directory_is_elsewhere(
    workspace: Path, backend: Backend, root: Path
) -> None:
    before = (workspace / ".git" / "config").read_bytes()
    (root / "new").touch()
    tool = bash_tool(sandbox=Sandbox("auto", backends=[backend]))
    result = await tool.run({"command": COMMIT}, ToolContext(cwd=str(root)))
    assert result.text == "one"
    tries = attempts(
        f"echo x > {workspace}/top",
        *(f"echo x >> {workspace}/.git/{name}" for name in ("config", "hooks/pre-commit", "commondir")),
    )
    result = await tool.run({"command": tries}, ToolContext(cwd=str(root)))
    if backend == "bubblewrap":
        assert result.text == "tried"
        assert (workspace / ".git" / "config").read_bytes() == before
    assert (workspace / "top").read_text() == "old\n"
    assert not (workspace / ".git" / "commondir").exists()


# --- as anybody ----------------------------------------------------------------------------------------

AS_NOBODY = """
import os, sys
import anyio, msgspec
from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool
from robota.tools.sandbox.sandbox import Sandbox

async def main(command, cwd):
    def bash():
        return bash_tool(sandbox=Sandbox("required", backends=["bubblewrap"]))

    await bash().run({"command": "true"}, ToolContext(cwd=cwd))  # imports while that is allowed
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        os.environ["HOME"] = "/nonexistent"
    result = await bash().run({"command": command}, ToolContext(cwd=cwd))
    print(msgspec.json.encode(result.text).decode())

anyio.run(main, sys.argv[1], sys.argv[2])
"""


def test_bubblewrap_needs_no_root(workspace: Path, place: Path) -> None:
    for path in (workspace, workspace / "src", place / "outside"):
        path.chmod(0o777)
    command = attempts(
        f"echo x > {place}/new",
        f"echo x > {place}/outside",
        "echo x > .git/config",
        "echo x > .git/hooks/pre-commit",
    )
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, f"id -u; echo x > src/f && {command}", str(workspace)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    assert msgspec.json.decode(done.stdout) == f"{uid}\ntried"
    assert (workspace / "src" / "f").read_text() == "x\n"
    assert sorted(os.listdir(workspace)) == LISTED
    assert sorted(os.listdir(place)) == ["outside", "workspace"]


LAUNCH_AS_NOBODY = """
import os, sys
from robota.tools.sandbox.__main__ import main
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
main(sys.argv[1:])
"""


def test_landlock_needs_no_root(workspace: Path, place: Path) -> None:
    for path in (workspace, workspace / "src", place / "outside"):
        path.chmod(0o777)
    policy = ("--write", str(workspace), "--keep", str(workspace / ".claude"), "--network", "off")
    command = attempts(f"echo x > {place}/outside", "mkdir .claude", f"echo x > {place}/new")
    script = f"cd {workspace}; id -u; echo x > src/f && {command}"
    done = subprocess.run(
        [
            *(sys.executable, "-c", LAUNCH_AS_NOBODY, *policy),
            *("--", "bash", "-c", script),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    assert (done.stdout, done.stderr) == (f"{uid}\ntried\n", "")
    assert (workspace / "src" / "f").read_text() == "x\n"
    assert (place / "outside").read_text() == "old\n"
    assert sorted(os.listdir(workspace)) == LISTED


async def test_killing_us_ends_what_runs_in_the_sandbox(workspace: Path) -> None:
    """Also a daemon without our mark: it goes with the first process of its namespace."""
    ready = workspace / "ready"
    os.mkfifo(ready)
    command = f"(env -i setsid sleep 1009 > /dev/null 2>&1 &); echo ready > {ready}; sleep 1009"
    code = (
        "import anyio, sys; from robota.core.tool import ToolContext; "
        "from robota.tools.builtins.bash import bash_tool; "
        "tool = bash_tool(sandbox='required'); "
        "anyio.run(tool.run, {'command': sys.argv[1]}, ToolContext(cwd=sys.argv[2]))"
    )
    async with await anyio.open_process([sys.executable, "-c", code, command, str(workspace)]) as process:
        assert await read_fifo(ready) == "ready\n"
        process.kill()
    with anyio.fail_after(20):
        while sleeping("1009"):  # noqa: ASYNC110 - nothing tells of the end of somebody else's process
            await anyio.sleep(0.02)
