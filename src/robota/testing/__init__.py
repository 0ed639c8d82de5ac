"""What robota's own tests are made of, for the tests of people who build on it."""

from __future__ import annotations

from robota.providers.scripted import Delay, Fail, ScriptedProvider, Stall, call

__all__ = ["Delay", "Fail", "ScriptedProvider", "Stall", "call"]
