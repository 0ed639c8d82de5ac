"""Files as an editor has them: what its user sees counts, also what is not saved yet.

The default is no editor; then the disk counts. Whatever an editor says, a call was judged by its path before,
the file has to be one that may be read or written here, and undo has saved what was on the disk.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from robota.tools.files.directory import Content
from robota.tools.files.text import decode

MARK = b"\xef\xbb\xbf"


class EditorFiles(Protocol):
    """Called in worker threads, so both may block; neither raises."""

    def read(self, path: str) -> str | None:
        """The text of a file; `None` if the editor has none to give."""
        ...

    def write(self, path: str, text: str) -> bool:
        """Put a text into a file, on the disk too; `False` if that has to be done without the editor."""
        ...


def as_edited(path: str, content: Content, editor: EditorFiles | None) -> Content:
    """What a file holds in the editor, in the encoding that it has on the disk."""
    if editor is None or not content.whole:
        return content
    known = decode(content.data)
    if known is None or known.invalid_at is not None:
        return content
    text = editor.read(path)
    if text is None or text == known.text:
        return content
    try:
        return replace(content, data=known.format.encode(text))
    except UnicodeEncodeError:
        return content


def write_in_editor(path: str, data: bytes, editor: EditorFiles | None) -> bool:
    """Let the editor write it; only UTF-8 is sure to arrive as it is."""
    if editor is None or data.startswith(MARK):
        return False
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return editor.write(path, text)
