"""States that need no recovery: the origins of their bytes, and the reads of earlier recoveries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, explicit, logs
from suites.selftest.unit.facts.test_layers import (
    FOLDER,
    NAMES,
    by_the_text,
    data_of,
    drawn_survivors,
    recording_of,
)
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.layers import Layers
from torture.features.walk.engines.engine import Recovered
from torture.features.walk.engines.native_engine import Proofs
from torture.features.walk.states.origins import PAGE, Origins, Pages

_SIZES = dict.fromkeys(NAMES, SECTOR * SECTORS)
_ALL = np.arange(SECTOR * SECTORS // PAGE)
_EMPTY = np.arange(0)
_GOOD = Recovered(is_imported=True, content="a" * 32)
_OTHER = Recovered(is_imported=True, content="b" * 32)


def sectors_of(log: Log) -> bytes:
    """The file of payloads; each sector has bytes of its own."""
    count = len(data_of(log)) // SECTOR
    return b"".join((number + 1).to_bytes(4, "big") * (SECTOR // 4) for number in range(count))


def drawn_state(draw: st.DataObject, log: Log) -> CrashState:
    cut = draw.draw(st.integers(0, log.last))
    disks = {name: drawn_survivors(draw, log, place, cut) for place, name in enumerate(NAMES)}
    return CrashState(recording=FOLDER, cut=cut, seed=0, disks=disks)


@settings(deadline=None, max_examples=examples(200))
@given(log=logs, draw=st.data())
def test_equal_origins_are_equal_bytes(log: Log, draw: st.DataObject) -> None:
    """In any order of the states."""
    recording, data = recording_of(log), sectors_of(log)
    origins = Origins(Layers(recording, NAMES), _SIZES)
    seen: dict[bytes, bytes] = {}
    for _ in range(4):
        state = drawn_state(draw, log)
        origins.turn(state)
        for name in NAMES:
            own = origins.of(name, _ALL).ravel()
            content = by_the_text(recording, state, name, data)
            for sector in range(SECTORS):
                bytes_ = content[sector * SECTOR : (sector + 1) * SECTOR]
                assert seen.setdefault(own[sector].tobytes(), bytes_) == bytes_
                assert (own[sector] == 0) == (not any(bytes_))


@settings(deadline=None, max_examples=examples(200))
@given(log=logs, draw=st.data())
def test_a_proof_is_by_equal_bytes_at_each_place_that_was_read(
    log: Log, draw: st.DataObject
) -> None:
    """By a find that compares the bytes themselves."""
    recording, data = recording_of(log), sectors_of(log)
    proofs = Proofs(Origins(Layers(recording, NAMES), _SIZES))
    page = st.lists(st.just(0), max_size=1)
    known: list[tuple[Recovered, dict[str, Pages], CrashState]] = []
    for number in range(4):
        state = drawn_state(draw, log)
        proofs_now = [
            recovered
            for recovered, read, other in known
            if all(
                by_the_text(recording, state, name, data)
                == by_the_text(recording, other, name, data)
                for name, pages in read.items()
                if len(pages)
            )
        ]
        found = proofs.find(state)
        assert found in proofs_now if proofs_now else found is None
        read = {name: np.array(draw.draw(page), np.int64) for name in NAMES}
        known.append((Recovered(is_imported=True, content=str(number)), read, state))
        proofs.add(state, known[-1][0], read)


def state_at(cut: int, *survivors: int) -> CrashState:
    disks = {"data0": explicit(*survivors), "slog0": explicit()}
    return CrashState(recording=FOLDER, cut=cut, seed=0, disks=disks)


def proofs_of(log: Log, *, pages: int) -> Proofs:
    sizes = dict.fromkeys(NAMES, pages * PAGE)
    return Proofs(Origins(Layers(recording_of(log), NAMES), sizes))


def two_writes() -> tuple[Log, int, int]:
    """One in the first page of a disk, one in its second page; no flush covers them."""
    log = Log()
    return log, log.write(at=0), log.write(at=8)


def reads(*pages: int) -> dict[str, Pages]:
    return {"data0": np.array(pages), "slog0": _EMPTY}


def test_a_state_that_differs_only_where_nothing_was_read_is_proven() -> None:
    log, first, second = two_writes()
    proofs = proofs_of(log, pages=2)
    proofs.add(state_at(log.last, first), _GOOD, reads(0))
    assert proofs.find(state_at(log.last, first, second)) == _GOOD
    assert proofs.find(state_at(log.last, second)) is None


def test_a_read_of_an_absent_write_counts() -> None:
    """A recovery that found no block there, as at the end of the log, depends on its absence."""
    log, first, second = two_writes()
    proofs = proofs_of(log, pages=2)
    proofs.add(state_at(log.last, first), _GOOD, reads(0, 1))
    assert proofs.find(state_at(log.last, first, second)) is None
    proofs.add(state_at(log.last, first, second), _OTHER, reads(0, 1))
    assert proofs.find(state_at(log.last, first, second)) == _OTHER
    assert proofs.find(state_at(log.last, first)) == _GOOD


def test_a_torn_write_is_neither_whole_nor_absent() -> None:
    log = Log()
    log.write(at=0, sectors=4)
    proofs = proofs_of(log, pages=1)
    proofs.add(state_at(log.last, 1), _GOOD, reads(0))
    torn = {"data0": explicit((1, (0, 1))), "slog0": explicit()}
    assert proofs.find(CrashState(recording=FOLDER, cut=log.last, seed=0, disks=torn)) is None
    assert proofs.find(state_at(log.last)) is None
