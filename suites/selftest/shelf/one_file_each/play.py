"""Plays a trial over one new file of each kind, in a checkout that has them, without machines.

Run there as `python -m suites.selftest.shelf.one_file_each.play FOLDER`: prints what became of it as
one JSON document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import msgspec

from torture.choices.experiments import KNOWN_BUGS, trees_needed
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.folder import Completed
from torture.facts.linux.kernels import Kernels
from torture.facts.zfs.versions import ZfsVersion, zfs_version
from torture.machines.images.recipes import read_recipe
from torture.machines.lab.lab import Lab
from torture.machines.nas.pool import BLOCKS
from torture.machines.nas.settings import essentials_of
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules import order_of
from torture.report.write import build_report
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.keeping import EvidencePolicy
from torture.trials.campaign.run import Run
from torture.trials.plan.draw import draw_trials
from torture.trials.trial.one_trial import run_trial

CELL = "dummytransport-disabled-dummyslog-dummyadministration-dummyfs-dummyload-bothdie"
ZFS = "9.9.9"
_RECORDED = Path(__file__).resolve().parents[2] / "recorded"
_STATUS = _RECORDED / "zpool" / "status-scrubbed.json"
_BLOCKS = _RECORDED / "zdb" / "sound.json"
_FAULT = "dummy-fault"
_TRIALS = 2
_RUN_SEED = 58
"""Its cuts aim at no event of the disks, which get no writes."""


def _answer_to(line: str) -> str:
    """The answer to a line of shell that asks for settings, caches, or promises (`advertised_by`)."""
    for setting in essentials_of(Cell.parse(CELL)):
        if line == setting.script:
            return f"{setting.expected}\n"
    return (
        "write_cache=write_back\n"
        if "/queue; for n in" in line
        else "write back\n" * line.count("cache")
    )


@dataclass
class _Guest:
    """Answers every command as a guest in which all is well would."""

    name: str
    disks: tuple[str, ...] = ()
    ran: list[str] = field(default_factory=list)

    @property
    def qemu_pid(self) -> None:
        """There is no QEMU."""

    @property
    def agent(self) -> _Guest:
        return self

    def run(self, *argv: str, deadline_s: float) -> Completed:
        self.ran.append(" ".join(argv))
        return self._ended(argv)

    def _ended(self, argv: tuple[str, ...]) -> Completed:
        return Completed(
            vm=self.name,
            argv=argv,
            exit_code=0,
            stdout=self._printed(argv),
            stderr="",
            duration_ms=1,
        )

    def _printed(self, argv: tuple[str, ...]) -> str:
        if argv[:2] == ("zpool", "status"):
            return str(json.loads(_STATUS.read_text())["stdout"])
        if argv == BLOCKS:
            return str(json.loads(_BLOCKS.read_text())["stdout"])
        if argv[0] == "dmesg":
            return "[    0.000000] Linux version 9.9.9\n"
        if argv[0] == "dummy-read":
            return "all of it"
        return "".join(map(_answer_to, argv[-1].splitlines()))

    must = run_verbose = run

    def require_success(self, completed: Completed, *, deadline_s: float) -> None:
        assert completed.exit_code == 0

    def start(self, argv: tuple[str, ...]) -> int:
        self.ran.append(" ".join(argv))
        return 1

    def finish(
        self,
        pid: int,
        argv: tuple[str, ...],
        *,
        deadline_s: float,
        is_hopeless: Callable[[], bool],
    ) -> Completed:
        assert not is_hopeless()
        return self._ended(argv)

    def console(self) -> str:
        return ""

    def kill(self) -> None:
        self.ran.append("killed")

    def raise_if_dead(self) -> None:
        """It lives."""


@dataclass
class _Lab:
    """The methods of a lab that a trial calls."""

    sockets: Path
    zfs: ZfsVersion
    guests: list[_Guest] = field(default_factory=list)
    nas_host: str = "nas.invalid"
    prepared: None = None
    can_plug_in: bool = True

    @property
    def network(self) -> _Lab:
        return self

    def start_nas(self, *, console_log: Path, disks: tuple[Any, ...], port_socket: None) -> _Guest:
        return self._started(_Guest("nas", tuple(disk.serial for disk in disks)))

    def client_spec(self, console_log: Path, ledger_socket: Path, preload: str) -> str:
        return "client"

    def start(self, spec: str, disks: Any) -> _Guest:
        return self._started(_Guest(spec))

    def require_host(self) -> None:
        """The host ends no guest."""

    def boot_from(self, *, nas: str, client: str) -> None:
        assert (nas, client) == ("nas", "client")

    @property
    def checkers(self) -> _Lab:
        return self

    def take_checker(self, *, console_log: Path) -> _Guest:
        return self._started(_Guest("checker"))

    def keep(self, machine: _Guest) -> None:
        machine.kill()

    def _started(self, guest: _Guest) -> _Guest:
        self.guests.append(guest)
        return guest


@dataclass
class _Site:
    """One worker, in this process."""

    lab: _Lab
    folder: Path
    begun: list[str] = field(default_factory=list)
    trial_deadline_s: float = 60
    is_running: bool = False
    waits_s: float = 0.0
    failure: None = None
    remarks: tuple[str, ...] = ()

    def slots(self, jobs: int) -> frozenset[int]:
        return frozenset(range(jobs))

    def controller(self, number: int, *, hear: Callable[[str], None]) -> _Site:
        return self

    def start(self) -> None:
        self.is_running = True

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        self.begun.append(spec.trial)
        return run_trial(
            spec,
            lab=cast(Lab, self.lab),
            folder=self.folder / "trials" / spec.trial,
            scratch=self.folder / f"scratch-{len(self.begun)}",
        )

    def kill(self) -> None:
        self.is_running = False

    def close(self) -> None:
        """Nothing is open."""


def main(folder: Path) -> None:
    """Run the trials, report them, and print what there is to check."""
    cell = Cell.parse(CELL)
    lab = _Lab(sockets=folder, zfs=zfs_version(ZFS))
    site = _Site(lab=lab, folder=folder)
    drawn = draw_trials([cell], trials=_TRIALS, run_seed=_RUN_SEED, load_ms=50)
    specs = [*drawn[:-1], replace(drawn[-1], fault=_FAULT)]
    (folder / "trials").mkdir(parents=True)
    campaign = Campaign(
        run=Run(folder=folder),
        schedule=order_of("backwards").make(specs),
        site=site,
        jobs=1,
        keep=EvidencePolicy.ALL,
    )
    campaign.start()
    is_over = campaign.wait_for(cell, timeout_s=120)
    campaign.stop()
    built = build_report([folder], output=folder / "report", formats=["dummy"])
    found = {
        "is_over": is_over,
        "drawn": [spec.trial for spec in specs],
        "begun": site.begun,
        "records": [msgspec.to_builtins(record) for record in campaign.records],
        "ran": [guest.ran for guest in lab.guests[:2]],
        "matrices": {matrix: [c.name for c in cells_of(matrix)] for matrix in Matrix},
        "known_bug": KNOWN_BUGS["dummy-bug"].affected.chosen_cell.name,
        "trees": sorted(trees_needed()),
        "nas_suite": read_recipe("nas", zfs=ZFS).suite,
        "client_kernel_suite": _kernel_suite("client", Kernels.same("sid-backports")),
        "exported": [path.read_text() for path in built.exports],
        "page": built.page.read_text(),
    }
    json.dump(found, sys.stdout, default=str)


def _kernel_suite(image: str, linux: Kernels) -> str:
    kernel = read_recipe(image, linux=linux).kernel
    return "" if kernel is None else kernel.suite


if __name__ == "__main__":
    main(Path(sys.argv[1]))
