"""Large libraries that few tests use, loaded when one of these does.

Every process that runs tests loads all of their modules first; these would take it a third of that time.
"""

from __future__ import annotations

import importlib
from typing import Any


class Lazy:
    """Stands for a module wherever its attributes are asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks at everything in a module of tests
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


anthropic: Any = Lazy("anthropic")
genai: Any = Lazy("google.genai")
openai: Any = Lazy("openai")
