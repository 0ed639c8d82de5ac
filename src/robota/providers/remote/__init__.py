"""A provider that another robota host runs. The wire between them is in docs/adr/0006-remote-wire.md."""

from robota.providers.remote.provider import RemoteProvider

__all__ = ["RemoteProvider"]
