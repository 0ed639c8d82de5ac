from __future__ import annotations

from robota.testing import ScriptedProvider
from robota.testing.conformance import ProviderConformance


class TestScriptedProvider(ProviderConformance):
    def make_provider(self, script):
        return ScriptedProvider(*script)
