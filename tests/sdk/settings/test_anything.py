"""Whatever a settings file holds, loading it ends with settings, and no rule of another layer is lost."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sdk.settings.conftest import FILES, House

from robota.core.hooks.definition import HOOK_EVENTS, check_hooks
from robota.sdk.settings import fit_to_tools
from robota.sdk.settings.keys import KEYS, TABLE

TOOLS = ("Bash", "Read", "Write", "Edit")
RULES = [
    "Bash(ls)",
    "Bash(",
    "Read(/x/*.py)",
    "Edit(!x)",
    "*",
    "Write(a)",
    "Skill(a:*)",
    "Raed(x)",
    "$ENV:HOME",
    "",
]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from([*RULES, *(word for key in TABLE for word in key.kind.get("enum", ()))]),
)  # fmt: skip
names = st.one_of(
    st.sampled_from(
        [part for key in KEYS for part in key.split(".")] + [*HOOK_EVENTS, "matcher", "type", "command"]
    ),
    st.text(max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def nest(flat: dict[str, Any]) -> dict[str, Any]:
    """`{"a.b": 1}` as `{"a": {"b": 1}}`, as far as one does not stand in the way of another."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        place = nested
        *above, last = name.split(".")
        for part in above:
            place = place.setdefault(part, {}) if isinstance(place.get(part, {}), dict) else {}
        place[last] = value
    return nested


files = st.dictionaries(st.sampled_from(list(KEYS)), values, max_size=6).map(nest) | st.dictionaries(
    names, values, max_size=5
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("anything")


@settings(
    max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(content=files, layer=st.sampled_from(list(FILES)), trusted=st.booleans())
def test_any_object_can_be_loaded_and_forbids_no_less(
    shared: Path, content: dict[str, Any], layer: str, trusted: bool
) -> None:
    house = House(Path(tempfile.mkdtemp(dir=shared)))
    others = [each for each in FILES if each != layer]
    house.write(**{each: {"permissions": {"deny": [f"Read({each}.txt)"]}} for each in others})
    house.path(layer).parent.mkdir(parents=True, exist_ok=True)
    house.path(layer).write_text(json.dumps(content))

    loaded = fit_to_tools(house.load(trusted=trusted), TOOLS)

    assert {f"Read({each}.txt)" for each in others} <= set(loaded.rules.deny)
    check_hooks(loaded.hooks, TOOLS)
    for key in KEYS:
        loaded.get(key)
    for problem in loaded.problems:
        assert str(problem).isprintable()
    assert all(isinstance(secret, str) for secret in loaded.secrets())
    assert all(isinstance(value, str) for value in loaded.env.values())
    if layer not in ("user", "claude_user"):
        assert loaded.rules.mode != "bypassPermissions"
        assert loaded.sandbox.mode != "off"
