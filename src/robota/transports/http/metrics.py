"""Counts for whoever watches the server, in the text format of Prometheus."""

from __future__ import annotations

import os
import time
from collections import Counter

from robota.transports.host import SessionHost

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What the server has done so far."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        """By status."""
        self._started = time.time()

    def render(self, host: SessionHost) -> str:
        states = Counter(hosted.state for hosted in host.sessions.values())
        readers = sum(len(hosted.readers) for hosted in host.sessions.values())
        lines = [
            *_head("robota_sessions", "gauge", "Sessions that are open, by state."),
            *(f'robota_sessions{{state="{state}"}} {states[state]}' for state in STATES),
            *_head("robota_sessions_opened_total", "counter", "Sessions that were opened."),
            f"robota_sessions_opened_total {host.made}",
            *_head("robota_readers", "gauge", "Clients that follow a session."),
            f"robota_readers {readers}",
            *_head("robota_events_sent_total", "counter", "Events sent, once for each client."),
            f"robota_events_sent_total {host.events_sent}",
            *_head("robota_requests_total", "counter", "Requests answered, by status."),
            *(f'robota_requests_total{{status="{code}"}} {n}' for code, n in sorted(self.requests.items())),
            *_head("process_start_time_seconds", "gauge", "When the server was started."),
            f"process_start_time_seconds {self._started:.3f}",
            *_process(),
        ]
        return "\n".join(lines) + "\n"


STATES = ("running", "asks", "idle", "failed")


def _head(name: str, kind: str, help: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _process() -> list[str]:
    times = os.times()
    lines = [
        *_head("process_cpu_seconds_total", "counter", "Processor time of the server."),
        f"process_cpu_seconds_total {times.user + times.system:.2f}",
    ]
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except OSError:  # not Linux
        return lines
    memory = pages * os.sysconf("SC_PAGE_SIZE")
    return [
        *lines,
        *_head("process_resident_memory_bytes", "gauge", "Memory of the server."),
        f"process_resident_memory_bytes {memory}",
    ]
