"""The editor that `$VISUAL` or `$EDITOR` name."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile

from robota.core.errors import ConfigurationError

USUAL = ("editor", "nano", "vi", "emacs")


def name_editor() -> str:
    """The one that the user wants; empty without one."""
    wishes = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    return next(filter(None, wishes), "")


def run_editor(editor: str, path: str) -> int:
    """Let the user write in a file; the code that the editor ended with."""
    try:
        return subprocess.run([*shlex.split(editor), path], check=False).returncode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(
            f"The editor {editor!r} cannot be started ({why}): set $VISUAL or $EDITOR to another one."
        ) from error


def edit_text(text: str) -> str:
    """What the user makes of a text; a `ConfigurationError` says why there is nothing."""
    editor = name_editor() or next(filter(shutil.which, USUAL), "")
    if not editor:
        raise ConfigurationError("Neither $VISUAL nor $EDITOR is set: set one.")
    try:
        with tempfile.TemporaryDirectory(
            prefix="robota-"
        ) as directory:  # for what editors put beside it, too
            path = os.path.join(directory, "prompt.md")
            with open(path, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
            if code := run_editor(editor, path):
                raise ConfigurationError(f"The editor {editor!r} ended with {code}: the prompt is as it was.")
            with open(path, encoding="utf-8") as stream:
                return stream.read()
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"What {editor!r} wrote is not UTF-8 text: the prompt is as it was."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"What {editor!r} was to write in cannot be used ({error.strerror}): the prompt is as it was."
        ) from error
