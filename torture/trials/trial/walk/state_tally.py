"""The counts of a walk: states by the way to their end, verdicts, contents and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from torture.facts.evidence.walk_document import WalkDocument
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.walk_verdict import StateVerdict
from torture.trials.trial.walk.recoveries import How, Recovery


class Tally:
    """Counts states, and takes a count back where a further recovery is worse."""

    def __init__(self) -> None:
        self._states: Counter[str] = Counter()
        self._contents: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._ends: Counter[tuple[str, int, tuple[str, ...]]] = Counter()
        self._unknown: Counter[str] = Counter()

    @property
    def states(self) -> int:
        """The number of states so far."""
        return self._states["recovered"] + self._states["proven"]

    def add_state(self, first: Recovery, judged: StateVerdict, *, is_alone: bool) -> None:
        """Count a state by its first recovery, which may be the only one, and by its verdict."""
        is_proven = first.how is How.PROOF and is_alone
        self._states["proven" if is_proven else "recovered"] += 1
        self._contents.update(filter(None, [first.content]))
        self.add_verdict(judged)

    def add_verdict(self, judged: StateVerdict, *, by: int = 1) -> None:
        """Count a verdict, or with -1 take it back."""
        self._verdicts[judged.verdict] += by
        self._ends[judged.verdict, judged.lost, judged.reasons] += by
        if judged.verdict is Verdict.INCONCLUSIVE:
            self._unknown.update(judged.reasons[:1])

    def count_as_recovered(self) -> None:
        """Count a proven state as a recovered one: its proof is checked."""
        self._states.update({"proven": -1, "recovered": 1})

    def into(self, document: WalkDocument) -> WalkDocument:
        """The document with these counts."""
        return replace(
            document,
            recovered=self._states["recovered"],
            proven=self._states["proven"],
            seen_once=_number_of_ones(self._contents),
            ends=len(+self._ends),
            ends_seen_once=_number_of_ones(self._ends),
            outcomes=dict(+self._verdicts),
            unknown=dict(self._unknown),
        )


def _number_of_ones(counts: Mapping[Any, int]) -> int:
    return sum(1 for count in counts.values() if count == 1)
