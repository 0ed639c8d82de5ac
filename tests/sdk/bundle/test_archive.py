"""Archives of strangers: whatever is in them, nothing lies outside and nothing grows without bounds."""

from __future__ import annotations

import io
import stat
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from robota.sdk.bundle import archive
from robota.sdk.bundle.archive import find_top, unpack
from robota.sdk.bundle.names import BundleError


def write_tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for info, data in members:
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


def write_zip(path: Path, *members: tuple[str | zipfile.ZipInfo, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members:
            file.writestr(name, text)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def refuse(path: Path, tmp_path: Path) -> str:
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(BundleError) as caught:
        unpack(str(path), str(into))
    return str(caught.value)


NAMES = ["../out", "a/../../out", "/etc/passwd", "a/..", "C:/x", "a\\..\\..\\out", "a//b", "x" * 2000]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_a_tar_archive_that_would_lie_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = write_tar(tmp_path / "a.tar.gz", (member(name), b"x"))

    assert "would lie outside" in refuse(path, tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMES if "\\" not in name])
def test_a_file_of_a_zip_archive_that_would_lie_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = write_zip(tmp_path / "a.zip", (name, "x"))

    assert "would lie outside" in refuse(path, tmp_path)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str, kind: bytes) -> None:
    path = write_tar(tmp_path / "a.tar.gz", (member("a/link", kind, target), b""))

    assert "leads out" in refuse(path, tmp_path)


def test_a_link_in_a_zip_archive_that_leads_out_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("a/link")
    info.external_attr = 0o120777 << 16
    path = write_zip(tmp_path / "a.zip", (info, "../../../etc/passwd"))

    assert "leads out" in refuse(path, tmp_path)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = write_tar(tmp_path / "a.tar.gz", (member("a", kind), b""))

    assert "a device or the like" in refuse(path, tmp_path)


def test_a_link_to_a_file_of_the_archive_becomes_that_file(tmp_path: Path) -> None:
    path = write_tar(
        tmp_path / "a.tar.gz",
        (member("a/skills/SKILL.md"), b"text"),
        (member("a/link", tarfile.SYMTYPE, "skills/SKILL.md"), b""),
        (member("a/hard", tarfile.LNKTYPE, "a/skills/SKILL.md"), b""),
        (member("b", tarfile.SYMTYPE, "a/skills"), b""),
    )
    into = tmp_path / "into"
    into.mkdir()

    unpack(str(path), str(into))

    for name in ("a/link", "a/hard", "b/SKILL.md"):
        assert (into / name).read_text() == "text"
        assert not (into / name).is_symlink()


def test_a_bomb_is_refused_by_how_much_it_grows(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", ("zeros", "\0" * 30_000_000))
    assert path.stat().st_size < 100_000

    assert "holds more than a plugin may" in refuse(path, tmp_path)
    assert (tmp_path / "into" / "zeros").stat().st_size < 12_000_000


def test_a_bomb_in_the_target_of_a_link_is_not_unpacked_into_the_memory(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    link.compress_type = zipfile.ZIP_DEFLATED
    path = write_zip(tmp_path / "a.zip", (link, "\0" * 30_000_000))

    tracemalloc.start()
    try:
        assert "'link', to what is no path" in refuse(path, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g", b"X"])
def test_a_bomb_in_what_stands_before_a_file_is_not_unpacked_into_the_memory(
    tmp_path: Path, kind: bytes
) -> None:
    path = write_tar(tmp_path / "a.tar.gz", (member("name", kind), b"a" * 30_000_000), (member("x"), b"x"))

    tracemalloc.start()
    try:
        assert "30,000,000 bytes before a file" in refuse(path, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_long_name_that_fits_is_taken(tmp_path: Path) -> None:
    name = "/".join(["d" * 90] * 8)
    into = tmp_path / "into"
    into.mkdir()
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / "a.tar", "w", format=form) as file:
            file.addfile(member(f"{name}-{form}"), io.BytesIO())
        unpack(str(tmp_path / "a.tar"), str(into))
        assert (into / f"{name}-{form}").is_file()


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 10)
    path = write_zip(tmp_path / "a.zip", *((f"{number}.md", "") for number in range(11)))

    assert "more than 10 files" in refuse(path, tmp_path)


def test_names_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", ("SKILL.md", "a"), ("skill.md", "b"))

    assert "one file on some systems" in refuse(path, tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04 and no more", b"not an archive at all", b"\x1f\x8b\x08broken"]
)
def test_what_is_no_archive_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)

    assert "archive cannot be" in refuse(tmp_path / "a.zip", tmp_path)


def test_the_one_directory_that_everything_lies_in_is_left_out(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "a.zip", ("repo-main/.claude-plugin/plugin.json", "{}"), ("repo-main/a.sh", "x")
    )
    into = tmp_path / "into"
    into.mkdir()
    unpack(str(path), str(into))

    assert find_top(str(into)) == str(into / "repo-main")
