"""The part that failed after the cut, storage, shelf or machinery, and its words, which are kept.

A second cut, after the client has lived on: which trials have one, and what is judged of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence, tool, without
from torture.choices.matrix.cells import Cell
from torture.choices.transports.protocol import Attachment
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import OUTAGE, SPEC, Completed, Evidence, Step, ToolOutput
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import DiskRefused, Machine, MachineFailed
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.mount import KERNEL_DEATH
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.records.scoring.judge import judge
from torture.trials.plan.trial_plan import SecondCut, TrialPlan, draw_plan, draw_second_cut, plan_of
from torture.trials.trial.outage import BrokenOff, keep_outage
from torture.trials.trial.recovery import wait_until_idle
from torture.trials.trial.setup import attach, attach_again
from torture.trials.trial.shared.resident import EvidenceWriter, StorageFailed, storage_must

PANIC = "[   97.1] Kernel panic - not syncing: Fatal exception\n"
SOFT_LOCKUP = "[  812.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:9]\n"
NO_PROCESS = 2**22 + 1
"""No process has this number (proc(5), pid_max)."""


class Guest(Machine):
    """A machine without libvirt, whose commands end as `answers` says in turn, and well afterwards."""

    def __init__(self, folder: Path, *answers: int | None, name: str = "nas", pid: int = 0) -> None:
        console = folder / f"{name}.console.log"
        console.touch()
        spec = SimpleNamespace(name=name, console_log=console)
        super().__init__(connection=None, libvirt_root=folder, spec=cast("Any", spec))
        self._qemu_pid = pid or os.getpid()
        self._answers = list(answers)
        self.asked = 0

    def run(self, *argv: str, deadline_s: float) -> Completed:
        self.asked += 1
        code = self._answers.pop(0) if self._answers else 0
        return Completed(
            vm=self.name, argv=argv, exit_code=code, stdout="", stderr="why", duration_ms=1
        )


def ends_of(
    folder: Path,
    *guests: Machine,
    never_up: tuple[Machine, ...] = (),
    is_started: bool = True,
    is_well: bool = True,
) -> AbstractContextManager[None]:
    """The end of a trial with these machines, in its check; some of them had not come up yet."""

    def require_healthy() -> None:
        if not is_well:
            raise HarnessError("the shelf died under the NAS")

    def require_host() -> None:
        for guest in (*guests, *never_up):
            guest.require_host()

    machines: Any = SimpleNamespace(
        lab=SimpleNamespace(require_host=require_host),
        shelf=SimpleNamespace(is_started=is_started, require_healthy=require_healthy),
        all=guests,
        trial=SimpleNamespace(boots_from_disk=False),
    )
    return keep_outage(machines, EvidenceWriter(folder=folder, timings={"check": 1}))


@pytest.mark.parametrize("is_started", [True, False])
def test_a_failure_of_the_machinery_is_reported_while_the_shelf_is_well_or_stopped(
    tmp_path: Path, is_started: bool
) -> None:
    end = ends_of(tmp_path, is_started=is_started, is_well=is_started)
    with pytest.raises(BrokenOff, match="the log is short"), end:
        raise HarnessError("the log is short")


def test_a_dead_shelf_is_the_failure(tmp_path: Path) -> None:
    end = ends_of(tmp_path, is_well=False)
    with pytest.raises(HarnessError, match="the shelf died"), end:
        raise HarnessError("the NAS does not answer")


def test_a_failure_of_the_storage_is_kept_once_the_machines_are_sound(tmp_path: Path) -> None:
    nas, client = Guest(tmp_path), Guest(tmp_path, name="client")
    with ends_of(tmp_path, nas, client):
        raise StorageFailed("the client did not go on", machine=client)
    outage = json.loads((tmp_path / OUTAGE).read_text())
    assert (outage["what"], outage["of_nas"]) == ("the client did not go on", False)


@pytest.mark.parametrize(
    ("console", "is_outage"), [("", False), (SOFT_LOCKUP, False), (PANIC, True)]
)
def test_a_nas_that_its_host_ended_is_no_storage_that_failed(
    tmp_path: Path, console: str, is_outage: bool
) -> None:
    """The client then waits in vain, and that shows nothing of the storage."""
    nas, client = Guest(tmp_path, pid=NO_PROCESS), Guest(tmp_path, name="client")
    nas.spec.console_log.write_text(console)
    with (
        nullcontext() if is_outage else pytest.raises(BrokenOff),
        ends_of(tmp_path, nas, client),
    ):
        raise StorageFailed("the client did not go on", machine=client)
    assert (tmp_path / OUTAGE).exists() is is_outage


@pytest.mark.parametrize("failure", [StorageFailed, DiskRefused])
def test_a_machine_that_the_host_ends_while_it_starts_is_no_storage_that_failed(
    tmp_path: Path, failure: type[MachineFailed]
) -> None:
    """The start ends it, and the trial owns it only once it is up."""
    checker = Guest(tmp_path, name="checker", pid=NO_PROCESS)
    checker.kill()
    with (
        pytest.raises(BrokenOff, match="checker"),
        ends_of(tmp_path, Guest(tmp_path), never_up=(checker,)),
    ):
        raise failure("checker refuses disk vm", machine=checker)
    assert not (tmp_path / OUTAGE).exists()


@pytest.mark.parametrize("console", ["", PANIC])
def test_no_evidence_is_kept_once_the_host_ended_a_machine(tmp_path: Path, console: str) -> None:
    """A read from a NAS that the host ended shows no loss; a kernel's crash is evidence."""
    nas = Guest(tmp_path, pid=NO_PROCESS)
    nas.spec.console_log.write_text(console)
    writer = EvidenceWriter(folder=tmp_path, require_host=nas.require_host)
    with nullcontext() if console else pytest.raises(HarnessError, match="ended the QEMU of nas"):
        writer.write(OUTAGE, "seen")
    assert (tmp_path / OUTAGE).exists() is bool(console)


def test_a_machine_whose_end_is_kept_says_nothing_of_later_evidence(tmp_path: Path) -> None:
    lab: Any = Lab.__new__(Lab)
    lab._of_trial = [Guest(tmp_path, pid=NO_PROCESS)]
    with pytest.raises(HarnessError, match="ended the QEMU"):
        lab.require_host()
    lab.forget_ended()
    lab.require_host()


def test_a_disk_that_cannot_be_opened_after_the_cut_is_the_storages_failure(
    tmp_path: Path,
) -> None:
    nas, client = Guest(tmp_path), Guest(tmp_path, name="client")
    with ends_of(tmp_path, nas, client):
        raise DiskRefused("client refuses disk vm: Invalid argument", machine=client)
    outage = json.loads((tmp_path / OUTAGE).read_text())
    assert (outage["machine"], outage["of_nas"]) == ("client", False)


@pytest.mark.parametrize("code", [1, None])
@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (None, "could not attach its storage again"),
        ("/dev/vdb", "the device differs from before the cut"),
    ],
)
def test_a_refusal_after_the_cut_that_did_not_come_before_is_the_storages_failure(
    tmp_path: Path, code: int | None, device: str | None, reason: str
) -> None:
    script = "" if device else "mount -t nfs nas:/ /mnt"
    trial = SimpleNamespace(
        attachment=Attachment(attach_script=script, device=device, has_write_cache=False),
        volume_options=SimpleNamespace(sector_bytes=512, takes_discards=False),
    )
    evidence = EvidenceWriter(folder=tmp_path)
    assert attach_again(cast("Any", trial), Guest(tmp_path, 0), evidence, deadline_s=1)
    with pytest.raises(StorageFailed, match=reason):
        attach_again(cast("Any", trial), Guest(tmp_path, code), evidence, deadline_s=1)


def test_a_machine_that_the_trial_ended_is_not_asked(tmp_path: Path) -> None:
    with Popen(["sleep", "60"]) as process:
        nas, client = Guest(tmp_path, pid=process.pid), Guest(tmp_path, name="client")
        nas.kill()
    with ends_of(tmp_path, nas, client):
        raise StorageFailed("the read-back hung", machine=client)
    assert (tmp_path / OUTAGE).exists()


@pytest.mark.parametrize(
    ("line", "is_dead"),
    [
        (PANIC, True),
        ("Oops: Oops: 0002 [#1] PREEMPT SMP", True),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000008", True),
        ("BUG: unable to handle page fault for address: ffff", True),
        (SOFT_LOCKUP, False),
        ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!", False),
        ("INFO: task txg_sync:812 blocked for more than 120 seconds.", False),
    ],
)
def test_a_guest_whose_host_stood_still_is_not_dead(line: str, is_dead: bool) -> None:
    assert (KERNEL_DEATH.search(line) is not None) is is_dead


def idle_in(nas: Machine) -> Callable[[], None]:
    transport = SimpleNamespace(wait_until_idle_script=lambda: "look")
    return lambda: wait_until_idle(cast("Any", transport), nas)


def test_a_nas_that_is_slow_to_be_done_is_waited_for(tmp_path: Path) -> None:
    nas = Guest(tmp_path, 1, None, 1)
    idle_in(nas)()
    assert nas.asked == 4


def test_a_nas_that_never_finishes_a_killed_clients_requests_failed(tmp_path: Path) -> None:
    nas = Guest(tmp_path, *[1] * 100)
    with pytest.raises(StorageFailed, match="did not finish the requests of a killed client: why"):
        idle_in(nas)()
    assert nas.asked == 6


@pytest.mark.parametrize(("code", "error"), [(None, StorageFailed), (32, HarnessError), (0, None)])
def test_a_client_that_hangs_while_it_attaches_waits_for_the_storage(
    tmp_path: Path, code: int | None, error: type[HarnessError] | None
) -> None:
    """One that is refused it tells as little of the storage as of the machinery."""
    attachment = Attachment(attach_script="mount")
    client = Guest(tmp_path, code, name="client")
    options = SimpleNamespace(sector_bytes=512, takes_discards=False)
    trial = cast("Any", SimpleNamespace(attachment=attachment, volume_options=options))
    with nullcontext() if error is None else pytest.raises(error) as raised:
        attach(trial, client, deadline_s=7)
    assert raised is None or type(raised.value) is error


@pytest.mark.parametrize("code", [1, None])
def test_a_duty_that_the_storage_neglects_is_its_failure(tmp_path: Path, code: int | None) -> None:
    with pytest.raises(StorageFailed, match="the volume did not come back: why"):
        storage_must(Guest(tmp_path, code), "the volume did not come back", "look", deadline_s=1)


_SEEDS = range(2000)
_DISKS = [ShelfDisk(serial="data0", size_mib=1, persistence=Persistence.VOLATILE)]
_SECOND = CutDocument(t_ms=9000.0, log_seq=1234)
AGAIN = tool(Step.POOL_IMPORT_AGAIN, "zpool/import-ok")


def _drawn(seed: int) -> SecondCut | None:
    return draw_second_cut(_DISKS, seed=seed, survive_ms=4000, draw=3)


def _spec(cell: str, seed: int) -> TrialSpec:
    return TrialSpec(cell=Cell.parse(cell), index=0, seed=seed, load_ms=4000)


def test_a_quarter_of_the_seeds_draws_one_within_the_clients_life() -> None:
    cuts = [cut for seed in _SEEDS if (cut := _drawn(seed)) is not None]
    # four standard deviations of 2000 draws at 0.25
    assert len(cuts) / len(_SEEDS) == pytest.approx(0.25, abs=0.039)
    assert all(1000 <= cut.after_ms <= 4000 for cut in cuts)
    assert len({cut.seed for cut in cuts}) == len(cuts)
    assert len({cut.survivors["data0"].policy for cut in cuts}) == 6


def test_only_a_client_that_lives_is_cut_again_and_its_survivors_are_drawn_anew() -> None:
    lives, dies = "iscsi-always-noslog-btrfs-nasonly", "iscsi-always-noslog-btrfs-bothdie"
    assert all(draw_plan(_spec(dies, seed)).second is None for seed in range(100))
    plans = [plan for seed in range(400) if (plan := draw_plan(_spec(lives, seed))).second]
    assert len(plans) > 60
    assert any(plan.second.survivors != plan.survivors for plan in plans if plan.second)
    assert all(
        plan.second.survivors.keys() == plan.survivors.keys() for plan in plans if plan.second
    )


def test_a_client_that_dies_later_outlives_the_nas_by_seconds_that_its_plan_keeps() -> None:
    later = _spec("iscsi-always-noslog-btrfs-clientlater", 1)
    plans = [draw_plan(replace(later, seed=seed)) for seed in range(400)]
    outlived_ms = [plan.client_outlives_ms or 0.0 for plan in plans]
    assert 2000 <= min(outlived_ms) < 2500
    assert 11500 < max(outlived_ms) <= 12000
    assert all(plan.second is None for plan in plans)
    assert TrialPlan.from_json(json.loads(json.dumps(plans[0].as_json()))) == plans[0]
    for fate in ("bothdie", "nasonly"):
        plan = draw_plan(_spec(f"iscsi-always-noslog-btrfs-{fate}", 1))
        assert plan.client_outlives_ms is None
        assert "client_outlives_ms" not in plan.as_json()
        assert TrialPlan.from_json(plan.as_json()) == plan


def test_a_plan_says_so_and_an_older_one_has_none(tmp_path: Path) -> None:
    spec = _spec("iscsi-always-noslog-btrfs-nasonly", next(seed for seed in _SEEDS if _drawn(seed)))
    plan = draw_plan(spec)
    stored = json.loads(json.dumps(plan.as_json()))
    assert plan.second is not None
    assert TrialPlan.from_json(stored) == plan
    older = {name: value for name, value in stored.items() if name != "second"}
    assert TrialPlan.from_json(older) == structs.replace(plan, second=None)
    (tmp_path / SPEC).write_text(json.dumps({"plan": older}))
    rerun = replace(spec, origin=Origin.RERUN, repeats="first", replay_of=str(tmp_path))
    assert plan_of(rerun).second is None


def test_the_cut_document_keeps_it() -> None:
    document = CutDocument(t_ms=1.0, second=_SECOND)
    assert CutDocument.from_json(json.loads(json.dumps(document.as_json()))) == document
    assert "second" not in CutDocument(t_ms=1.0).as_json()


def _cut_again(*tools: ToolOutput) -> Evidence:
    return evidence(*tools, cut=CutDocument(second=_SECOND))


def test_a_pool_has_to_come_back_both_times() -> None:
    assert judge_pool(_cut_again(AGAIN)).verdict is Verdict.INTACT
    refused = tool(Step.POOL_IMPORT_AGAIN, "zpool/import-missing-log")
    without_log = tool(Step.POOL_IMPORT_M_AGAIN, "zpool/import-without-log")
    finding = judge_pool(_cut_again(refused, without_log))
    assert finding.verdict is Verdict.REPAIRED
    assert "needed -m" in finding.summary
    rewound = (
        tool(Step.POOL_IMPORT_AGAIN, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_M_AGAIN, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_REWIND_AGAIN, "zpool/import-rewound"),
    )
    assert judge_pool(_cut_again(*rewound)).verdict is Verdict.ROLLED_BACK
    hopeless = (*rewound[:2], tool(Step.POOL_IMPORT_REWIND_AGAIN, "zpool/import-hopeless"))
    assert judge(_cut_again(*hopeless)).verdict is Verdict.POOL_LOST


def test_the_import_that_the_first_return_needed_is_not_forgotten() -> None:
    first = (
        tool(Step.POOL_IMPORT, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_M, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_REWIND, "zpool/import-rewound"),
    )
    assert judge_pool(_cut_again(*first, AGAIN)).verdict is Verdict.ROLLED_BACK


def test_an_unobserved_second_return_makes_the_trial_inconclusive() -> None:
    assert judge_pool(_cut_again()).unknown == ("pool-import-again was never tried",)
    assert judge(_cut_again()).verdict is Verdict.INCONCLUSIVE
    replayed = _cut_again()
    replayed = replace(replayed, spec=replayed.spec | {"origin": "replay"})
    assert judge(replayed).pool is Verdict.INTACT


def test_a_pool_that_was_lost_at_the_first_cut_needs_no_second_one() -> None:
    lost = evidence(
        tool(Step.POOL_IMPORT, "zpool/import-hopeless"),
        tool(Step.POOL_IMPORT_M, "zpool/import-hopeless"),
        tool(Step.POOL_IMPORT_REWIND, "zpool/import-hopeless"),
    )
    assert judge(without(lost, Step.FS_MOUNT)).verdict is Verdict.POOL_LOST
