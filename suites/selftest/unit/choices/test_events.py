"""The ends of a NAS's service, and of a client alone: theory, the plan of the cut, the judge's terms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import evidence, without
from torture.choices.matrix.cell_terms import disks_keep_power, guarantee_of, must_lose
from torture.choices.matrix.cells import DISKS, TRANSPORT, Cell
from torture.errors import HarnessError
from torture.facts.axes.event import Event
from torture.facts.evidence.cut_document import AuditDocument, CutDocument, DiskAtCut
from torture.facts.evidence.folder import Step
from torture.facts.evidence.manifest import ManifestFinding
from torture.facts.recording.crash_state import InFlight, Policy
from torture.facts.recording.disks import Persistence
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.specs import TrialSpec
from torture.records.scoring.judge import judge, missing_evidence
from torture.trials.plan.cut_plan import TARGETS
from torture.trials.plan.trial_plan import draw_plan
from torture.trials.trial import ending
from torture.trials.trial.ending import end_service
from torture.trials.trial.shared.resident import StorageFailed

SAFE, ROLLS_BACK, LOSES = Guarantee.SAFE, Guarantee.ROLLS_BACK, Guarantee.LOSES


@pytest.mark.parametrize(
    ("name", "guarantee", "loses"),
    [
        # what ZFS has not logged is in the memory of the NAS
        ("iscsi-disabled-noslog-btrfs-panic-bothdie", ROLLS_BACK, True),
        ("iscsi-disabled-noslog-btrfs-reset-nasonly", LOSES, True),
        ("iscsi-standard-noslog-btrfs-panic-nasonly", LOSES, False),
        ("nfs4-standard-noslog-files-panic-nasonly", SAFE, False),
        # the disks keep what no flush has covered
        ("iscsi-always-noslog-nocacheflush-btrfs-panic-bothdie", SAFE, False),
        ("iscsi-always-noslog-zilnocacheflush-btrfs-reset-nasonly", SAFE, False),
        ("iscsi-always-lying-btrfs-reset-bothdie", SAFE, False),
        ("iscsi-always-lost-btrfs-reset-bothdie", ROLLS_BACK, True),
        # an orderly end writes everything, and a NAS that lives has everything
        ("iscsi-disabled-noslog-btrfs-reboot-nasonly", SAFE, False),
        ("fileio_wb_zvol-standard-noslog-btrfs-reboot-nasonly", SAFE, False),
        ("samba-disabled-noslog-files-reboot-nasonly", SAFE, False),
        ("iscsi-disabled-noslog-nocacheflush-btrfs-clientonly", SAFE, False),
        ("iscsi-always-lying-btrfs-clientonly", SAFE, False),
        ("nfs4-rawimage-unsafe-always-noslog-ext4-clientonly", LOSES, False),
    ],
)
def test_an_event_has_the_guarantee_of_theory(name: str, guarantee: Guarantee, loses: bool) -> None:
    cell = Cell.parse(name)
    assert (guarantee_of(cell), must_lose(cell)) == (guarantee, loses)


@pytest.mark.parametrize("event", Event)
def test_disks_that_lie_cost_the_pool_where_they_lose_their_power(event: Event) -> None:
    cell = Cell.parse("iscsi-always-noslog-btrfs-nasonly").but(disks="lyingdisks", event=event)
    assert cell[DISKS] is Persistence.LYING
    assert (guarantee_of(cell) is Guarantee.MAY_LOSE_POOL) is (event is Event.POWER)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("iscsi-standard-noslog-btrfs-panic-clientonly", "ends the client alone"),
        ("iscsi-standard-noslog-btrfs-reboot-bothdie", "needs a client that lives on"),
        ("scst_file_ext4-standard-noslog-ext4-reboot-nasonly", "lets go of its volume"),
        ("iscsi-always-lost-btrfs-reboot-nasonly", "takes no log device away"),
        ("iscsi-always-lost-btrfs-clientonly", "leaves the NAS as it is"),
        ("iscsi-standard-noslog-btrfs-poolfull-clientonly", "leaves the NAS as it is"),
        ("local-standard-noslog-ext4-clientonly", "needs a client of its own"),
        ("iscsi-standard-noslog-scrub-btrfs-panic-bothdie", "does not wait for a step"),
    ],
)
def test_an_event_without_meaning_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cell.parse(name)


def plans(name: str, *, draws: int = 60) -> list[Any]:
    cell = Cell.parse(name)
    return [draw_plan(TrialSpec(cell=cell, index=0, seed=n, load_ms=4000)) for n in range(draws)]


@pytest.mark.parametrize("end", ["panic-nasonly", "reset-bothdie", "reboot-nasonly", "clientonly"])
def test_disks_that_keep_their_power_lose_writes_in_flight_at_most(end: str) -> None:
    drawn = plans(f"iscsi-standard-noslog-btrfs-{end}")
    states = [state for plan in drawn for state in plan.survivors.values()]
    assert {state.policy for state in states} == {Policy.ALL}
    assert Counter(state.in_flight for state in states).keys() == {InFlight.GONE, InFlight.WHOLE}
    assert not any(plan.second for plan in drawn)


@pytest.mark.parametrize(
    ("end", "waits"),
    [
        ("panic-nasonly", False),
        ("reboot-nasonly", False),
        ("clientonly", False),
        ("reset-bothdie", True),
    ],
)
def test_only_the_host_can_wait_for_an_event_of_a_disk(end: str, waits: bool) -> None:
    aims = {plan.cut.aim for plan in plans(f"iscsi-standard-noslog-btrfs-{end}")}
    assert bool(aims & TARGETS.keys()) is waits


def test_a_loss_of_power_is_drawn_as_ever() -> None:
    assert not disks_keep_power(Cell.parse("iscsi-standard-noslog-btrfs-nasonly"))
    drawn = plans("iscsi-standard-noslog-btrfs-nasonly")
    assert {state.policy for plan in drawn for state in plan.survivors.values()} > {Policy.TORN}
    assert any(plan.second for plan in drawn)


def judged(name: str, *, imports: bool, **changes: Any) -> Verdict:
    made = evidence(spec={"cell": name, "seed": 1}, **changes)
    return judge(made if imports else without(made, Step.POOL_IMPORT)).verdict


def test_a_nas_that_lives_imports_nothing() -> None:
    name = "iscsi-standard-noslog-btrfs-{}"
    assert judged(name.format("clientonly"), imports=False) is Verdict.INTACT
    assert judged(name.format("nasonly"), imports=False) is Verdict.INCONCLUSIVE


def test_a_nas_that_lives_has_to_show_that_it_was_checked() -> None:
    made = without(evidence(manifest=ManifestFinding(is_due=True)), Step.POOL_IMPORT)
    cell = Cell.parse("iscsi-standard-noslog-btrfs-clientonly")
    asked, of_replay = (
        " ".join(missing_evidence(made, cell, is_replay=is_replay)) for is_replay in (False, True)
    )
    assert f"{Step.POOL_SYNC} " in asked
    assert f"{Step.POOL_REFUSALS} " not in asked
    assert f"{Step.POOL_REFUSALS} " in of_replay


def test_an_orderly_end_has_nothing_to_take() -> None:
    quiet = CutDocument(
        plan={"aim": "anywhere"},
        hit=True,
        audit=AuditDocument(under_way=0),
        disks={"data0": DiskAtCut()},
    )
    assert quiet.is_empty
    ends = {
        end: judged(f"iscsi-standard-noslog-btrfs-{end}", imports=True, cut=quiet)
        for end in ("reboot-nasonly", "panic-nasonly")
    }
    assert ends == {"reboot-nasonly": Verdict.INTACT, "panic-nasonly": Verdict.INCONCLUSIVE}


class _Nas:
    """A NAS that notes its commands; its kernel panics, or does not, and a command may hang."""

    def __init__(self, *, says: str = "", hangs: bool = False) -> None:
        self.agent = self
        self.spec = SimpleNamespace(console_log=Path("nas-1.console.log"))
        self.name = "nas"
        self.ran: list[str] = []
        self._says, self._hangs = says, hangs

    def start(self, argv: tuple[str, ...]) -> None:
        self.ran.append(argv[-1])

    def console(self) -> str:
        return self._says

    def run(self, *argv: str, deadline_s: float) -> Any:
        self.ran.append(argv[-1])
        exit_code = None if self._hangs else 0
        return SimpleNamespace(exit_code=exit_code, argv=argv, stdout="", stderr="")

    def require_success(self, completed: Any, *, deadline_s: float) -> None:
        assert completed.exit_code == 0


def ended(event: str, nas: _Nas) -> list[str]:
    cell = Cell.parse(f"nfs4-standard-noslog-files-{event}nasonly")
    trial: Any = SimpleNamespace(cell=cell, transport=cell[TRANSPORT])
    played: Any = nas
    end_service(trial, played)
    return nas.ran


def test_a_panic_is_seen_on_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "[   16.0] Kernel panic - not syncing: sysrq triggered crash"
    [script] = ended("panic-", _Nas(says=said))
    assert script.endswith("echo c > /proc/sysrq-trigger")
    monkeypatch.setattr(ending, "_PANIC_DEADLINE_S", 0)
    with pytest.raises(HarnessError, match="did not panic"):
        ended("panic-", _Nas(says="[   16.0] nothing"))


def test_a_reboot_ends_the_server_before_it_unmounts() -> None:
    assert [script.split()[0] for script in ended("reboot-", _Nas())] == ["set", "zfs"]
    with pytest.raises(StorageFailed, match="the target hung"):
        ended("reboot-", _Nas(hangs=True))


@pytest.mark.parametrize("event", ["", "reset-"])
def test_the_host_alone_ends_a_nas_without_power(event: str) -> None:
    assert ended(event, _Nas()) == []
