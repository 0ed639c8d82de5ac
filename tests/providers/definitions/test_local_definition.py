from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.errors import ConfigurationError
from robota.core.provider_definition import ProviderConfig
from robota.providers.local import define

pytestmark = pytest.mark.anyio

DEFINITION = define()


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path))
    monkeypatch.delenv("ROBOTA_LOCAL_MODEL", raising=False)
    directory = tmp_path / "models"
    directory.mkdir()
    return directory


async def probe(model: str | None, **options: object) -> tuple[bool, str]:
    assert DEFINITION.probe is not None
    result = await DEFINITION.probe(ProviderConfig(model=model, options=options))
    return result.ok, result.message


async def test_the_catalogue_is_what_lies_in_the_directory(models: Path) -> None:
    (models / "mine.gguf").write_bytes(b"GGUF")
    assert DEFINITION.refresh is not None

    catalog = await DEFINITION.refresh(ProviderConfig())

    assert catalog.status == "live"
    assert [entry.id for entry in catalog.entries] == ["mine"]
    assert await probe("mine") == (True, "The local provider answers and has mine.")
    assert await probe("mime") == (False, "The local provider has no model 'mime': the nearest is mine.")


async def test_without_any_model_it_is_said_how_to_get_one() -> None:
    expected = "The local provider has no model yet: see `robota model list` and pull one."
    assert await probe(None) == (False, expected)
    with pytest.raises(ConfigurationError, match="has no model yet"):
        DEFINITION.create(ProviderConfig())


async def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.gguf")
    assert await probe(gone) == (False, f"The local provider finds no file {gone}.")


async def test_a_wrong_option_is_one_sentence() -> None:
    assert await probe("/m.gguf", threads="two") == (
        False,
        "The option 'threads' of the local provider must be a whole number.",
    )
