from __future__ import annotations

import hashlib
import os
import socket
import struct
import subprocess
import sys
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.support.unprivileged import public_directory, run_unprivileged

from robota.core.messages import FilePart, ImagePart
from robota.core.tool import ToolContext, ToolResult, tool_class
from robota.tools import edit_tool, read_tool
from robota.tools.files.change import MAX_FILE_BYTES
from robota.tools.files.reading import DEFAULT_LIMIT, MAX_IMAGE_BYTES, MAX_LINE_CHARACTERS, MAX_OUTPUT_BYTES

pytestmark = pytest.mark.anyio


async def read(path: Path | str, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
    return await read_tool().run({"file_path": str(path), **arguments}, context or ToolContext())


@pytest.fixture
def write(tmp_path):
    def write(content: bytes | str, name: str = "a.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# --- what it shows -------------------------------------------------------------------------------------


async def test_a_file_comes_back_as_numbered_lines_under_a_header(write):
    path = write("".join(f"line {n}\n" for n in range(1, 11)))
    shown = "\n".join(f"{n:>2}\tline {n}" for n in range(1, 11))
    assert (await read(path)).text == f"[File: {path} (10 lines)]\n{shown}"


@pytest.mark.parametrize(
    ("offset", "limit", "span", "numbers"),
    [
        (3, 2, "lines 3-4 of 5", "34"),
        (-7, 1, "lines 1-1 of 5", "1"),
        (4, 9, "lines 4-5 of 5", "45"),
        (2.0, 1.0, "lines 2-2 of 5", "2"),
    ],
)
async def test_offset_and_limit_choose_a_range(write, offset, limit, span, numbers):
    path = write("1\n2\n3\n4\n5")
    shown = "".join(f"\n{n}\t{n}" for n in numbers)
    assert (await read(path, offset=offset, limit=limit)).text == f"[File: {path} ({span})]{shown}"


async def test_an_offset_behind_the_end_is_explained(write):
    path = write("a\nb\n")
    assert (await read(path, offset=9)).text == (
        f"[File: {path} (2 lines)]\n[There is nothing at line 9: the file ends at line 2.]"
    )


JAPANESE = "これは日本語のテキストファイルです。設定を変更するには、手順に従ってください。\nint main() {}\n"
CHINESE = "这是一个中文文本文件。如果您需要更改设置，请按照以下步骤操作。\nint main() {}\n"
TAIWANESE = "這是一個中文文字檔案。如果您需要更改設定，請按照以下步驟操作。\n"
KOREAN = "이것은 한국어 텍스트 파일입니다. 설정을 변경하려면 다음 단계를 따르십시오.\n"
RUSSIAN = "Это русский текстовый файл. Чтобы изменить настройки, выполните действия.\nint main() {}\n"
GERMAN = "Schöne Grüße aus München – „bis bald“.\n"


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (JAPANESE, "cp932", "Shift-JIS"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        (CHINESE, "gbk", "GBK"),
        (TAIWANESE, "big5", "Big5"),
        (KOREAN, "euc_kr", "EUC-KR"),
        (RUSSIAN, "koi8-r", "KOI8-R"),
        (RUSSIAN, "cp1251", "Windows-1251"),
        (GERMAN, "cp1252", "Windows-1252"),
        (
            '<?xml version="1.0" encoding="iso-8859-2"?>\n<a>Příliš žluťoučký kůň</a>\n',
            "iso8859-2",
            "iso8859-2",
        ),
        ('<html><meta charset="windows-1250"><p>Zażółć gęślą jaźń</p>\n', "cp1250", "cp1250"),
        ("#!/usr/bin/python\n# -*- coding: koi8-r -*-\nx = 'Я'\n", "koi8-r", "KOI8-R"),
    ],
)
async def test_common_encodings_are_recognised_and_kept_by_an_edit(write, text, encoding, name):
    path, context = write(text.encode(encoding)), ToolContext()
    note = f"[The file is not valid UTF-8 and is shown as {name}; Edit and Write keep that.]"
    lines = [f"{number}\t{line}" for number, line in enumerate(text.splitlines(), 1)]
    assert (await read(path, context)).text.splitlines()[1:] == [*lines, note]

    first = text.splitlines()[0]
    arguments = {"file_path": str(path), "old_string": first, "new_string": f"{first} ok"}
    assert (await edit_tool().run(arguments, context)).ok
    assert path.read_bytes() == text.replace(first, f"{first} ok", 1).encode(encoding)


@pytest.mark.parametrize("declared", ["no-such-code", "utf-8", "ascii"])
async def test_a_declaration_that_does_not_fit_is_not_believed(write, declared):
    path = write(f'<?xml version="1.0" encoding="{declared}"?>\n<a>'.encode() + "é\n".encode("latin-1"))
    assert "its encoding was not recognised: it is shown as Latin-1" in (await read(path)).text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (
            "Αυτό το αρχείο περιέχει ελληνικό κείμενο. Για να αλλάξετε τις ρυθμίσεις, δείτε εδώ.\n",
            "iso8859-7",
        ),
        ("קובץ זה מכיל טקסט בעברית. כדי לשנות את ההגדרות יש לבצע את הצעדים הבאים, ואז לשמור\n", "cp1255"),
        ("Zażółć gęślą jaźń; zmień ustawienia – później możesz je także przywrócić.\n", "cp1250"),
    ],
)
async def test_an_encoding_that_is_not_known_is_not_taken_for_another(write, text, encoding):
    path, context = write(text.encode(encoding)), ToolContext()
    assert "its encoding was not recognised: it is shown as Latin-1" in (await read(path, context)).text


@pytest.mark.parametrize(("content", "count"), [("", 0), ("\n", 1), ("a", 1), ("a\n\n", 2)])
async def test_the_empty_piece_after_the_last_newline_is_no_line(write, content, count):
    assert (await read(write(content))).text.splitlines()[0].endswith(f"({count} lines)]")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeffgrüß\nb".encode(), "1\tgrüß\n2\tb"),
        (b"a\r\nb\r\n", "1\ta\n2\tb"),
        ("a\u2028b\x0cc".encode(), "1\ta\u2028b\x0cc"),
        ("grüß\r\nb".encode("utf-16"), "1\tgrüß\n2\tb\n[The file is encoded in UTF-16.]"),
        ("\ufeffgrüß".encode("utf-16-be"), "1\tgrüß\n[The file is encoded in UTF-16.]"),
        (
            "plain words, no mark".encode("utf-16-le"),
            "1\tplain words, no mark\n[The file is encoded in UTF-16.]",
        ),
        (
            "grüß".encode("latin-1"),
            "1\tgrüß\n"
            "[The file is not valid UTF-8 and its encoding was not recognised: it is shown as Latin-1.]",
        ),
        (
            "grüß übt".encode() + b"\xff",
            "1\tgrüß übt\ufffd\n[The file is not valid UTF-8, first at byte 11; "
            "what does not fit is shown as \ufffd, and Edit refuses it.]",
        ),
    ],
)
async def test_encodings_and_line_ends_are_understood(write, data, text):
    assert (await read(write(data))).text.partition("\n")[2] == text


async def test_a_relative_path_starts_at_the_working_directory(write):
    path = write("x")
    context = ToolContext(cwd=str(path.parent))
    assert (await read("./a.txt", context)).text == f"[File: {path} (1 lines)]\n1\tx"


async def test_dots_behind_a_link_lead_where_the_link_leads(write, tmp_path):
    write("outer")
    inner = tmp_path / "real" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "real" / "a.txt").write_text("inner")
    (tmp_path / "link").symlink_to(inner)
    assert (await read("link/../a.txt", ToolContext(cwd=str(tmp_path)))).text.endswith("1\tinner")


async def test_the_camel_case_spelling_is_accepted(write):
    result = await read_tool().run({"filePath": str(write("x"))}, ToolContext())
    assert result.text.endswith("1\tx")


async def test_a_file_is_read_through_a_link(write, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(write("x"))
    assert (await read(link)).text == f"[File: {link} (1 lines)]\n1\tx"


# --- limits --------------------------------------------------------------------------------------------


async def test_the_default_limit_says_what_it_left_out(write):
    lines = (await read(write("x\n" * (DEFAULT_LIMIT + 5)))).text.splitlines()
    assert lines[0].endswith("(lines 1-2000 of 2005)]")
    assert lines[-2:] == ["2000\tx", "[5 more lines were left out. Use offset 2001 to read on.]"]


async def test_a_long_line_is_cut_with_a_note(write):
    text = (await read(write("y" * (MAX_LINE_CHARACTERS + 7) + "\nz"))).text
    assert text.endswith("\n1\t" + "y" * MAX_LINE_CHARACTERS + "… [7 more characters left out]\n2\tz")


async def test_the_result_has_at_most_so_many_bytes(write):
    path = write(("ü" * 999 + "\n") * 1_000)
    text = (await read(path, limit=1_000)).text
    assert len(text.encode()) < MAX_OUTPUT_BYTES + 300
    assert text.splitlines()[-1] == "[870 more lines were left out. Use offset 131 to read on.]"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp932"])
async def test_every_line_of_a_huge_file_is_reached(write, encoding):
    lines = [f"{number} {JAPANESE[:30]}" for number in range(1, MAX_FILE_BYTES // 40)]
    path, context = write("\n".join(lines).encode(encoding)), ToolContext()
    size, last = path.stat().st_size, len(lines)
    assert size > MAX_FILE_BYTES
    shown = (await read(path, context, offset=last - 1)).text.splitlines()
    assert shown[:3] == [
        f"[File: {path} (lines {last - 1}-{last} of {size:,} bytes)]",
        f"{last - 1}\t{lines[-2]}",
        f"{last}\t{lines[-1]}",
    ]
    assert not any("There is more" in line for line in shown)
    middle = (await read(path, context, offset=last // 2, limit=2)).text.splitlines()
    assert middle[1:3] == [f"{last // 2 + at}\t{lines[last // 2 + at - 1]}" for at in (0, 1)]
    assert middle[-1] == f"[There is more. Use offset {last // 2 + 2} to read on.]"
    beyond = (await read(path, context, offset=last + 5)).text
    assert beyond.endswith(f"[There is nothing at line {last + 5}: the file ends at line {last}.]")
    assert context.files.get(str(path)) is None


async def test_a_line_longer_than_the_room_for_it_is_cut_and_counted(write):
    path = write("x" * (MAX_FILE_BYTES + 5) + "\r\nshort\n")
    text = (await read(path)).text
    rest = MAX_FILE_BYTES + 6 - MAX_LINE_CHARACTERS
    assert text.endswith(f"x… [{rest} more characters left out]\n2\tshort")


async def test_wrong_arguments_are_explained(tmp_path):
    result = await read(tmp_path, limit=0, line=3)
    assert result.error == (
        "The arguments of 'Read' do not fit: 'limit' must be at least 1, got 0; "
        "unknown field 'line'; allowed: 'file_path', 'offset', 'limit'."
    )


# --- pictures and documents ----------------------------------------------------------------------------


def png(width: int = 3, height: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def webp(kind: bytes, body: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


GIF = b"GIF89a\x03\0\x02\0\0\0\0,\0\0\0\0\x03\0\x02\0\0\x02\x02D\x01\0;"
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04JF\xff\xff\xc4\x00\x02\xff\xc2\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00"
    b"\xff\xda\x00\x02data\xff\xd9 and what a camera adds"
)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(), "PNG"),
        (GIF, "GIF"),
        (JPEG, "JPEG"),
        (webp(b"VP8X", b"\0\0\0\0\x02\0\0\x01\0\0"), "WebP"),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 2 | 1 << 14) + b"\0"), "WebP"),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x03\0\x02\0\0\0"), "WebP"),
    ],
)
async def test_an_image_is_attached_whatever_its_name(write, data, kind):
    path, context = write(data, "picture.txt"), ToolContext()
    result = await read(path, context)
    assert result.text == f"[Image: {path} ({kind}, 3x2, {len(data):,} bytes), attached]"
    assert result.parts == (ImagePart(b64encode(data).decode(), f"image/{kind.lower()}"),)
    assert context.files.get(str(path)) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("data", [png()[:-8], GIF[:-1], JPEG[:22], webp(b"VP8X", b"\0" * 10)[:-1]])
async def test_an_image_that_is_cut_off_is_only_bytes(write, data):
    result = await read(write(data))
    assert (result.parts, "Image" in result.text) == ((), False)


async def test_an_image_of_too_many_bytes_is_refused(write):
    path = write(png() + b"\0" * MAX_IMAGE_BYTES)
    size = path.stat().st_size
    assert (await read(path)).error == (
        f"Image cannot be shown: {path} ({size:,} bytes are too many, the limit is 5,242,880; "
        "make it smaller first)"
    )


async def test_an_image_of_too_many_pixels_is_refused(write):
    path = write(png(8_001, 1))
    assert (await read(path)).error == (
        f"Image cannot be shown: {path} (8001x1 is too large, the limit is 8000 a side; "
        "make it smaller first)"
    )


PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\nstartxref\n9\n%%EOF\n"


async def test_a_pdf_is_attached(write):
    path = write(PDF, "paper.pdf")
    result = await read(path)
    assert result.text == f"[PDF: {path} ({len(PDF)} bytes), attached]"
    assert result.parts == (FilePart(b64encode(PDF).decode(), "application/pdf", "paper.pdf"),)


async def test_an_encrypted_pdf_is_refused(write):
    path = write(PDF.replace(b"trailer\n<<", b"trailer\n<</Encrypt 2 0 R"))
    assert (await read(path)).error == (f"PDF cannot be shown: {path} (it is encrypted; decrypt it first)")


async def test_a_pdf_of_too_many_bytes_is_refused(write):
    path = write(PDF + b"\0" * MAX_FILE_BYTES)
    assert (await read(path)).error == (
        f"PDF cannot be shown: {path} ({path.stat().st_size:,} bytes are too many, the limit is 10,485,760; "
        "use a shell command such as pdftotext)"
    )


async def test_a_pdf_that_is_cut_off_is_shown_as_the_text_it_is(write):
    assert (await read(write(PDF[:-6]))).text.splitlines()[1] == "1\t%PDF-1.4"


# --- what it refuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none.txt", "file/below", "dangling"])
async def test_a_missing_file_is_named(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    result = await read(tmp_path / name)
    assert (result.ok, result.error) == (False, f"File not found: {tmp_path / name}")


async def test_a_directory_is_no_file(tmp_path):
    assert (
        await read(tmp_path)
    ).error == f"Path is not a file: {tmp_path} (it is a directory; use Glob to list it)"


async def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert (await read(tmp_path / "fifo")).error == f"Path is not a file: {tmp_path / 'fifo'} (it is a FIFO)"


async def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert (await read("s")).error == f"Path is not a file: {tmp_path / 's'} (it is a socket)"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
async def test_a_device_is_refused(path):
    assert (await read(path)).error.startswith(f"Path is not a file: {path} (it is a device")


async def test_a_device_behind_a_link_is_refused(tmp_path):
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert (
        await read(tmp_path / "zero")
    ).error == f"Path is not a file: {tmp_path / 'zero'} (it is a device)"


async def test_links_in_a_circle_are_explained(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert (await read(tmp_path / "a")).error.startswith(
        f"File not found: {tmp_path / 'a'} (its links lead in a circle"
    )


def test_a_file_without_permission_is_named():
    with public_directory() as directory:
        path = directory / "a.txt"
        path.write_text("x")
        assert run_unprivileged("Read", file_path=str(path)) == f"[File: {path} (1 lines)]\n1\tx"
        path.chmod(0)
        assert run_unprivileged("Read", file_path=str(path)) == f"Error: Permission denied: {path}"


def test_a_directory_that_may_not_be_passed_through_is_named():
    with public_directory() as directory:
        path = directory / "a.txt"
        path.write_text("x")
        directory.chmod(0o700)
        path.chmod(0)
        assert run_unprivileged("Read", file_path=str(path)) == f"Error: Permission denied: {path}"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"a" * 8_191 + b"\0", b"\xff\xfe\0\0a\0\0\0"])
async def test_a_binary_file_is_refused(write, data):
    path = write(data)
    assert (await read(path)).error == f"Binary file not supported: {path} ({len(data):,} bytes)"


async def test_a_nul_far_behind_does_not_make_a_file_binary(write):
    assert (await read(write(b"a\n" * 4_096 + b"\0"))).ok


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000, "\ud800"])
async def test_an_impossible_name_is_an_error_result(tmp_path, name):
    result = await read(name, ToolContext(cwd=str(tmp_path)))
    assert result.error_code == "unreadable"


# --- what it remembers ---------------------------------------------------------------------------------


async def test_the_version_that_was_read_is_remembered_by_real_path(write, tmp_path):
    data = b"\xef\xbb\xbfa\r\nb"
    path, context = write(data), ToolContext()
    (tmp_path / "link").symlink_to(path)
    await read(tmp_path / "link", context, limit=1)
    assert context.files.get(str(path)) == hashlib.sha256(data).hexdigest()


async def test_a_failed_read_remembers_nothing(write):
    path, context = write(b"\0"), ToolContext()
    await read(path, context)
    assert context.files.get(str(path)) is None


def test_the_tool_is_described_for_the_model():
    made = read_tool()
    assert (made.name, tool_class(made)) == ("Read", "inspect")
    assert made.description.startswith("Read a file.")
    assert list(made.parameters["properties"]) == ["file_path", "offset", "limit"]


def test_making_the_tool_opens_and_loads_nothing():
    script = """
import sys
from robota.tools import read_tool
read_tool()
unwanted = ("anyio", "hashlib", "pydantic", "robota.tools.files", "robota.tools.signature")
print([name for name in unwanted if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
