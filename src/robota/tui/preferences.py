"""What the user's settings say about the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from msgspec import Struct

from robota.tui.keys import DEFAULT_KEYS
from robota.tui.theme import Theme, choose_theme
from robota.tui.words import Words, find_language, load_words


class Preferences(Struct, frozen=True, kw_only=True):
    """Read once, when the interface begins."""

    words: Words
    theme: Theme
    vim: bool = False
    keys: Mapping[str, tuple[str, ...]] = {}
    wrong_keys: tuple[str, ...] = ()
    """Actions whose keys cannot be used, or that there are not."""
    notifications: str = "off"
    frame_seconds: float = 0.05
    escape_seconds: float = 0.05
    status_command: str = ""
    passed_variables: tuple[str, ...] = ()
    """Credentials of the environment that commands may have."""

    @classmethod
    def of(cls, get: Callable[[str], Any], environment: Mapping[str, str]) -> Self:
        """`get` gives a setting by its name."""
        script, bindings = get("statusLine"), get("keybindings") or {}
        keys = read_keys(bindings)
        return cls(
            words=load_words(find_language(get("language"), environment)),
            theme=choose_theme(get("theme"), environment),
            vim=get("editorMode") == "vim",
            keys=keys,
            wrong_keys=tuple(action for action in bindings if action not in keys),
            notifications=get("notifications") or "off",
            frame_seconds=(get("terminal.frameMilliseconds") or 50) / 1000,
            escape_seconds=(get("terminal.escapeMilliseconds") or 50) / 1000,
            status_command=str(script.get("command", "")) if isinstance(script, dict) else "",
            passed_variables=tuple(get("passEnv") or ()),
        )


def read_keys(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Actions that exist with keys that exist; what does not is left as it was."""
    read: dict[str, tuple[str, ...]] = {}
    for action, keys in given.items():
        wanted = (keys,) if isinstance(keys, str) else tuple(keys)
        if action in DEFAULT_KEYS and all(map(is_key, wanted)):
            read[action] = wanted
    return read


def is_key(text: str) -> bool:
    """Whether prompt_toolkit knows the key, or each key of a sequence."""
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415 - for those who have their own

    try:
        KeyBindings().add(*text.split(","))(lambda event: None)
    except ValueError:
        return False
    return True
