"""The table of keys, its JSON schema and its page are one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from tests.support.documented import ROOT

from robota.sdk.settings.elsewhere import KEPT, WITHOUT_EFFECT
from robota.sdk.settings.keys import KEYS, TABLE, Key, make_schema
from robota.sdk.settings.merge import describe_kind

BEGIN = "<!-- keys: compared with the code by tests/sdk/settings/test_table.py -->"
END = "<!-- end of keys -->"
MERGED = {
    "pool": "pooled",
    "deep": "merged",
    "restrict": "yours, else the project's",
    "least": "the smallest",
}


def make_row(key: Key) -> str:
    remarks = [key.about]
    if key.default is not None:
        remarks.append(f"Default: `{json.dumps(key.default)}`.")
    if key.user_only:
        remarks.append("Not from a project.")
    elif key.not_from_project:
        values = " or ".join(f"`{json.dumps(value)}`" for value in key.not_from_project)
        remarks.append(f"Not {values} from a project.")
    if key.merge in MERGED:
        remarks.append(f"All layers: {MERGED[key.merge]}.")
    return f"| `{key.name}` | {describe_kind(key.kind)} | {' '.join(remarks)} |"


def make_page_table() -> str:
    return "\n".join(["", "| Key | Type | |", "|---|---|---|", *map(make_row, TABLE), ""])


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()

    assert page.partition(BEGIN)[2].partition(END)[0].strip("\n") == make_page_table().strip("\n")


def test_the_published_schema_is_that_of_the_table() -> None:
    published = (ROOT / "docs" / "settings.schema.json").read_text()

    assert published == json.dumps(make_schema(), indent=2) + "\n"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"$schema": "x", "model": "m", "theme": "another program's"},
        {"sandbox": "auto"},
        {"sandbox": {"enabled": True, "filesystem": {"denyRead": ["a"]}}},
        {"autoCompactThreshold": False},
        {"env": {"A": 1, "B": "x", "C": True}},
        {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}},
        {"providers": {"p": {"type": "anthropic", "timeout": 5}}},
    ],
)
def test_the_schema_takes_what_is_right(settings: dict[str, Any]) -> None:
    assert jsonschema_rs.is_valid(make_schema(), settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": ""},
        {"language": 7},
        {"sandbox": "of"},
        {"sandbox": {"enabled": "yes"}},
        {"permissions": {"deny": "Read"}},
        {"permissions": {"defaultMode": "bypass"}},
        {"autoCompactThreshold": 2},
        {"autoCompactThreshold": True},
        {"skillOverrides": {"x": "maybe"}},
    ],
)
def test_the_schema_refuses_what_is_wrong(settings: dict[str, Any]) -> None:
    assert not jsonschema_rs.is_valid(make_schema(), settings)


def test_every_key_is_in_one_place_only() -> None:
    assert len(KEYS) == len(TABLE)
    assert not KEYS.keys() & KEPT
    assert not WITHOUT_EFFECT.keys() & (KEPT | KEYS.keys())
    assert {each for key in TABLE for each in key.instead_of} <= KEYS.keys()
