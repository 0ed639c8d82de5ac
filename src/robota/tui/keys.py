"""Which key does what. Every action has a name, under which settings give it other keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, Filter, completion_is_selected, has_completions
from prompt_toolkit.filters.app import vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from robota.tui.app import TerminalApp
    from robota.tui.dialogs import Dialog

DEFAULT_KEYS: Mapping[str, tuple[str, ...]] = {
    "send": ("enter",),
    "newline": ("c-j", "escape,enter"),
    "abort": ("escape",),
    "interrupt": ("c-c",),
    "leave": ("c-d",),
    "steer": ("c-s",),
    "mode": ("s-tab",),
    "expand": ("c-o",),
    "thinking": ("c-t",),
    "editor": ("c-g",),
    "image": ("c-v",),
    "redraw": ("c-l",),
    "suspend": ("c-z",),
    "details": ("c-e",),
}
"""Action to keys, in prompt_toolkit's names; a comma stands between the keys of a sequence."""


_HELD = {"c": "Ctrl", "s": "Shift"}
_NAMES = {"escape": "Esc"}


def name_keys(keys: str) -> str:
    """Keys as they are printed on a keyboard: `c-x,escape` is Ctrl-X Esc, and Esc before a key is Alt."""
    named = []
    for key in keys.split(","):
        *held, last = key.split("-")
        named.append("-".join([*(_HELD.get(each, each) for each in held), _NAMES.get(last, last.title())]))
    if len(named) == 2 and named[0] == "Esc":
        return f"Alt-{named[1]}"
    return " ".join(named)


class _Keys:
    """Bindings in the making."""

    def __init__(self, app: TerminalApp, names: Mapping[str, tuple[str, ...]]) -> None:
        self.app = app
        self.names = names
        self.made = KeyBindings()
        self.in_dialog = Condition(lambda: app.dialogs.armed)
        self.in_entry = Condition(lambda: app.dialogs.armed and self._dialog.entry is not None)
        self.in_options = self.in_dialog & ~self.in_entry
        self.in_input = ~self.in_dialog

    @property
    def _dialog(self) -> Dialog:
        dialog = self.app.dialogs.current
        assert dialog is not None  # every binding that asks is filtered by it
        return dialog

    def act(self, action: str, do: Callable[[], object], when: Filter) -> None:
        for keys in self.names[action]:

            def handle(event: KeyPressEvent, do: Callable[[], object] = do) -> None:
                do()

            self.made.add(*keys.split(","), filter=when)(handle)

    def key(self, key: str, do: Callable[[KeyPressEvent], object], when: Filter) -> None:
        def handle(event: KeyPressEvent) -> None:
            do(event)

        self.made.add(key, filter=when)(handle)


def make_keys(app: TerminalApp, names: Mapping[str, tuple[str, ...]]) -> KeyBindings:
    keys = _Keys(app, {**DEFAULT_KEYS, **names})
    _bind_input(keys)
    _bind_completion(keys)
    _bind_dialog(keys)
    return keys.made


def _bind_input(keys: _Keys) -> None:
    app, typing = keys.app, keys.in_input
    editing = app.editing
    empty = Condition(lambda: not app.input.text)
    searching = Condition(lambda: app.layout.is_searching)
    waiting = Condition(lambda: app.region.live.queued is not None)
    at_rest = vi_navigation_mode if app.wishes.vim else ~searching
    keys.act("send", editing.send, typing & ~completion_is_selected & ~searching)
    keys.act("newline", editing.newline, typing)
    keys.act("abort", app.escape, typing & ~searching & at_rest)
    keys.act("interrupt", app.interrupt, typing & ~searching)
    keys.act("leave", lambda: app.leave(0), typing & empty)
    keys.act("steer", editing.steer, typing & ~searching)
    keys.act("mode", app.cycle_mode, typing & ~has_completions)
    keys.act("expand", app.expand, typing)
    keys.act("thinking", app.toggle_thinking, typing)
    keys.act("editor", editing.edit, typing)
    keys.act("image", editing.paste_image, typing)
    keys.act("redraw", lambda: app.surface.redraw(), ~searching)
    keys.act("suspend", lambda: app.surface.suspend(), typing)
    keys.key("backspace", lambda _: editing.take_back(), typing & empty & waiting)
    keys.key(Keys.BracketedPaste, lambda event: editing.paste(event.data), typing)


def _bind_completion(keys: _Keys) -> None:
    editing, buffer, open_list = keys.app.editing, keys.app.input, keys.in_input & has_completions
    keys.key("enter", lambda _: editing.accept(), keys.in_input & completion_is_selected)
    keys.key("tab", lambda _: editing.complete(1), keys.in_input)
    keys.key("s-tab", lambda _: editing.complete(-1), open_list)
    keys.key("down", lambda _: buffer.complete_next(), open_list)
    keys.key("up", lambda _: buffer.complete_previous(), open_list)


def _bind_dialog(keys: _Keys) -> None:
    app, options, entry = keys.app, keys.in_options, keys.in_entry

    def press(do: Callable[[Dialog], object]) -> Callable[[KeyPressEvent], object]:
        def act(event: KeyPressEvent) -> None:
            do(keys._dialog)
            app.asking.changed()

        return act

    def type_letter(event: KeyPressEvent) -> None:
        letter = event.data
        dialog = keys._dialog
        harmless = dialog.filtered or (dialog.many and letter == " ")  # several at once answer nothing
        if len(letter) == 1 and letter.isprintable() and (harmless or not app.surface.input.burst):
            press(lambda dialog: dialog.type(letter))(event)

    keys.key(Keys.Any, type_letter, options)
    keys.key(Keys.BracketedPaste, lambda _: None, options)  # a paste is never an answer
    keys.key("up", press(lambda dialog: dialog.move(-1)), options)
    keys.key("down", press(lambda dialog: dialog.move(1)), options)
    keys.key("s-tab", press(lambda dialog: dialog.move(-1)), options)
    keys.key("tab", press(lambda dialog: dialog.move(1)), options)
    keys.key("enter", press(lambda dialog: dialog.choose()), options)
    keys.key("backspace", press(lambda dialog: dialog.erase()), options)
    keys.key("escape", press(lambda dialog: dialog.close()), keys.in_dialog)
    keys.key("enter", lambda _: app.asking.write(), entry)
    keys.act("details", app.asking.show_details, options)
    keys.act("interrupt", app.interrupt, keys.in_dialog)
