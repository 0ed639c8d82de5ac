"""Connections that are kept for the next request, the one used last on top.

There is no limit to their number, as there is none to the number of agents. A pool belongs to one event loop,
and lives as long as a request is under way or the loop holds the timer that closes what nobody took for long:
a loop that is gone takes its pool and its connections along.
"""

from __future__ import annotations

import asyncio

from robota.http.connection import Connection
from robota.http.url import Origin


class Pool:
    def __init__(self, keep_alive: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.busy: set[Connection] = set()
        self._keep_alive = keep_alive
        """Seconds; with 0 each connection serves one request."""
        self._idle: dict[Origin, list[Connection]] = {}
        """The one that has waited longest is the first."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """A kept connection that is still good, as far as anybody knows."""
        idle = self._idle.get(origin)
        oldest = self.loop.time() - self._keep_alive
        while idle:
            connection = idle.pop()
            if not connection.closed and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep it if its reply was whole and both sides can go on; else close it."""
        self.busy.discard(connection)
        if not self._keep_alive or not connection.rest(self.loop.time()):
            connection.close()
            return
        self._idle.setdefault(connection.origin, []).append(connection)
        if self._timer is None:
            self._timer = self.loop.call_later(self._keep_alive, self._sweep)

    async def aclose(self) -> None:
        """Close all connections, those too on which a reply is under way."""
        for connection in [*self.busy, *(kept for idle in self._idle.values() for kept in idle)]:
            connection.close()
        self.busy.clear()
        self._idle.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.sleep(0)  # the loop closes sockets in its next turn

    def _sweep(self) -> None:
        self._timer = None
        oldest = self.loop.time() - self._keep_alive
        for origin, idle in list(self._idle.items()):
            while idle and (idle[0].closed or idle[0].idle_since <= oldest):
                idle.pop(0).close()
            if not idle:
                del self._idle[origin]
        if self._idle:
            longest = min(idle[0].idle_since for idle in self._idle.values())
            self._timer = self.loop.call_later(longest - oldest, self._sweep)
