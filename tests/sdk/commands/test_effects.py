from __future__ import annotations

from typing import Any

import pytest

from robota.sdk.commands.effects import (
    CommandResult,
    Compacted,
    ContextShown,
    CostShown,
    Effect,
    ExitRequested,
    LanguageChosen,
    ModelChosen,
    ModeSet,
    PermissionsShown,
    Renamed,
    ResetRequested,
    ResumePicker,
    SubmitPrompt,
)


@pytest.mark.parametrize(
    ("effect", "data"),
    [
        (ModelChosen("m"), {"modelId": "m"}),
        (LanguageChosen("ko"), {"language": "ko"}),
        (ResetRequested(), {"resetRequested": True}),
        (ResumePicker(), {"triggerResumePicker": True}),
        (ExitRequested(), {"exitRequested": True}),
        (Renamed("n"), {"name": "n"}),
        (ModeSet("plan"), {"mode": "plan"}),
        (Compacted(85.5, 32.0), {"before": 85.5, "after": 32.0}),
        (CostShown("id", 3), {"sessionId": "id", "messageCount": 3}),
        (ContextShown(1, 2, 50.0), {"usedTokens": 1, "maxTokens": 2, "percentage": 50.0}),
        (PermissionsShown("plan", ("Read",)), {"mode": "plan", "sessionAllowed": ["Read"]}),
        (
            SubmitPrompt("long", "/a", "/a b"),
            {"input": "long", "displayInput": "/a", "rawInput": "/a b", "verbatim": False},
        ),
    ],
)
def test_the_data_of_a_result_are_its_effect_in_the_spelling_of_the_wire(
    effect: Effect, data: dict[str, Any]
) -> None:
    assert dict(CommandResult("m", effect=effect).data) == data


def test_the_data_of_a_result_cannot_be_changed_and_are_empty_without_an_effect() -> None:
    assert dict(CommandResult("m").data) == {}
    with pytest.raises(TypeError):
        CommandResult("m").data["x"] = 1  # type: ignore[index]
