"""llama.cpp in this process: a model file is loaded once, shared by all who use it, and unloaded by the last.

Nothing listens on the network: llama.cpp insists on an address, so it gets a socket file in a private
directory that is removed as soon as the model is loaded, and a key that nobody knows. Generation runs in the
calling thread and leaves the interpreter to others; loading holds it, so the file is read into memory before.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from math import prod
from mmap import ACCESS_READ, mmap
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct, field

from robota.core.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType

DEFAULT_CONTEXT = 16384
"""Tokens, unless the model was made for fewer."""
MOST_THREADS = 8
BATCH_TOKENS = 128
"""Prompt tokens between two chances to stop."""
_WORKING_BYTES = 200 * 1024 * 1024
_READ_BYTES = 4 * 1024 * 1024
_LONGEST_SOCKET_PATH = 100


class EngineSettings(Struct, frozen=True, kw_only=True):
    """What makes two users of a file share one engine."""

    path: str
    """Without symbolic links."""
    context: int
    threads: int


def default_threads() -> int:
    """One core is left to everybody else: on a busy machine one thread too many costs a factor of 20."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(1, cores - 1), MOST_THREADS)


class LlamaServer(Protocol):
    """What is used of llama.cpp's binding, which has no types."""

    def handle_chat_completions(self, prompt: bytes, callback: Callable[[bytes], bool], /) -> None: ...

    def handle_metrics(self) -> object: ...


class Engine:
    """A loaded model."""

    __slots__ = ("_server",)

    def __init__(self, settings: EngineSettings, facts: GgufFacts) -> None:
        _require_memory(settings, facts)
        llama = _load_binding()
        with _private_address() as address:
            params = _parameters(llama, settings, address)
            try:
                self._server: LlamaServer | None = llama.Server(params)
                self._server.handle_metrics()  # taken down before its loop runs, it would never end
            except RuntimeError:
                raise ConfigurationError(
                    f"llama.cpp cannot load {settings.path} (a model of kind {facts.architecture!r}): the "
                    "file is damaged or its kind is not supported; fetch it again, or upgrade with "
                    "`pip install -U xllamacpp`."
                ) from None

    def chat(self, body: bytes, on_event: Callable[[bytes], bool]) -> None:
        """Answer a Chat Completions request; each event is handed over until `on_event` says stop.

        What llama.cpp finds wrong with the request is an event with an `error`, or a `ValueError`.
        """
        server = self._server
        if server is not None:
            server.handle_chat_completions(body, on_event)

    def unload(self) -> None:
        """Give the memory back, whoever still holds this object."""
        self._server = None


class _Place(Struct):
    """Where one engine is kept while somebody uses it."""

    lock: Lock = field(default_factory=Lock)
    engine: Engine | None = None
    users: int = 0


_places: dict[EngineSettings, _Place] = {}
_table = Lock()


def borrow_engine(settings: EngineSettings, facts: GgufFacts) -> Engine:
    """The engine for this file, loaded if nobody has it yet; blocks while it is being loaded."""
    with _table:
        place = _places.setdefault(settings, _Place())
        place.users += 1
    try:
        with place.lock:
            if place.engine is None:
                place.engine = Engine(settings, facts)
            return place.engine
    except BaseException:
        return_engine(settings)
        raise


def return_engine(settings: EngineSettings) -> None:
    """One user less; the last one unloads the model."""
    with _table:
        place = _places[settings]
        place.users -= 1
        if place.users == 0:
            del _places[settings]
            if place.engine is not None:
                place.engine.unload()


def _load_binding() -> ModuleType:
    try:
        return import_module("xllamacpp")  # 100 MB of machine code, loaded with the first model
    except ImportError as error:
        raise ConfigurationError(
            f"Models on this machine need llama.cpp ({error}): install it with `pip install 'robota[local]'`."
        ) from None


def _parameters(llama: ModuleType, settings: EngineSettings, address: str) -> object:
    params = llama.CommonParams()
    params.model.path = settings.path
    params.n_ctx = settings.context
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.fit_params = params.warmup = params.ui = params.endpoint_slots = False
    params.prefill_assistant = False
    params.endpoint_metrics = True
    params.cache_ram_mib = 0  # a copy of old prompts in memory, by default of 8 GiB
    params.verbosity = -1
    params.n_threads_http = 1
    params.hostnames = [address]
    params.api_keys = [os.urandom(16).hex()]
    return params


@contextmanager
def _private_address() -> Iterator[str]:
    """An address for llama.cpp that nobody can find; where there are no socket files, a port on loopback."""
    usual = tempfile.gettempdir()
    short = len(usual) + len("/robota-xxxxxxxx/model.sock") <= _LONGEST_SOCKET_PATH
    directory = tempfile.mkdtemp(
        prefix="robota-", dir=usual if short or not os.path.isdir("/tmp") else "/tmp"
    )
    try:
        path = os.path.join(directory, "model.sock")
        usable = os.name == "posix" and len(path) <= _LONGEST_SOCKET_PATH
        yield path if usable else "127.0.0.1"
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def read_ahead(path: str) -> None:
    """Bring the file into the system's cache, so that loading, which stops all of Python, need not wait."""
    buffer = bytearray(_READ_BYTES)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _require_memory(settings: EngineSettings, facts: GgufFacts) -> None:
    needed = facts.file_bytes + facts.cache_bytes * settings.context + _WORKING_BYTES
    free = _free_memory()
    if free is not None and needed > free:
        raise ConfigurationError(
            f"The model {settings.path} needs about {needed >> 20} MB of memory with a context of "
            f"{settings.context} tokens and {free >> 20} MB are free: set a smaller context_size or use a "
            "smaller model."
        )


def _free_memory() -> int | None:
    """Bytes that may be used, where the system tells."""
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


# --- what a file says about itself before it is loaded: its kind, its context, the memory it needs ----------
# Only the head of the file is read. What is wrong with it is one sentence; llama.cpp itself gives no reason.

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_CACHE_BYTES = 2
"""Bytes of one cached number: llama.cpp keeps keys and values in half precision."""

Fact: TypeAlias = str | int | float | bool


class GgufFacts(Struct, frozen=True, kw_only=True):
    architecture: str
    trained_context: int
    """Tokens the model was made for; 0 if the file does not say."""
    cache_bytes: int
    """Memory for each token of context."""
    file_bytes: int
    parameters: int
    """Weights that it was trained with, however few bytes each of them has here."""


def read_gguf_facts(path: str) -> GgufFacts:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(_MAGIC) or file.read(len(_MAGIC)) != _MAGIC:
                raise _damaged(path, "it is not a GGUF file")
            with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                return _read_head(_Head(data), size)
    except FileNotFoundError:
        raise ConfigurationError(
            f"There is no model file {path}: check the path, or see `robota model list`."
        ) from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path} is a directory: name the GGUF file in it.") from None
    except OSError as error:
        raise ConfigurationError(f"The model file {path} cannot be read ({error.strerror}).") from error
    except (struct.error, UnicodeDecodeError, KeyError, ValueError):
        raise _damaged(path, "its head cannot be read") from None


def _damaged(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"The model file {path} cannot be used: {why}; fetch it again or name another.")


class _Head:
    """A place in the file's head that moves on with everything read."""

    __slots__ = ("_data", "at")

    def __init__(self, data: mmap) -> None:
        self._data = data
        self.at = len(_MAGIC)

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return value  # type: ignore[no-any-return]  # struct cannot say what it unpacks

    def text(self) -> str:
        length = self.number("Q")
        start = self.at
        self._skip(length)
        return self._data[start : self.at].decode()

    def fact(self, kind: int) -> Fact | None:
        """A value; lists are passed over."""
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            return self.number(_NUMBERS[kind])
        inner, count = self.number("I"), self.number("Q")
        if inner in (_TEXT, _LIST):
            for _ in range(count):
                if inner == _TEXT:
                    self._skip(self.number("Q"))
                else:
                    self.fact(_LIST)
        else:
            self._skip(struct.calcsize(f"<{_NUMBERS[inner]}") * count)
        return None

    def tensor(self) -> tuple[int, int]:
        """Where the next tensor begins behind the head, and how many weights it has."""
        self.text()
        weights = prod(self.number("Q") for _ in range(self.number("I")))
        self._skip(4)
        return self.number("Q"), weights

    def _skip(self, length: int) -> None:
        if length > len(self._data) - self.at:
            raise ValueError("beyond the end of the file")
        self.at += length


def _read_head(head: _Head, size: int) -> GgufFacts:
    if head.number("I") not in _VERSIONS:
        raise ValueError("another version")
    tensors, count = head.number("Q"), head.number("Q")
    facts: dict[str, Fact | None] = {}
    for _ in range(count):
        name = head.text()
        facts[name] = head.fact(head.number("I"))
    found = [head.tensor() for _ in range(tensors)]
    if head.at + max((begin for begin, _ in found), default=0) >= size:
        raise ValueError("weights are missing")
    kind = facts["general.architecture"]
    return GgufFacts(
        architecture=str(kind),
        trained_context=_count(facts, f"{kind}.context_length"),
        cache_bytes=_cache_bytes(facts, str(kind)),
        file_bytes=size,
        parameters=sum(weights for _, weights in found),
    )


def _cache_bytes(facts: dict[str, Fact | None], kind: str) -> int:
    heads = _count(facts, f"{kind}.attention.head_count") or 1
    size = _count(facts, f"{kind}.embedding_length") // heads
    keys = _count(facts, f"{kind}.attention.key_length") or size
    values = _count(facts, f"{kind}.attention.value_length") or size
    shared = _count(facts, f"{kind}.attention.head_count_kv") or heads
    return _count(facts, f"{kind}.block_count") * shared * (keys + values) * _CACHE_BYTES


def _count(facts: dict[str, Fact | None], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) else 0
