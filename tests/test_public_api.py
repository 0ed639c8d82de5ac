from __future__ import annotations

import robota
import robota.core
from robota._stubs import stubs

PUBLIC = [
    "AgentConfig",
    "InteractiveSession",
    "ModelSettings",
    "Plugin",
    "Robota",
    "RunLimits",
    "RunResult",
    "Session",
    "SessionOptions",
    "ToolContext",
    "ToolResult",
    "__version__",
    "choose_provider",
    "create_project_session_store",
    "create_query",
    "evaluate_permission",
    "explain_permission",
    "run_sync",
    "tool",
]


def test_the_public_names_are_the_ones_on_record() -> None:
    assert sorted(robota.__all__) == PUBLIC


def test_every_public_name_can_be_loaded() -> None:
    assert all(getattr(robota, name) is not None for name in PUBLIC)
    assert all(getattr(robota.core, name) is not None for name in robota.core._HOMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(robota, "NoSuchThing")


def test_the_stubs_list_the_same_names_as_the_tables() -> None:
    for path, text in stubs().items():
        assert path.read_text() == text, f"run `make stubs`: {path.name}"
