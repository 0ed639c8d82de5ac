"""Files that a prompt names with `@path` go with it; what cannot go is said in a sentence."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.context.files import Disk

from robota.core.messages import FilePart, ImagePart, TextPart
from robota.sdk.context.references import ExpandedPrompt, ReferenceScope, expand_references, refer_to

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def expand(disk: Disk, prompt: Any, **scope: Any) -> ExpandedPrompt:
    return expand_references(prompt, ReferenceScope(cwd=str(disk.project), home=str(disk.home), **scope))


def test_a_file_goes_behind_the_prompt(disk: Disk) -> None:
    disk.write({"src/a.py": "print(1)\n", "my notes.md": "N"})
    found = expand(disk, 'Look at @src/a.py, "@src/a.py" and @"my notes.md".')
    assert found.prompt == (
        'Look at @src/a.py, "@src/a.py" and @"my notes.md".\n\n'
        '<file path="src/a.py">\nprint(1)\n</file>\n\n<file path="my notes.md">\nN\n</file>'
    )
    assert found.describe() == {
        "references": [{"path": "src/a.py", "size": 9}, {"path": "my notes.md", "size": 1}]
    }
    assert expand(disk, "And @my\\ notes.md!").describe() == {
        "references": [{"path": "my notes.md", "size": 1}]
    }


def test_addresses_decorators_and_code_are_no_references(disk: Disk) -> None:
    disk.write({"a.md": "x", "x.org": "y"})
    for prompt in (
        "Mail me@x.org about @tool, @app.route, @types/node and @alice.",
        "Run `@a.md` and\n```\n@a.md\n```",
        "An @ alone, @@ twice, @{u} and HEAD@{1}.",
        "nothing",
    ):
        assert expand(disk, prompt) == ExpandedPrompt(prompt=prompt)


def test_a_decorator_is_a_reference_when_a_file_has_its_name(disk: Disk) -> None:
    disk.write({"tool": "x"})
    assert expand(disk, "Explain @tool.").describe() == {"references": [{"path": "tool", "size": 1}]}


@pytest.mark.parametrize(
    "name",
    [
        "a.py",
        "app/[id]/page.tsx",
        "(paren).txt",
        "a b.txt",
        "a,b.txt",
        "q'uote.txt",
        "a\\ b",
        "@at.txt",
        "é.txt",
    ],
)
def test_every_name_that_is_offered_leads_to_its_file(disk: Disk, name: str) -> None:
    disk.write({name: "The words of it."})
    assert refer_to(name)
    (reference,) = expand(disk, f"see {refer_to(name)} now").references
    assert reference.path == name


@pytest.mark.parametrize("name", ['q"uote.txt', "two\nlines.txt"])
def test_a_name_that_cannot_be_written_is_not_offered(name: str) -> None:
    assert refer_to(name) == ""


def test_lines_can_be_chosen_also_of_a_long_file(disk: Disk) -> None:
    disk.write({"a.txt": "".join(f"line {n}\n" for n in range(1, 20_001))})
    assert expand(disk, "@a.txt").failures == (
        "@a.txt has 208,894 bytes, and 65,536 go with a prompt: name lines, as in @a.txt#L1-200.",
    )
    found = expand(disk, "@a.txt#L19999-20000 @a.txt#L3")
    assert found.prompt == (
        "@a.txt#L19999-20000 @a.txt#L3\n\n"
        '<file path="a.txt#L19999-20000">\nline 19999\nline 20000\n</file>\n\n'
        '<file path="a.txt#L3">\nline 3\n</file>'
    )
    assert expand(disk, "@a.txt#L90000").failures == ("@a.txt has no line 90000.",)


def test_markdown_may_name_further_files_one_deep(disk: Disk) -> None:
    disk.write({"docs/a.md": "A, see @b.md and @gone.md", "docs/b.md": "B, see @c.md", "docs/c.md": "C"})
    assert [each.path for each in expand(disk, "@docs/a.md").references] == ["docs/a.md", "docs/b.md"]
    assert expand(disk, "@docs/a.md").failures == ()


def test_a_directory_is_listed(disk: Disk) -> None:
    disk.write({"src/b.py": "", "src/a/x.py": "", "src/secret.env": ""})
    found = expand(disk, "What is in @src/?", is_denied=lambda path: path.endswith(".env"))
    assert found.prompt == 'What is in @src/?\n\n<file path="src/">\na/\nb.py\n</file>'


def test_images_and_pdfs_are_attached(disk: Disk) -> None:
    disk.write({"a.png": PIXEL, "b.pdf": b"%PDF-1.4\n%%EOF"})
    prompt = expand(disk, "See @a.png and @b.pdf").prompt
    assert prompt == (
        TextPart("See @a.png and @b.pdf"),
        TextPart("[a.png is attached.]\n\n[b.pdf is attached.]"),
        ImagePart(base64.b64encode(PIXEL).decode(), "image/png"),
        FilePart(base64.b64encode(b"%PDF-1.4\n%%EOF").decode(), "application/pdf", "b.pdf"),
    )


def test_a_prompt_in_parts_keeps_them(disk: Disk) -> None:
    disk.write({"a.md": "A"})
    image = ImagePart("aGk=")
    found = expand(disk, (TextPart("See @a.md"), image))
    assert found.prompt == (TextPart("See @a.md"), image, TextPart('<file path="a.md">\nA\n</file>'))


def test_each_failure_is_a_sentence(disk: Disk) -> None:
    disk.write({"blob": b"\0\1", "secret.md": "x", "~/outside.md": "x"})
    disk.path("link.md").symlink_to(disk.path("~/outside.md"))
    disk.path("loop.md").symlink_to("loop.md")
    found = expand(
        disk,
        '@blob @secret.md @link.md @loop.md @~/outside.md @./gone @"no such" @src/gone.py @REDME.md',
        is_denied=lambda path: path.endswith("secret.md"),
    )
    assert found.failures == (
        "@blob is not text.",
        "@secret.md may not be read: a deny rule of the settings covers it.",
        "@link.md lies outside the workspace: add its directory with --add-dir.",
        "@loop.md lies outside the workspace: add its directory with --add-dir.",
        "@~/outside.md lies outside the workspace: add its directory with --add-dir.",
        "@./gone does not exist: correct the path.",
        "@no such does not exist: correct the path.",
        "@src/gone.py does not exist: correct the path.",
        "@REDME.md does not exist: correct the path.",
    )
    assert found.references == ()
    assert expand(disk, "@link.md", additional_dirs=[str(disk.home)]).failures == ()


def test_number_and_size_are_bounded(disk: Disk) -> None:
    disk.write({f"{n}.txt": "x" * 60_000 for n in range(5)} | {f"{n}.md": "x" for n in range(9)})
    assert expand(disk, " ".join(f"@{n}.md" for n in range(9))).failures == (
        "@8.md is one file too many: a prompt may refer to 8.",
    )
    assert expand(disk, " ".join(f"@{n}.txt" for n in range(5))).failures == (
        "@4.txt is too much: all files of a prompt may have 262,144 bytes together.",
    )
