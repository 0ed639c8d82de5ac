from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from robota.core.tool import ToolContext, ToolResult
from robota.tools.builtins.files import read_tool
from robota.tools.files.reading import MAX_OUTPUT_CHARACTERS, MAX_SOURCE_CHARACTERS, Notebook, render_notebook

pytestmark = pytest.mark.anyio

NOTE = "[This shows the notebook's cells. The file itself is JSON, and Edit works on that.]"


def notebook(*cells: Any, **metadata: Any) -> bytes:
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode()


def code(source: Any = "x", *outputs: Any, run: int | None = None) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "execution_count": run, "outputs": list(outputs)}


def cell_of(*outputs: Any) -> str:
    """The only cell's output as it is shown."""
    shown = render_notebook(notebook(code("x", *outputs)))
    assert shown is not None
    return shown.cells[0].removeprefix("--- Cell 1 (code) ---\nx\n--- Output of cell 1 ---\n")


async def read(path: Path, **arguments: Any) -> ToolResult:
    return await read_tool().run({"file_path": str(path), **arguments}, ToolContext())


async def test_a_notebook_is_shown_cell_by_cell(tmp_path):
    path = tmp_path / "a.ipynb"
    stream = {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}
    path.write_bytes(
        notebook(
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            code(["for i in (1, 2):\n", "    print(i)\n"], stream, run=5),
            code(""),
            kernelspec={"language": "python"},
        )
    )
    assert (await read(path)).text.splitlines() == [
        f"[Notebook: {path} (3 cells of python)]",
        "--- Cell 1 (markdown) ---",
        "# Title",
        "text",
        "--- Cell 2 (code, run as 5) ---",
        "for i in (1, 2):",
        "    print(i)",
        "--- Output of cell 2 ---",
        "1",
        "2",
        "--- Cell 3 (code) ---",
        "",
        NOTE,
    ]


async def test_offset_and_limit_count_cells(tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook(*(code(f"cell {n}") for n in range(1, 10))))
    assert (await read(path, offset=3, limit=2)).text.splitlines() == [
        f"[Notebook: {path} (cells 3-4 of 9)]",
        "--- Cell 3 (code) ---",
        "cell 3",
        "--- Cell 4 (code) ---",
        "cell 4",
        NOTE,
        "[5 more cells were left out. Use offset 5 to read on.]",
    ]
    assert (await read(path, offset=20)).text.endswith(
        "[There is nothing at cell 20: the file ends at cell 9.]"
    )


async def test_a_long_notebook_is_cut_between_cells(tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook(*(code("y" * 19_000) for _ in range(20))))
    text = (await read(path)).text
    assert len(text) < 256 * 1024 + 500
    assert text.endswith("[7 more cells were left out. Use offset 14 to read on.]")


async def test_a_notebook_that_was_read_is_remembered_by_its_bytes(tmp_path):
    path, context = tmp_path / "a.ipynb", ToolContext()
    path.write_bytes(notebook())
    await read_tool().run({"file_path": str(path)}, context)
    assert context.files.get(str(path)) == hashlib.sha256(notebook()).hexdigest()


def test_a_result_is_shown_as_plain_text_and_its_image_as_a_note():
    data = {"text/plain": ["<Figure>"], "text/html": "<b>", "image/png": "iVBORw0KGgo=" * 100}
    output = {"output_type": "display_data", "data": data}
    assert cell_of(output) == "<Figure>\n[image/png: about 900 bytes, not shown]"


def test_a_result_without_plain_text_is_named():
    output = {"output_type": "execute_result", "data": {"text/html": "<b>", "application/json": {}}}
    assert cell_of(output) == "[text/html, application/json: not shown]"


def test_an_error_is_shown_without_terminal_colours():
    output = {
        "output_type": "error",
        "ename": "E",
        "evalue": "v",
        "traceback": ["\x1b[31mline 1\x1b[0m", "E: v"],
    }
    assert cell_of(output) == "line 1\nE: v"
    assert cell_of({"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}) == "E: v"


def test_long_outputs_keep_their_head_and_tail():
    output = {"output_type": "stream", "text": "first\n" + "x" * 100_000 + "\nlast"}
    shown = cell_of(output)
    assert len(shown) <= MAX_OUTPUT_CHARACTERS
    assert (shown[:5], shown[-4:], "characters left out" in shown) == ("first", "last", True)


def test_a_long_source_is_cut_with_a_note():
    shown = render_notebook(notebook(code("y" * (MAX_SOURCE_CHARACTERS + 7))))
    assert shown.cells[0].endswith("y\n[... 7 more characters left out]")


def test_the_language_is_found_in_either_place():
    assert render_notebook(notebook(language_info={"name": "julia"})) == Notebook("julia", ())


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (3, "--- Cell 1 (unknown) ---\n"),
        ({"cell_type": 1, "source": {"a": 1}, "outputs": "x"}, "--- Cell 1 (unknown) ---\n"),
        (code([1, "a", None], 5, {"text": 7}, {"data": []}), "--- Cell 1 (code) ---\na"),
        (code("a", {"data": {}}, {"data": {"image/png": None}}),
         "--- Cell 1 (code) ---\na\n--- Output of cell 1 ---\n[image/png: about 0 bytes, not shown]"),
    ],
)  # fmt: skip
def test_odd_cells_are_shown_as_far_as_they_go(cell, shown):
    assert render_notebook(notebook(cell)) == Notebook("", (shown,))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"cells": 3}', b'{"worksheets": []}', b"\xff{}", b"[" * 100_000]
)
async def test_what_is_no_notebook_is_shown_as_text(tmp_path, data):
    path = tmp_path / "a.ipynb"
    path.write_bytes(data)
    assert (await read(path)).text.startswith(f"[File: {path} (")


def test_a_byte_order_mark_is_no_obstacle():
    assert render_notebook(b"\xef\xbb\xbf" + notebook()) == Notebook("", ())
