"""The line that is written: sending, queueing, taking back, pasting, completing, editing elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.history import History

from robota.core.errors import ConfigurationError
from robota.tui.complete import InputCompleter, first_offer
from robota.tui.history import keep_prompt, load_prompts
from robota.tui.images import Images, clipboard_image, dropped_image
from robota.tui.paste import Pastes
from robota.tui.user_editor import edit_text

if TYPE_CHECKING:
    from robota.tui.app import TerminalApp

STEERED_SECONDS = 4.0


class PromptHistory(History):
    """The prompts of a project, for the keys that look for them. The next session has no pastes of this one,
    so it is left them unfolded."""

    def __init__(self, path: str, pastes: Pastes, app: TerminalApp) -> None:
        super().__init__()
        self._path = path
        self._pastes = pastes
        self._app = app

    def load_history_strings(self) -> Iterable[str]:
        return reversed(load_prompts(self._path))

    def store_string(self, string: str) -> None:
        keep_prompt(self._path, self._pastes.unfold(string), self._app.session)


class Editing:
    """The input and what its marks stand for."""

    def __init__(self, app: TerminalApp, history_path: str) -> None:
        self._app = app
        self.pastes = Pastes(app.words)
        self.images = Images()
        self.buffer = Buffer(
            multiline=True,
            history=PromptHistory(history_path, self.pastes, app),
            complete_while_typing=True,
        )
        self.buffer.on_text_changed += lambda _: self._changed()

    def serve(self, completer: InputCompleter) -> None:
        self.buffer.completer = completer

    def _changed(self) -> None:
        self._app.typed()
        self._app.region.focus()

    # --- sending ------------------------------------------------------------------------------------

    def send(self) -> None:
        offered = first_offer(self.buffer)
        if offered is not None:
            self.buffer.apply_completion(offered)
            if self._needs_words():
                self.take_completion()
                return
        text = self.buffer.text
        if not text.strip():
            return
        prompt = self.images.attach(self.pastes.unfold(text))
        refused = self._app.turns.send(prompt, text.rstrip())
        if refused:
            self._app.hint(refused)
        else:
            self._sent()

    def steer(self) -> None:
        """Tell the model at work; what waits, if the line is empty."""
        app = self._app
        text = self.buffer.text or app.session.pending_prompt or ""
        if not text.strip() or not app.turns.busy:
            return
        if not self.buffer.text:
            app.session.cancel_queue()
        app.turns.steer(self.images.attach(self.pastes.unfold(text)))
        self._sent()
        app.hint(app.words("steered"), STEERED_SECONDS)

    def _sent(self) -> None:
        self.buffer.reset(append_to_history=True)
        self._app.hint("")

    def take_back(self) -> None:
        """The prompt that waits comes back into the line."""
        text = self._app.session.pending_prompt
        if text is not None:
            self._app.session.cancel_queue()
            self.refill(text)

    def refill(self, text: str) -> None:
        """Put a text into the line, above what stands there."""
        written = self.buffer.text
        self.buffer.text = f"{text}\n{written}" if written.strip() else text
        self.buffer.cursor_position = len(self.buffer.text)

    # --- what goes in -------------------------------------------------------------------------------

    def newline(self) -> None:
        self.buffer.insert_text("\n")

    def paste(self, text: str) -> None:
        """A long text is folded, an image file that was dropped is attached."""
        image = dropped_image(text)
        self.buffer.insert_text(self.pastes.fold(text) if image is None else self.images.add(image))

    def paste_image(self) -> None:
        self._app.spawn(self._paste_image())

    async def _paste_image(self) -> None:
        image = await asyncio.to_thread(clipboard_image)
        if image is None:
            self._app.hint(self._app.words("no-image"))
        else:
            self.buffer.insert_text(self.images.add(image))

    def edit(self) -> None:
        """Write on in `$VISUAL` or `$EDITOR`."""
        text = self.pastes.unfold(self.buffer.text)
        self.buffer.text = text
        self._app.spawn(self._edit())

    async def _edit(self) -> None:
        try:
            text = await run_in_terminal(partial(edit_text, self.buffer.text), in_executor=True)
        except ConfigurationError as error:
            self._app.presenter.error(str(error))
            return
        self.buffer.text = text.rstrip("\n")
        self.buffer.cursor_position = len(self.buffer.text)
        self._app.surface.redraw()

    # --- completing ---------------------------------------------------------------------------------

    def complete(self, step: int) -> None:
        buffer = self.buffer
        if buffer.complete_state is None:
            if not self._complete_now():
                buffer.start_completion(select_first=True)
        elif len(buffer.complete_state.completions) == 1:
            buffer.apply_completion(buffer.complete_state.completions[0])
            self.take_completion()
        elif step > 0:
            buffer.complete_next()
        else:
            buffer.complete_previous()

    def _complete_now(self) -> bool:
        """Put in the command that fits best: a key right behind this one does not wait for the list."""
        document, completer = self.buffer.document, self.buffer.completer
        if document.text_before_cursor.endswith(("/", " ")):
            return False
        found = next(
            iter(completer.get_completions(document, CompleteEvent(completion_requested=True))), None
        )
        if found is not None:
            self.buffer.apply_completion(found)
        return found is not None

    def accept(self) -> None:
        """What is marked goes into the line; a command that needs nothing more is sent."""
        self.buffer.complete_state = None
        if self.buffer.text.startswith("/") and not self._needs_words():
            self.send()
        else:
            self.take_completion()

    def _needs_words(self) -> bool:
        """Whether what stands in the line is more than the name of a command, or a command that cannot do
        without an argument."""
        command = self._app.session.commands.find(self.buffer.text[1:])
        return command is None or command.argument_hint.startswith("<")

    def take_completion(self) -> None:
        """What is marked stays in the line, which goes on behind it."""
        self.buffer.complete_state = None
        if not self.buffer.document.text_before_cursor.endswith("/"):
            self.buffer.insert_text(" ")

    def close_completion(self) -> bool:
        """Whether there was a list to close."""
        is_open = self.buffer.complete_state is not None
        if is_open:
            self.buffer.cancel_completion()
        return is_open
