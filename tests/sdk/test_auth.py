"""Keys of providers: where they are kept, and who gets to see them."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import KeyringLocked, PasswordDeleteError

from robota.core.errors import ConfigurationError
from robota.sdk.auth import KeyStore
from robota.sdk.interactive import InteractiveSession
from robota.sdk.provider_profiles import ProviderProfile, ProviderProfiles
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider

KEY = "sk-very-secret-1234567890"


class MemoryKeyring(KeyringBackend):  # type: ignore[no-untyped-call]
    """The system's keyring, without the system."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked
        return self.keys.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked
        self.keys[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.locked or (service, username) not in self.keys:
            raise PasswordDeleteError
        del self.keys[service, username]


@pytest.fixture
def no_keyring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # what a system without one has
    yield
    keyring.set_keyring(before)


@pytest.fixture
def system_keyring() -> Iterator[MemoryKeyring]:
    before, memory = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore(str(tmp_path / "home" / ".robota"))


@pytest.mark.usefixtures("no_keyring")
def test_without_a_keyring_a_key_is_kept_in_a_file_for_nobody_else(store: KeyStore) -> None:
    assert store.set("anthropic", f" {KEY}\n") == "file"

    file = Path(store.path)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
    assert store.get("anthropic") == KEY
    assert store.names == {"anthropic": "file"}
    assert KEY not in repr(store)


@pytest.mark.usefixtures("no_keyring")
def test_a_file_that_others_could_read_is_theirs_no_more_after_a_change(store: KeyStore) -> None:
    Path(store.path).parent.mkdir(parents=True)
    Path(store.path).write_text(json.dumps({"keys": {"a": {"key": KEY}}}))
    Path(store.path).chmod(0o644)

    store.set("b", KEY)

    assert stat.S_IMODE(Path(store.path).stat().st_mode) == 0o600
    assert set(store.names) == {"a", "b"}


def test_with_a_keyring_the_file_knows_names_only(store: KeyStore, system_keyring: MemoryKeyring) -> None:
    assert store.set("openai", KEY) == "keyring"

    assert system_keyring.keys == {("robota", "openai"): KEY}
    assert KEY not in Path(store.path).read_text()
    assert store.names == {"openai": "keyring"}
    assert store.get("openai") == KEY
    assert store.get("other") is None

    assert store.delete("openai")
    assert not store.delete("openai")
    assert system_keyring.keys == {}


def test_a_reference_stays_a_reference(
    store: KeyStore, system_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)

    assert store.set("p", "$ENV:MY_KEY") == "environment"

    assert system_keyring.keys == {}
    assert store.get("p") == "$ENV:MY_KEY"
    assert KEY not in Path(store.path).read_text()


def test_a_locked_keyring_is_named_and_a_new_key_goes_into_the_file(
    store: KeyStore, system_keyring: MemoryKeyring
) -> None:
    store.set("p", KEY)
    system_keyring.locked = True

    with pytest.raises(ConfigurationError, match="unlock it") as failure:
        store.get("p")
    with pytest.raises(ConfigurationError, match="did not delete"):
        store.delete("p")

    assert KEY not in str(failure.value)
    assert store.set("q", KEY) == "file"
    assert store.names == {"p": "keyring", "q": "file"}


@pytest.mark.usefixtures("no_keyring")
def test_a_damaged_file_is_refused_kept_and_not_quoted(store: KeyStore) -> None:
    Path(store.path).parent.mkdir(parents=True)
    content = '{"keys": {"a": "' + KEY + '"}}'
    Path(store.path).write_text(content)

    for action in (lambda: store.get("a"), lambda: store.set("b", KEY)):
        with pytest.raises(ConfigurationError, match="is damaged") as failure:
            action()
        assert KEY not in str(failure.value)
        assert failure.value.__cause__ is None

    assert Path(store.path).read_text() == content


@pytest.mark.parametrize(("name", "key"), [("", KEY), ("p", "  "), ("p", "two\nlines")])
def test_what_is_no_key_is_refused(store: KeyStore, name: str, key: str) -> None:
    with pytest.raises(ConfigurationError, match="A key needs a name"):
        store.set(name, key)


@pytest.mark.usefixtures("no_keyring")
def test_profiles_get_the_keys_that_are_kept_for_them(store: KeyStore) -> None:
    store.set("work", "sk-work")
    store.set("anthropic", "sk-type")
    profiles = ProviderProfiles(
        profiles={
            "work": ProviderProfile(type="anthropic"),
            "other": ProviderProfile(type="anthropic"),
            "own": ProviderProfile(type="anthropic", api_key="$ENV:OWN"),
            "elsewhere": ProviderProfile(type="anthropic", base_url="https://example.com"),
            "none": ProviderProfile(type="openai"),
        }
    )

    filled = store.fill_in(profiles)

    assert {name: profile.api_key for name, profile in filled.profiles.items()} == {
        "work": "sk-work",
        "other": "sk-type",
        "own": "$ENV:OWN",
        "elsewhere": None,  # the key of a service does not go to another host
        "none": None,
    }
    assert filled.profiles["work"].layer("api_key") == "user"
    assert "sk-work" not in repr(filled)


@pytest.mark.anyio
async def test_a_session_knows_the_kept_keys_of_its_profiles_and_writes_them_nowhere(
    tmp_path: Path, system_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    KeyStore(str(home / ".robota")).set("work", KEY)
    profiles = {"work": {"type": "anthropic"}, "locked": {"type": "openai"}}
    (home / ".robota" / "settings.json").write_text(json.dumps({"providers": profiles}))
    (tmp_path / "project").mkdir()
    store = SessionStore(str(tmp_path / "sessions"))
    provider = ScriptedProvider(f"The key is {KEY}.")
    async with InteractiveSession(
        cwd=tmp_path / "project", provider=provider, session_store=store
    ) as session:
        await session.submit("Hi")
        assert session.project.settings.profiles.get("work").api_key == KEY

    written = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert written == []


@pytest.mark.anyio
@pytest.mark.parametrize(("damaged", "told"), [(False, "unlock it"), (True, "is damaged")])
async def test_a_key_that_cannot_be_had_is_told_and_the_session_goes_on(
    tmp_path: Path, system_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, damaged: bool, told: str
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    KeyStore(str(home / ".robota")).set("work", KEY)
    system_keyring.locked = True
    if damaged:
        (home / ".robota" / "auth.json").write_text("{")
    (home / ".robota" / "settings.json").write_text('{"providers": {"work": {"type": "anthropic"}}}')
    (tmp_path / "project").mkdir()
    async with InteractiveSession(cwd=tmp_path / "project", provider=ScriptedProvider("Hello.")) as session:
        assert (await session.submit("Hi")).text == "Hello."
        assert [str(problem) for problem in session.problems if told in problem.message]
