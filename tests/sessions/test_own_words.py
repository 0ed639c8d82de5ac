"""What robota tells a model is not searched for secrets; everything around it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import robota
from robota.core.plain_text import own_words
from robota.sessions.redaction import Redactor
from robota.sessions.redaction.names import NEEDS
from robota.sessions.redaction.rules import REDACTED
from robota.sessions.redaction.scanner import may_match
from robota.tools.function_tool import text_beside

SOURCES = Path(robota.__file__).parent
SHIPPED = sorted(path for path in SOURCES.rglob("*.md") if path.with_suffix(".py").exists())
MORE = "Never print a token: it is as good as a password, whatever\tthe \\n file says."
TOLD = own_words(f"How to work.\n\n{MORE}")


def write(prompt: str, redactor: Redactor | None = None) -> str:
    record = msgspec.json.encode({"systemPrompt": prompt, "model": "m"})
    return (redactor or Redactor()).json(record, repeated=True).decode()


def test_own_words_stay_as_they_are() -> None:
    assert msgspec.json.decode(write(f"{TOLD}\n\nThe project: shop"))["systemPrompt"].startswith(TOLD)


@pytest.mark.parametrize(
    "prompt",
    [
        f"{TOLD}\n\npassword: hunter2-XyZ-19",
        f"password: hunter2-XyZ-19\n\n{TOLD}",
        f"{TOLD}\n\nexport API_KEY=sk-ant-hunter2-XyZ-19abcdefgh\n\n{TOLD}",
    ],
    ids=["behind", "before", "between"],
)
def test_a_secret_beside_them_is_found(prompt: str) -> None:
    written = write(prompt)
    assert "hunter2-XyZ-19" not in written
    assert REDACTED in written


def test_a_secret_of_our_own_is_found_even_inside_them() -> None:
    assert "How to work" not in write(TOLD, Redactor(["How to work."]))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_shipped_names_no_secret_at_its_end(path: Path) -> None:
    """The words behind it would be taken for its value, and nobody would look."""
    for part in range(path.read_text().count("\n---\n") + 1):
        text = text_beside(str(path.with_suffix(".py")), part)()
        assert not any(need in text.lower()[-40:] for need in NEEDS)
        assert not may_match(text[-40:] + "\n")
