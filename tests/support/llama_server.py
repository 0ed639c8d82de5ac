"""A real llama.cpp server in a process of its own, on a free port of the loopback interface."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import os
import sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.verbosity = -1
params.warmup = False
params.fit_params = False
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.n_threads_http = 4
params.n_parallel = 1
params.sampling.seed = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)  # a server that is taken down before its first request never ends
"""


@contextmanager
def llama_server(model: Path) -> Iterator[str]:
    """The address of a server for this model, up while the block runs."""
    program = [sys.executable, "-c", _PROGRAM, str(model)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, "llama.cpp could not load the model"
            yield address
        finally:
            process.stdin.close()
            process.kill()
