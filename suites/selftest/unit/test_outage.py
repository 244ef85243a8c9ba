"""What failed after the cut, the storage, the shelf or the machinery, and that its words are kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torture.errors import HarnessError
from torture.trial.outage import BrokenOff, after_the_cut


def context_whose_shelf(*, is_started: bool, is_well: bool) -> Any:
    def must_be_well() -> None:
        if not is_well:
            raise HarnessError("the shelf died under the NAS")

    shelf = SimpleNamespace(is_started=is_started, must_be_well=must_be_well)
    return SimpleNamespace(shelf=shelf)


@pytest.mark.parametrize("is_started", [True, False])
def test_what_the_machinery_failed_at_is_said_while_the_shelf_is_well_or_stopped(
    is_started: bool,
) -> None:
    context = context_whose_shelf(is_started=is_started, is_well=is_started)
    with pytest.raises(BrokenOff, match="the log is short"), after_the_cut(context):
        raise HarnessError("the log is short")


def test_a_shelf_that_died_is_what_failed() -> None:
    context = context_whose_shelf(is_started=True, is_well=False)
    with pytest.raises(HarnessError, match="the shelf died"), after_the_cut(context):
        raise HarnessError("the NAS does not answer")
