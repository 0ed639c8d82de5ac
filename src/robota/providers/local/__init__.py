"""A model on this machine: llama.cpp in the process, the files it runs, and servers that run already."""

from robota.providers.local.provider import LocalProvider

__all__ = ["LocalProvider"]
