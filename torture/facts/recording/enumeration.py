"""All crash states of a cut, where few writes are uncovered (pure).

A crash state is one choice, for all disks together, of the whole writes that survive. Torn writes are
left out: their states are too many to enumerate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from torture.facts.recording.crash_state import CrashState, DiskState, Policy, Survivor
from torture.facts.recording.events import Recording
from torture.facts.recording.model import uncovered, writes_until


def count_crash_states(recording: Recording, *, cut: int, disks: Sequence[str]) -> int:
    """How many states `crash_states` gives; raises its `ValueError`."""
    undecided = _undecided(recording, cut=cut, disks=disks)
    return 1 << sum(len(submissions) for submissions in undecided.values())


def crash_states(
    recording: Recording, *, cut: int, disks: Sequence[str], states_max: int
) -> Iterator[CrashState]:
    """Every state in which the cut can leave these disks; the other disks are gone.

    Each uncovered write, in flight or completed, survives as a whole or not at all. So the number of
    states is 2 to the power of these writes. The first state keeps none of them, the last one all.
    Different states may have equal content. Raises `ValueError`, before the first state, for more than
    `states_max`, and for an unknown cut or disk.
    """
    undecided = _undecided(recording, cut=cut, disks=disks)
    candidates = [(name, number) for name, numbers in undecided.items() for number in numbers]
    if 1 << len(candidates) > states_max:
        # the power itself is not printed: Python refuses numbers of so many digits
        raise ValueError(
            f"the uncovered writes at cut {cut} make 2**{len(candidates)} crash states, and "
            f"{states_max} are allowed"
        )
    return (
        _view(recording, cut=cut, disks=undecided, survivors=kept)
        for kept in (
            [candidate for candidate, survives in zip(candidates, choice, strict=True) if survives]
            for choice in product((False, True), repeat=len(candidates))
        )
    )


def _undecided(
    recording: Recording, *, cut: int, disks: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """The submissions of each disk's uncovered writes, in the order in which they apply."""
    return {
        name: tuple(
            write.submission
            for write in uncovered(
                writes_until(recording.events, disk=recording.place_of(name), cut=cut)
            )
        )
        for name in disks
    }


def _view(
    recording: Recording,
    *,
    cut: int,
    disks: dict[str, tuple[int, ...]],
    survivors: Sequence[tuple[str, int]],
) -> CrashState:
    return CrashState(
        recording=recording.folder,
        cut=cut,
        seed=0,
        disks={
            name: DiskState(
                policy=Policy.EXPLICIT,
                survivors=tuple(
                    Survivor(submission=number) for owner, number in survivors if owner == name
                ),
            )
            for name in disks
        },
    )
