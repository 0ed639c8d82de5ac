"""The words of the interface: `words("view.more-output", count=3)` in the user's language.

The catalogue is one JSON object for each language in `text/`, all with the same keys. A language that tells
one thing from several has a second text, `….one`, beside those that count. What models, tools and
the SDK say is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

ENGLISH = "en"
LANGUAGES = (ENGLISH, "ko")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Of the environment, the first that is set counts."""


class Words:
    """The catalogue of one language."""

    __slots__ = ("_texts", "language")

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self.language = language
        self._texts = texts

    def __call__(self, key: str, **values: object) -> str:
        """The text of that key; where it counts one thing, the text for one if the catalogue has it."""
        if str(values.get("count")) == "1":
            key = f"{key}.one" if f"{key}.one" in self._texts else key
        return self._texts[key].format(**values)


def find_language(wanted: str | None, environment: Mapping[str, str]) -> str:
    """The language of the interface: of the settings, else of the environment, else English."""
    named = wanted or next((environment[name] for name in _VARIABLES if environment.get(name)), ENGLISH)
    short = named.partition("_")[0].partition("-")[0].partition(".")[0].lower()
    return {"korean": "ko", "한국어": "ko"}.get(short, short if short in LANGUAGES else ENGLISH)


@cache
def load_words(language: str) -> Words:
    data = files("robota.tui").joinpath(f"text/{language}.json").read_bytes()
    return Words(language, msgspec.json.decode(data, type=dict[str, str]))
