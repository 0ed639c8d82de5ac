"""Images in a prompt: from a file that was dropped on the terminal, or from the clipboard."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from urllib.parse import unquote, urlparse

from robota.core.messages import ImagePart, Prompt, TextPart
from robota.core.regular_file import open_regular

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LARGEST = 5 << 20
CLIPBOARD = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
CLIPBOARD_SECONDS = 3.0
_MARK = re.compile(r"\[Image #(\d+)\]")


class Images:
    """The images that the marks in the input stand for."""

    def __init__(self) -> None:
        self._parts: list[ImagePart] = []
        """Of the whole session: a prompt comes back from the queue, from the history, or refused."""

    def add(self, image: ImagePart) -> str:
        """The mark that goes into the input."""
        self._parts.append(image)
        return f"[Image #{len(self._parts)}]"

    def attach(self, text: str) -> Prompt:
        """The prompt with the images whose marks stand in it."""
        numbers = [int(number) for number in _MARK.findall(text)]
        found = [self._parts[number - 1] for number in numbers if 0 < number <= len(self._parts)]
        return (TextPart(text), *found) if found else text


def dropped_image(text: str) -> ImagePart | None:
    """The image file that a paste names and nothing else; a file dropped on a terminal is its quoted path. A
    service refuses a conversation with a damaged one for good: that stays a path."""
    path = _dropped_path(text)
    if not path.lower().endswith(ENDINGS):
        return None
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return None
    return _read(data)


def _read(data: bytes) -> ImagePart | None:
    from robota.sdk.context.references import read_image  # noqa: PLC0415 - few prompts have images

    return read_image(data)


def _dropped_path(text: str) -> str:
    text = text.strip()
    if "\n" in text or len(text) > 4096:
        return ""
    if text.startswith("file://"):
        return unquote(urlparse(text).path)
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    return os.path.expanduser(words[0]) if len(words) == 1 else ""


def clipboard_image() -> ImagePart | None:
    """A PNG image from the clipboard, if a program for that is there and has one."""
    for command in CLIPBOARD:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=CLIPBOARD_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue  # the next program, then
        if done.returncode == 0 and (image := _read(done.stdout)):
            return image
    return None
