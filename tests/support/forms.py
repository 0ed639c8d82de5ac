"""Tests of generated cases have two forms: `make test` takes a part of the cases, `make test LONG=1` all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

LONG = bool(os.environ.get("ROBOTA_TEST_LONG"))
Case = TypeVar("Case")


def some_of(cases: Sequence[Case], one_in: int = 3) -> Sequence[Case]:
    """One in so many, from the first to the last; the same in every run."""
    return cases if LONG else cases[::one_in]
