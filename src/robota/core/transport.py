"""The two roles on either side of a transport, here so that neither needs to import the other."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SessionLike(Protocol):
    """The least a transport may expect of a session."""

    @property
    def session_id(self) -> str: ...


@runtime_checkable
class TransportAdapter(Protocol):
    """Carries a session to the outside world. Attaching only connects the two; the caller starts it."""

    @property
    def name(self) -> str: ...

    # A transport names the kind of session it needs in its own signature, hence `Any`.
    def attach(self, session: Any, /) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
