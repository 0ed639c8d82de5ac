"""Settings files changed on somebody's word."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.unprivileged import bound_by_modes

from robota.core.errors import ConfigurationError, StorageError
from robota.sdk.settings.write import add_to_setting, change_setting, remove_from_setting, remove_setting


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_users_file_is_made_private_and_a_projects_ordinary(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    own, shared = tmp_path / "home" / ".robota" / "settings.json", project / ".robota" / "settings.local.json"
    umask = os.umask(0o022)
    try:
        assert change_setting(str(own), "permissions.defaultMode", "plan")
        assert add_to_setting(str(shared), "permissions.allow", "Bash(ls *)", project=str(project))
    finally:
        os.umask(umask)

    assert json.loads(own.read_text()) == {"permissions": {"defaultMode": "plan"}}
    assert json.loads(shared.read_text()) == {"permissions": {"allow": ["Bash(ls *)"]}}
    assert [mode_of(own), mode_of(own.parent), mode_of(own.parent.parent)] == [0o600, 0o700, 0o700]
    assert [mode_of(shared), mode_of(shared.parent)] == [0o644, 0o755]
    assert sorted(os.listdir(shared.parent)) == ["settings.local.json"]  # no lock, no temporary file


def test_a_change_keeps_what_it_does_not_know_and_the_mode_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{\n\t"future": {"x": [1]}, // mine\n\t"model": "a"\n}\n')
    path.chmod(0o640)

    assert change_setting(str(path), "model", "b", project=str(tmp_path))
    assert not change_setting(str(path), "model", "b", project=str(tmp_path))

    assert path.read_text() == '{\n\t"future": {"x": [1]}, // mine\n\t"model": "b"\n}\n'
    assert mode_of(path) == 0o640


def test_keys_and_rules_are_removed_again(tmp_path: Path) -> None:
    path = str(tmp_path / "settings.json")
    change_setting(path, ("env", "A.B"), "1")
    add_to_setting(path, "permissions.deny", "Read(.env)")

    assert remove_setting(path, ("env", "A.B"))
    assert remove_from_setting(path, "permissions.deny", "Read(.env)")
    assert not remove_from_setting(path, "permissions.deny", "Read(.env)")

    assert json.loads(Path(path).read_text()) == {"env": {}, "permissions": {"deny": []}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n "b": \n}', r"settings\.json:3 is not JSON .*correct it first"),
        (b"\xff{}", "is not UTF-8 text"),
        (b"[]", "the whole is not an object"),
        (b'{"permissions": []}', "permissions is not an object"),
        (b'{"permissions": {"allow": "Bash"}}', "permissions.allow is not a list"),
        (b" " * 1_100_000 + b"{}", "larger than 1 MB"),
    ],
)
def test_a_file_that_cannot_be_changed_is_refused_and_stays(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=message):
        add_to_setting(str(path), "permissions.allow", "Bash", project=str(tmp_path))

    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["settings.json"]


def test_a_link_of_a_project_is_not_followed_out_of_it(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "settings.local.json").write_text("{}")
    (project / ".robota").symlink_to(outside)

    with pytest.raises(ConfigurationError, match="leads out of the project"):
        add_to_setting(
            str(project / ".robota" / "settings.local.json"),
            "permissions.allow",
            "Bash",
            project=str(project),
        )

    assert (outside / "settings.local.json").read_text() == "{}"


def test_a_users_link_to_their_own_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    real.write_text("{}")
    link.symlink_to(real)

    change_setting(str(link), "model", "a")

    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"model": "a"}


def test_a_file_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(0o400)

    with bound_by_modes(), pytest.raises(StorageError, match="cannot be written"):
        change_setting(str(path), "model", "a")


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    code = (
        "import sys; from robota.sdk.settings.write import add_to_setting\n"
        "for n in range(20): add_to_setting(sys.argv[1], 'permissions.allow', f'Bash({sys.argv[2]} {n})')"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")]

    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    rules = json.loads(path.read_text())["permissions"]["allow"]
    assert sorted(rules) == sorted(f"Bash({name} {n})" for name in "abc" for n in range(20))
    assert os.listdir(tmp_path) == ["settings.json"]
