"""Planted faults on other transports than their own: where they can be, and why not elsewhere.

The live line: its text, and its silence without a terminal.
"""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from torture.choices.experiments import DISTURBANCES, FAULTS
from torture.choices.experiments.protocol import Fault
from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import AXES, Cell
from torture.choices.matrix.choices import why_different_there
from torture.choices.workloads.protocol import Brought, Place
from torture.facts.evidence.folder import Completed
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.trials.campaign.campaign import Campaign, WorkerState
from torture.trials.campaign.progress import Progress
from torture.trials.plan.draw import draw_planted, moved
from torture.trials.trial import check as check_module
from torture.trials.trial.prepared_machines import prepared_for
from torture.trials.trial.shared.machines import Trial
from torture.trials.trial.shared.resident import EvidenceWriter

ALL = (*FAULTS.values(), *DISTURBANCES.values())
FILES = {"transport": "nfs4", "filesystem": "files"}


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name)
def test_without_a_choice_a_fault_stays_where_it_is_and_its_subject_is_an_axis(
    fault: Fault,
) -> None:
    assert moved(fault, {}) == fault
    assert {*fault.bound_to, *fault.amounts_to} <= set(AXES)


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name)
def test_nothing_planted_is_in_the_prepared_state_of_other_trials(fault: Fault) -> None:
    """A NAS and its disks are prepared once for all trials alike, by whichever comes first."""
    spec, *_ = draw_planted([fault], trials=1, run_seed=1, load_ms=500)
    assert (spec.fault, spec.origin) == (fault.name, Origin.PLANTED)
    prepared = prepared_for(spec)
    assert prepared.fault == ""
    assert replace(prepared, cell=spec.cell, fault=fault.name, origin=spec.origin) == spec
    assert prepared.cell == spec.cell.but(sync="standard")


def test_a_fault_that_a_cell_cannot_have_is_not_the_same_there() -> None:
    """A page asks it of every cell: what only a log has is in none with `sync=disabled`."""
    fault = FAULTS["sync-ignored"]
    there = Cell.parse("iscsi-always-noslog-plpdisks-zilnocacheflush-btrfs-bothdie")
    at_home, bound_to, amounts_to = Cell.parse(fault.cell), fault.bound_to, fault.amounts_to
    why = why_different_there(at_home, there, bound_to=bound_to, amounts_to=amounts_to)
    assert why.startswith(f"cannot be in {there.name}: 'zilnocacheflush' concerns the intent log")


def test_a_disk_drops_flushes_behind_nfs_as_well() -> None:
    there = moved(FAULTS["flush-dropped"], FILES)
    assert there.cell == "nfs4-always-noslog-files-bothdie"
    assert there.name == "flush-dropped"
    assert there.on_disks == FAULTS["flush-dropped"].on_disks


@pytest.mark.parametrize(
    ("name", "choices", "why"),
    [
        ("no-barriers", {"filesystem": "xfs"}, "works only with the filesystem"),
        ("lio-write-back", {"transport": "nvme_tcp"}, "works only with the transport"),
        ("log-on-one-leg", {"slog": "plp"}, "works only with the slog"),
        ("sector-torn", {"layout": "mirrored"}, "works only with the layout"),
        ("flush-dropped", {"sync": "disabled"}, "iscsi-disabled-noslog-ext4-bothdie has"),
        ("flush-dropped", {"transport": "nfs4"}, "choose files"),
        # sync that is weaker is no fault where standard is safe
        ("sync-weakened", FILES, "does not weaken"),
        ("sync-weakened", {"transport": "fileio"}, "does not weaken"),
        ("sync-weakened", {"sync": "standard", "fate": "bothdie"}, "does not weaken"),
    ],
)
def test_where_it_cannot_be_the_reason_is_said(
    name: str, choices: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        moved((FAULTS | DISTURBANCES)[name], choices)


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name)
def test_a_fault_that_amounts_to_a_choice_takes_something_where_it_is_at_home(fault: Fault) -> None:
    at_home = Cell.parse(fault.cell)
    weaker = at_home.but(**fault.amounts_to)
    assert (guarantee_of(weaker) is not guarantee_of(at_home)) is bool(fault.amounts_to)


def test_a_fault_behind_files_is_checked_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of files has no block device that a script could name."""
    fault = FAULTS["commit-ignored"]
    [spec] = draw_planted([fault], trials=1, run_seed=1, load_ms=500)
    trial = Trial.begin(spec, folder=tmp_path, scratch=tmp_path, nas_host="nas")
    assert trial.attachment.device is None
    done: list[str] = []
    monkeypatch.setattr(check_module, "attach_again", lambda *_parts, **_words: True)
    monkeypatch.setattr(check_module, "plant", lambda _client, script: done.append(script))
    monkeypatch.setattr(
        check_module, "_read_back", lambda *_parts, **_words: done.append("read back")
    )
    log = Completed(argv=("dmesg",), vm="checker", exit_code=0, stdout="")
    client: Any = SimpleNamespace(run=lambda *_argv, **_words: log)
    assert check_module.check(trial, EvidenceWriter(folder=tmp_path), client)
    assert done == [fault.before_read_back, "read back"]


# The place where a load works, by the cell.

_BROUGHT = (Brought(load="fio_own", path="/job", sha256="0"),)


def trial_of(cell: str, brought: tuple[Brought, ...] = ()) -> Trial:
    spec = TrialSpec(cell=Cell.parse(cell), index=0, seed=1, load_ms=1, brought=brought)
    return Trial.begin(spec, folder=Path(), scratch=Path(), nas_host="nas")


@pytest.mark.parametrize(
    ("name", "device", "place"),
    [
        ("iscsi-always-noslog-ext4-bothdie", "/dev/vdb", Place(directory=MOUNT_POINT)),
        ("iscsi-always-noslog-raw-bothdie", "/dev/vdb", Place(device="/dev/vdb")),
        ("nfs_image-always-noslog-btrfs-bothdie", "/dev/vdb", Place(directory=MOUNT_POINT)),
        (
            "nfs3-always-noslog-files-bothdie",
            None,
            Place(directory=MOUNT_POINT, names_are_stable=True),
        ),
        ("smb-always-noslog-files-bothdie", None, Place(directory=MOUNT_POINT)),
    ],
)
def test_a_load_gets_the_traits_of_its_transport(
    name: str, device: str | None, place: Place
) -> None:
    trial = trial_of(name)
    assert (trial.attachment.device, trial.place) == (device, place)


def test_a_load_gets_the_files_that_users_brought() -> None:
    trial = trial_of("iscsi-always-noslog-ext4-bothdie", _BROUGHT)
    assert trial.place.brought == _BROUGHT


@pytest.mark.parametrize(
    ("name", "images"),
    [
        ("iscsi-always-noslog-ext4-bothdie", {"nas": "nas", "client": "client"}),
        ("samba-always-noslog-files-bothdie", {"nas": "nas_samba", "client": "client"}),
        (
            "samba-always-noslog-files-postgres-bothdie",
            {"nas": "nas_samba", "client": "client_databases"},
        ),
    ],
)
def test_machines_are_of_the_images_that_server_and_load_need(
    name: str, images: dict[str, str]
) -> None:
    assert trial_of(name).images == images


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_script_on_a_disk_names_the_clients_one(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, planted = trial_of(fault.cell), list[str]()
    monkeypatch.setattr(check_module, "plant", lambda _client, script: planted.append(script))
    scripts = (fault.before_mount, fault.before_read_back)
    client: Any = None
    for script in scripts:
        check_module._plant_on_disk(trial, client, script)
    device = trial.attachment.device
    assert device or not any("{device}" in script for script in scripts)
    assert planted == [script.replace("{device}", str(device)) for script in scripts]


@dataclass
class Outcome:
    """As much of a campaign as the line looks at."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    earlier: int = 0
    total: int = 4
    states: dict[int, WorkerState] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def _progress(outcome: Outcome, *, terminal: bool = False) -> tuple[Progress, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    return Progress(cast(Campaign, outcome), console), file


def test_the_line_shows_done_and_left_verdicts_rate_and_each_workers_stage() -> None:
    verdicts = (Verdict.INTACT, Verdict.INTACT, Verdict.CORRUPTED)
    outcome = Outcome(verdicts=Counter(verdicts), states={0: WorkerState(trial="t", stage="check")})
    line = _progress(outcome)[0].line().plain
    assert line.startswith("3/4 trials  intact 2  corrupted 1  ")
    assert "/h" in line
    assert "left" in line
    assert line.endswith("[w0: check]")


@pytest.mark.parametrize(("earlier", "begin"), [(0, "0/4 trials"), (3, "3/4 trials  intact 3")])
def test_before_its_first_new_trial_a_run_guarantees_no_rate(earlier: int, begin: str) -> None:
    """Also one that goes on behind earlier trials."""
    verdicts = Counter({Verdict.INTACT: earlier} if earlier else {})
    line = _progress(Outcome(verdicts=verdicts, earlier=earlier))[0].line().plain
    assert line.startswith(begin)
    assert "/h" not in line


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_style_by_its_place(verdict: Verdict) -> None:
    line = _progress(Outcome(verdicts=Counter([verdict])))[0].line()
    styles = {line.plain[span.start : span.end].split()[0]: span.style for span in line.spans}
    if verdict is Verdict.INCONCLUSIVE:
        assert styles[verdict] == "magenta"
    elif verdict.is_corruption:
        assert "red" in str(styles[verdict])
    else:
        assert styles[verdict] == {
            Verdict.INTACT: "green", Verdict.ROLLED_BACK: "dark_orange",
        }.get(verdict, "yellow")  # fmt: skip


def test_plain_lines_come_now_and_then_not_at_every_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("torture.trials.campaign.progress.time.monotonic", lambda: now_s)
    progress, file = _progress(Outcome(states={0: WorkerState(trial="t", stage="walk 20")}))
    for _ in range(60):
        now_s += 1.0
        progress.beat()
    assert file.getvalue().count("0/4 trials  [w0: walk 20]") == 4


@pytest.mark.parametrize(("term", "is_taken_back"), [("xterm", True), ("dumb", False)])
def test_a_terminal_gets_a_line_that_goes_away_or_plain_ones_where_it_can_take_nothing_back(
    term: str, is_taken_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    now_s = 1000.0
    monkeypatch.setattr("torture.trials.campaign.progress.time.monotonic", lambda: now_s)
    progress, file = _progress(Outcome(), terminal=True)
    with progress.shown():
        now_s += 60.0
        progress.beat()
    assert ("\x1b[2K" in file.getvalue()) is is_taken_back
    assert "0/4 trials" in file.getvalue()
    assert is_taken_back or file.getvalue().count("0/4 trials") == 1


@pytest.mark.parametrize("terminal", [False, True])
def test_each_remark_of_the_place_is_printed_once(terminal: bool) -> None:
    outcome = Outcome(remarks=("host a [tls] is out",))
    progress, file = _progress(outcome, terminal=terminal)
    progress.beat()
    outcome.remarks += ("host b is out",)
    progress.beat()
    progress.beat()
    assert file.getvalue().splitlines() == ["host a [tls] is out", "host b is out"]
