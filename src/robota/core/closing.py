"""`with` and `async with` for whatever has an end of its own."""

from __future__ import annotations

from typing import Self


class AsyncClosing:
    """Something that `aclose` puts away."""

    __slots__ = ()

    async def aclose(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Closing(AsyncClosing):
    """The same for code without an event loop too."""

    __slots__ = ()

    def close(self) -> None:
        """`aclose`, for code that uses `run_sync`."""
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        run_sync(self.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
