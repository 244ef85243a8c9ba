"""Wrong layers are distinguished from right ones: a state is built without a write that it has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from suites.selftest.unit.facts import test_layers
from suites.selftest.unit.facts.shelf_logs import logs
from torture.facts.recording.crash_state import Policy
from torture.facts.states import layers

_NAME = "layers_with_a_mistake"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A mistake: the text `right`, which the module has once, becomes `wrong`."""

    name: str
    right: str
    wrong: str


MUTANTS = (
    Mutant(
        name="what-was-there-before-the-load-is-not",
        right="disk.pieces += self._first_content(disk.recorded)",
        wrong="pass",
    ),
    Mutant(
        name="the-last-write-before-the-load-is-not-there",
        right="        return pieces\n",
        wrong="        return pieces[:-1]\n",
    ),
    Mutant(
        name="trims-and-zeroes-are-not-there",
        right="if not event.error:\n                write = self._recording.events[event.reference]\n",
        wrong="write = self._recording.events[event.reference]\n"
        "            if not event.error and write.kind is Kind.WRITE_SUBMIT:\n",
    ),
    Mutant(
        name="a-write-with-fua-counts-as-one-without",
        right="            if write.fua:\n",
        wrong="            if False:\n",
    ),
    Mutant(
        name="no-write-in-flight-survives",
        right="for submission in sorted(listed):",
        wrong="for submission in []:",
    ),
)
_QUICKLY = settings(
    deadline=None, database=None, derandomize=True, max_examples=200, phases=(Phase.generate,)
)
"""The first difference is enough: no shorter one is sought."""


def finds_a_difference(folders: pytest.TempPathFactory) -> bool:
    """Whether a test of the layers fails."""
    of_all = test_layers.test_each_disk_of_a_state_is_that_of_the_text
    of_view = test_layers.test_a_disk_that_began_with_a_view_has_it_below
    sectors, policies = st.sampled_from([512, 4096]), st.just(Policy.ALL)
    try:
        test_layers.test_a_disk_that_began_with_an_image_has_it_below(folders.mktemp("image"))
        _QUICKLY(given(log=logs, sector=sectors, draw=st.data())(_inner(of_all)))()
        _QUICKLY(given(below=logs, above=logs, policy=policies)(_inner(of_view)))(
            tmp_path_factory=folders
        )
    except AssertionError:
        return True
    return False


def _inner(test: Callable[..., None]) -> Callable[..., None]:
    """The test without its own examples."""
    inner: Callable[..., None] = getattr(test, "hypothesis").inner_test  # noqa: B009 - not typed
    return inner


@pytest.fixture
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of the layers judge a copy of the module, which has the mistake."""
    mutant: Mutant = request.param
    source = Path(layers.__file__).read_text()
    assert source.count(mutant.right) == 1, mutant.name
    copy = ModuleType(_NAME)
    monkeypatch.setitem(sys.modules, _NAME, copy)
    exec(compile(source.replace(mutant.right, mutant.wrong), _NAME, "exec"), copy.__dict__)
    monkeypatch.setattr(test_layers, "layers_module", copy)
    monkeypatch.setattr(test_layers, "Layers", copy.Layers)


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("wrong", MUTANTS, indirect=True, ids=lambda mutant: mutant.name)
def test_layers_without_a_write_are_found_out(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assert finds_a_difference(tmp_path_factory)


def test_right_layers_are_not(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert not finds_a_difference(tmp_path_factory)
