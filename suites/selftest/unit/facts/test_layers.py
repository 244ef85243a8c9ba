"""The layers of a crash state, and wrong layers, which are distinguished from right ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from struct import pack
from types import ModuleType

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts import test_layers
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, explicit, logs
from torture.facts.recording import layers
from torture.facts.recording import layers as layers_module
from torture.facts.recording.crash_state import CrashState, DiskState, Policy, write_crash_state
from torture.facts.recording.events import (
    DATA,
    ImageSource,
    Kind,
    RecordedDisk,
    Recording,
    ViewSource,
)
from torture.facts.recording.layers import ZEROES, Layers, Piece
from torture.facts.recording.model import content, uncovered, writes_until

NAMES = ("data0", "slog0")
BYTES = SECTOR * SECTORS
FOLDER = Path("life-1")


def data_of(log: Log) -> bytes:
    """The file of payloads; each write has its own bytes, at its own place."""
    return b"".join(
        bytes([1 + event.seq % 255]) * event.length
        for event in log.events
        if event.kind is Kind.WRITE_SUBMIT
    )


def recording_of(log: Log, folder: Path = FOLDER, *, sector: int = SECTOR) -> Recording:
    place, events = 0, []
    for event in log.events:
        if event.kind is Kind.WRITE_SUBMIT:
            event = replace(event, reference=place)
            place += event.length
        events.append(event)
    disks = tuple(
        RecordedDisk(name=name, size=BYTES, sector=SECTOR, physical_sector=sector) for name in NAMES
    )
    return Recording(folder=folder, disks=disks, events=tuple(events))


def applied(pieces: Sequence[Piece], files: Sequence[bytes]) -> bytes:
    """A disk that began with zeroes."""
    disk = bytearray(BYTES)
    for piece in pieces:
        bytes_ = bytes(piece.length)
        if piece.file != ZEROES:
            bytes_ = files[piece.file][piece.place : piece.place + piece.length]
        assert len(bytes_) == piece.length
        disk[piece.offset : piece.offset + piece.length] = bytes_
    return bytes(disk)


def held(layers: Layers, state: CrashState, disk: str, files: Sequence[bytes]) -> bytes:
    of_disk = layers.of(state, disk)
    return applied([*layers.pieces(disk)[: of_disk.settled], *of_disk.patches], files)


def by_the_text(recording: Recording, state: CrashState, disk: str, data: bytes) -> bytes:
    place = recording.place_of(disk)

    def payload(submission: int) -> bytes:
        event = recording.events[submission]
        return data[event.reference : event.reference + event.length]

    return content(
        bytes(BYTES),
        recording.events,
        disk=place,
        sector=recording.disks[place].physical_sector,
        view=state.disks[disk],
        cut=state.cut,
        seed=state.seed,
        payload=payload,
    )


def drawn_survivors(draw: st.DataObject, log: Log, place: int, cut: int) -> DiskState:
    """Some of the writes that no flush covers, whole or in part."""
    flushed = DiskState(policy=Policy.FLUSHED)
    kept: list[int | tuple[int, tuple[int, ...]]] = []
    for write in uncovered(writes_until(log.events, disk=place, cut=cut, view=flushed)):
        sectors = draw.draw(st.none() | st.sets(st.integers(0, SECTORS - 1)))
        kept.append(write.submission if sectors is None else (write.submission, (*sectors,)))
    return explicit(*kept)


@settings(deadline=None, max_examples=examples(200))
@given(log=logs, sector=st.sampled_from([512, 4096]), draw=st.data())
def test_each_disk_of_a_state_is_that_of_the_text(
    log: Log, sector: int, draw: st.DataObject
) -> None:
    recording, data = recording_of(log, sector=sector), data_of(log)
    layers = Layers(recording, NAMES)
    for _ in range(3):
        cut = draw.draw(st.integers(0, log.last))
        disks = {name: drawn_survivors(draw, log, place, cut) for place, name in enumerate(NAMES)}
        state = CrashState(recording=FOLDER, cut=cut, seed=0, disks=disks)
        for name in NAMES:
            assert held(layers, state, name, [data]) == by_the_text(recording, state, name, data)


def test_a_state_costs_its_patches_alone() -> None:
    log = Log()
    for at in range(SECTORS):
        log.write(at=at)
    log.flush()
    survivor = log.write(at=3)
    recording = recording_of(log)
    state = CrashState(recording=FOLDER, cut=log.last, seed=0, disks={"data0": explicit(survivor)})
    of_disk = Layers(recording, ["data0"]).of(state, "data0")
    assert of_disk.settled == SECTORS
    [patch] = of_disk.patches
    assert (patch.offset, patch.length) == (3 * SECTOR, SECTOR)


def test_only_listed_survivors_are_quick() -> None:
    log = Log()
    log.write()
    state = CrashState(
        recording=FOLDER, cut=log.last, seed=0, disks={"data0": DiskState(policy=Policy.ALL)}
    )
    with pytest.raises(ValueError, match="not listed"):
        Layers(recording_of(log), ["data0"]).of(state, "data0")


def test_pieces_are_packed_with_the_number_of_their_disk() -> None:
    log = Log()
    log.write(Kind.TRIM_SUBMIT, at=1, disk=1)
    packed = b"".join(Layers(recording_of(log), NAMES).packed(NAMES))
    assert packed == pack("<IIQQQ", 1, ZEROES, SECTOR, SECTOR, 0)


def with_source(recording: Recording, source: ImageSource | ViewSource) -> Recording:
    disk = replace(recording.disks[0], source=source)
    return replace(recording, disks=(disk, *recording.disks[1:]))


def test_a_disk_that_began_with_an_image_has_it_below(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"i" * (BYTES - SECTOR))
    log = Log()
    log.write(at=0)
    recording = with_source(recording_of(log), ImageSource(image=image))
    layers = Layers(recording, ["data0"])
    state = CrashState(recording=FOLDER, cut=log.last, seed=0, disks={"data0": explicit(1)})
    assert layers.files == (image, FOLDER / DATA)
    after = held(layers, state, "data0", [image.read_bytes(), data_of(log)])
    assert after == b"\2" * SECTOR + b"i" * (BYTES - 2 * SECTOR) + bytes(SECTOR)


@settings(deadline=None, max_examples=examples(60))
@given(below=logs, above=logs, policy=st.sampled_from([Policy.ALL, Policy.TORN]))
def test_a_disk_that_began_with_a_view_has_it_below(
    below: Log, above: Log, policy: Policy, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As the preparation's disks are below those of its trials."""
    folder = tmp_path_factory.mktemp("prepared")
    prepared = recording_of(below, folder / "life-0")
    view = CrashState(
        recording=prepared.folder,
        cut=below.last,
        seed=7,
        disks={"data0": DiskState(policy=policy)},
    )
    write_crash_state(folder / "view.json", view)
    source = ViewSource(view=folder / "view.json", disk="data0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers_module, "load_recording", lambda _folder: prepared)
        layers = Layers(with_source(recording_of(above), source), ["data0"])
    state = CrashState(recording=FOLDER, cut=0, seed=0, disks={"data0": explicit()})
    files = [data_of(below), data_of(above)]
    assert held(layers, state, "data0", files) == by_the_text(prepared, view, "data0", files[0])


# Wrong layers are distinguished from right ones: a state is built without a write that it has.

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
