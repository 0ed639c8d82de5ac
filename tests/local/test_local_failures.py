"""Model files, options and installations that cannot work: one sentence each, before anything is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.scripted_gguf import write_scripted_gguf

from robota.core.errors import ConfigurationError
from robota.providers.local import LocalProvider
from robota.providers.local import engine as engines
from robota.testing.reply_conformance import listen

pytestmark = pytest.mark.anyio


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    return write_scripted_gguf(tmp_path / "model.gguf", "Just text.")


def spoil(path: Path, how: str) -> Path:
    data = path.read_bytes()
    spoiled = {
        "cut in the head": data[:300],
        "cut in the weights": data[: len(data) // 2],
        "another version": data[:4] + b"\x09" + data[5:],
        "no GGUF": b"<html>" + data,
        "empty": b"",
        "of a strange kind": data.replace(b"llama", b"lllll", 1),
    }
    path.write_bytes(spoiled[how])
    return path


@pytest.mark.parametrize(
    "how",
    ["cut in the head", "cut in the weights", "another version", "no GGUF", "empty", "of a strange kind"],
)
async def test_a_file_that_cannot_be_used_is_one_sentence(scripted: Path, how: str) -> None:
    path = spoil(scripted, how)
    async with LocalProvider(path) as provider:
        with pytest.raises(ConfigurationError, match="fetch it again") as caught:
            await listen(provider)

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert engines._places == {}


@pytest.mark.parametrize(
    ("name", "words"), [("gone.gguf", "There is no model file"), (".", "is a directory")]
)
async def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path, name: str, words: str) -> None:
    async with LocalProvider(f"{tmp_path}{os.sep}{name}") as provider:
        with pytest.raises(ConfigurationError, match=words):
            await listen(provider)


async def test_too_little_memory_is_told_before_anything_is_loaded(tmp_path: Path) -> None:
    path = write_scripted_gguf(tmp_path / "model.gguf", "Just text.", context=2_000_000_000)
    async with LocalProvider(path, context_size=2_000_000_000) as provider:
        with pytest.raises(ConfigurationError, match=r"MB of memory .* set a smaller context_size"):
            await listen(provider)


@pytest.mark.parametrize("option", ["context_size", "threads", "max_tokens"])
def test_options_that_make_no_sense_are_refused(scripted: Path, option: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{option} of a local model must be at least 1"):
        LocalProvider(scripted, **{option: 0})


def test_without_the_binding_the_way_to_install_it_is_told(scripted: Path) -> None:
    program = f"""
import asyncio, sys
sys.modules["xllamacpp"] = None
from robota.core.messages import UserMessage
from robota.core.provider import ChatRequest
from robota.providers.local import LocalProvider

async def main():
    request = ChatRequest(model="", messages=[UserMessage("x")])
    async for _ in LocalProvider({str(scripted)!r}).stream(request):
        pass

try:
    asyncio.run(main())
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("ConfigurationError Models on this machine need llama.cpp")
    assert "pip install 'robota[local]'" in done.stdout
