"""A NAS that is away for long or answers too early; its client's patience, and an operator's remedies."""

from __future__ import annotations

import base64
import math
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import begun, evidence, ledger, tool
from torture.choices.matrix.cell_terms import guarantee_of, may_fail_before_cut, may_give_up
from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.errors import HarnessError
from torture.facts.axes.away import AWAY_STAGE
from torture.facts.axes.early import Early
from torture.facts.evidence.cut_document import CutDocument, LinkFailure
from torture.facts.evidence.folder import Evidence, Step
from torture.facts.evidence.ledger import Done, Failed, Ledger, OperationKind
from torture.machines.lab.lab import LabSettings
from torture.machines.nas.settings import parameters_script, volume_options_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Absence, Remedy
from torture.records.scoring.judge import judge
from torture.records.scoring.service import CAME_BACK, failed_writers, remedy_of, with_offline
from torture.trials.trial import recovery, takeover
from torture.trials.trial.shared.machines import Trial, attachment_of
from torture.trials.workers import local
from torture.trials.workers.local import LocalSite
from torture.trials.workers.protocol import WorkerOrders

SAFE, OFFLINE, LOSES = Guarantee.SAFE, Guarantee.MAY_GO_OFFLINE, Guarantee.LOSES


@pytest.mark.parametrize(
    ("name", "guarantee"),
    [
        # a client that waits for ever writes on
        ("iscsi_guest-always-noslog-ext4-away180-nasonly", SAFE),
        ("nfs4-standard-noslog-files-away180-nasonly", SAFE),
        ("nfs4-defaults-standard-noslog-files-away180-nasonly", SAFE),
        # open-iscsi waits for 130 s, NVMe for 600 s, SMB for 180 s
        ("iscsi_guest-defaults-always-noslog-ext4-away60-nasonly", SAFE),
        ("iscsi_guest-defaults-always-noslog-ext4-away180-nasonly", OFFLINE),
        ("nvme_tcp-defaults-always-noslog-ext4-away180-nasonly", SAFE),
        ("samba-defaults-always-noslog-files-away60-nasonly", SAFE),
        ("samba-defaults-always-noslog-files-away180-nasonly", OFFLINE),
        # multipathd makes 75 s of it, or 15 s for a vendor that it does not know
        ("iscsi_two-defaults-always-noslog-ext4-nasonly", SAFE),
        ("iscsi_two-defaults-always-noslog-ext4-away60-nasonly", OFFLINE),
        ("iscsi_two_unlisted-defaults-always-noslog-ext4-nasonly", OFFLINE),
        # a soft mount waits for 40 or 100 s
        ("nfs4-soft-standard-noslog-files-nasonly", OFFLINE),
        ("nfs4-softlong-standard-noslog-files-nasonly", SAFE),
        ("nfs4-rawimage-softlong-standard-noslog-ext4-away60-nasonly", OFFLINE),
        # what is lost anyway is lost
        ("iscsi_guest-defaults-standard-noslog-ext4-away180-nasonly", LOSES),
        # no patience helps against a refusal
        ("nvme_tcp-always-noslog-ext4-otherfirst1-nasonly", OFFLINE),
        ("nfs4-standard-noslog-files-mountlate20-nasonly", OFFLINE),
        ("iscsi_guest-standard-noslog-ext4-reboot-lunlate5-nasonly", OFFLINE),
        # the disks keep their power as another node takes over
        ("nfs4-standard-noslog-files-takeover-nasonly", SAFE),
        ("iscsi_guest-always-noslog-nocacheflush-ext4-takeover-nasonly", SAFE),
        ("iscsi_guest-standard-noslog-ext4-takeover-nasonly", LOSES),
    ],
)
def test_theory_of_a_client_that_waits(name: str, guarantee: Guarantee) -> None:
    cell = Cell.parse(name)
    assert guarantee_of(cell) is guarantee
    assert cell.name == name


@pytest.mark.parametrize(
    ("name", "gives_up"),
    [
        ("iscsi_guest-defaults-always-noslog-ext4-linkfails-bothdie", False),
        ("iscsi_guest-defaults-always-noslog-ext4-linkfails-away180-bothdie", True),
        ("iscsi_guest-always-noslog-ext4-linkfails-away180-bothdie", False),
        ("iscsi_guest-defaults-always-noslog-ext4-away180-nasonly", False),
    ],
)
def test_writers_may_fail_before_the_cut_where_the_link_is_gone_for_too_long(
    name: str, gives_up: bool
) -> None:
    assert may_fail_before_cut(Cell.parse(name)) is gives_up


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("iscsi-defaults-standard-noslog-ext4-nasonly", "no patience that 'iscsi' can have"),
        ("iscsi_guest-soft-standard-noslog-ext4-nasonly", "no patience that 'iscsi_guest'"),
        ("nfs4-rawimage-defaults-standard-noslog-ext4-nasonly", "a hypervisor mounts anyway"),
        ("samba-rawimage-defaults-standard-noslog-ext4-nasonly", "a hypervisor mounts by default"),
        ("iscsi_guest-standard-noslog-ext4-away60-bothdie", "needs a client that waits"),
        ("iscsi_guest-standard-noslog-ext4-handover-away60-nasonly", "is not of 'handover'"),
        ("iscsi_guest-standard-noslog-ext4-otherfirst5-nasonly", "no order in which"),
        ("nvme_tcp-standard-noslog-ext4-otherfirst5-bothdie", "needs a client that lives on"),
        ("nfs4-standard-noslog-files-takeover-bothdie", "needs a client that lives on"),
    ],
)
def test_a_choice_without_meaning_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cell.parse(name)


def test_old_records_have_no_patience_where_the_clients_kernel_attaches_nothing() -> None:
    assert Cell.parse("iscsi-standard-noslog-btrfs-nasonly").axes["patience"] == ""
    assert Cell.parse("nfs4-standard-noslog-files-nasonly").axes["patience"] == "forever"
    assert Cell.parse("samba-rawimage-standard-noslog-ext4-nasonly").axes["patience"] == ""


PROVEN = {
    "iscsi_guest": "off",
    "iscsi_guest-defaults": "120",
    "iscsi_two": "5 on",
    "iscsi_two-defaults": "5 12chk",
    "iscsi_two_unlisted-defaults": "5 -",
    "nvme_tcp": "off 1",
    "nvme_tcp-defaults": "600 10",
    "nfs4": "hard",
    "nfs4-defaults": "hard retrans=2 timeo=600",
    "nfs4-rawimage": "hard retrans=2 timeo=600",
    "samba": "hard",
    "samba-defaults": "echo_interval=60 soft",
}


@pytest.mark.parametrize("start", PROVEN)
def test_the_client_shows_how_long_it_waits(start: str) -> None:
    has_disk = start.split("-")[0] in ("iscsi_guest", "iscsi_two", "iscsi_two_unlisted", "nvme_tcp")
    end = "ext4" if has_disk or "image" in start else "files"
    proofs = attachment_of(
        Cell.parse(f"{start}-standard-noslog-{end}-nasonly"), nas_host="10.0.0.1"
    ).proofs
    assert proofs["patience of the client"][1] == PROVEN[start]


def test_a_soft_mount_is_as_soft_as_its_product_mounts_it() -> None:
    for start, options in (
        ("nfs4-soft", ["retrans=3", "soft", "timeo=100"]),
        ("nfs3-rawimage-softlong", ["retrans=4", "soft", "timeo=200"]),
    ):
        end = "ext4" if "image" in start else "files"
        found = attachment_of(Cell.parse(f"{start}-standard-noslog-{end}-nasonly"), nas_host="h")
        assert found.mount is not None
        assert "hard" not in found.mount.script
        shown = sorted(line for name, (_, line) in found.proofs.items() if "mount option" in name)
        assert shown == options


def test_a_mount_option_of_the_cell_replaces_the_proof_of_its_patience() -> None:
    name = "nfs4-standard-noslog-mount.timeo=70-files-nasonly"
    proofs = attachment_of(Cell.parse(name), nas_host="h").proofs
    assert "patience of the client" not in proofs
    assert proofs["mount option timeo"][1] == "timeo=70"


@pytest.mark.parametrize("name", ["iscsi_guest", "iscsi_two", "nvme_tcp", "nvme_tcp_two"])
def test_a_client_with_defaults_sets_no_timeout(name: str) -> None:
    script = attachment_of(
        Cell.parse(f"{name}-defaults-standard-noslog-ext4-nasonly"), nas_host="h"
    ).attach_script
    assert not any(word in script for word in ("timeo", "tmo", "reconnect_delay", "no_path_retry"))


def test_every_patience_has_a_time() -> None:
    for choice in Cell.parse("nfs4-standard-noslog-files-nasonly")[TRANSPORT].traits.waits_s:
        assert choice[1] == math.inf or choice[1] > 0
    assert not may_give_up(Cell.parse("iscsi-standard-noslog-ext4-nasonly"))


# The order of publication: all but the volume first.

EARLY = {
    "iscsi_guest-standard-noslog-ext4-lunlate5-nasonly": ("np/0.0.0.0:3260", "lun/lun_1/vm"),
    "iscsi_guest-standard-noslog-ext4-lun0late5-nasonly": ("np/0.0.0.0:3260", "lun/lun_0/vm"),
    "nvme_tcp-standard-noslog-ext4-otherfirst5-nasonly": (
        "torture:vm-other /sys/kernel/config/nvmet/ports/1/subsystems/",
        "/ports/1/subsystems/nqn.2014-08.org.nvmexpress:torture:vm\n",
    ),
    "nvme_tcp-standard-noslog-ext4-namespacelate5-nasonly": (
        "/ports/1/subsystems/nqn.2014-08.org.nvmexpress:torture:vm\n",
        "namespaces/1/enable",
    ),
    "nfs4-standard-noslog-files-exportlate5-nasonly": ("rpc.nfsd -G", "exportfs -o"),
    "nfs4-standard-noslog-files-mountlate5-nasonly": ("rpc.nfsd -G", "zfs mount tank/vm"),
}


@pytest.mark.parametrize("name", EARLY)
def test_the_port_answers_before_the_volume_is_there(name: str) -> None:
    cell = Cell.parse(name)
    options, transport = volume_options_of(cell), cell[TRANSPORT]
    port, volume = EARLY[name]
    early, late = transport.early_script(options), transport.late_script(options)
    assert port in early
    assert volume not in early
    assert volume in late


def test_a_transport_without_a_wrong_order_publishes_at_once() -> None:
    cell = Cell.parse("samba-standard-noslog-files-nasonly")
    options, transport = volume_options_of(cell), cell[TRANSPORT]
    assert transport.early_script(options) == ""
    assert transport.late_script(options) == transport.publish_script(options)
    assert options.order is Early.IN_ORDER


# What brings a dead disk back: the client's tries, in the operator's order.

NAME = "iscsi_guest-defaults-always-noslog-ext4-away180-nasonly"


def trial_of(name: str) -> Trial:
    spec = TrialSpec(cell=Cell.parse(name), index=0, seed=1, load_ms=4000)
    return Trial.begin(spec, folder=Path("f"), scratch=Path("s"), nas_host="10.0.0.1")


class _Tries:
    """An evidence writer in whose client these remedies work."""

    def __init__(self, works: set[Step]) -> None:
        self.tried: dict[Step, str] = {}
        self._works = works

    def observe(self, _client: object, step: Step, argv: tuple[str, ...], **_kw: float) -> Any:
        self.tried[step] = argv[-1]
        return SimpleNamespace(exit_code=0 if step in self._works else 1)


@pytest.mark.parametrize(
    ("works", "tried"),
    [
        ({Step.REMEDY_WAIT, Step.REMEDY_LOG_IN}, [Step.REMEDY_WAIT]),
        ({Step.REMEDY_LOG_IN}, [Step.REMEDY_WAIT, Step.REMEDY_LOG_IN]),
        (set(), [Step.REMEDY_WAIT, Step.REMEDY_LOG_IN]),
    ],
)
def test_a_client_tries_until_a_remedy_works(works: set[Step], tried: list[Step]) -> None:
    tries: Any = _Tries(works)
    client: Any = None
    recovery.try_remedies(trial_of(NAME), tries, client)
    assert list(tries.tried) == tried


def test_a_new_login_comes_after_the_unmount_and_before_the_mount() -> None:
    tries: Any = _Tries(set())
    client: Any = None
    recovery.try_remedies(trial_of(NAME), tries, client)
    script = tries.tried[Step.REMEDY_LOG_IN]
    steps = ("umount /mnt", "--logout", "--login", "/dev/sda", "mount ", "dd if=/dev/zero")
    places = [script.index(step) for step in steps[:4]]
    places += [script.index(steps[4], places[-1]), script.index(steps[5])]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "tries"),
    [
        (NAME, True),
        ("iscsi_guest-always-noslog-ext4-away60-nasonly", True),
        ("nvme_tcp-always-noslog-ext4-otherfirst1-nasonly", True),
        ("iscsi_guest-always-noslog-ext4-nasonly", False),
        ("iscsi-always-noslog-ext4-boot-away60-nasonly", False),
    ],
)
def test_a_dead_disk_is_brought_back_by_its_client_only_in_cells_of_outages(
    name: str, tries: bool
) -> None:
    assert trial_of(name).tries_remedies is tries


def dead(*steps: tuple[Step, int], cell: str = NAME) -> Evidence:
    """The evidence of a client whose writer failed, and of these remedies with their exit codes."""
    failed = (
        begun(200.0, 9, OperationKind.OVERWRITE),
        Failed(t_ms=230.0, seq=9, errno=5, call="fsync"),
    )
    made = evidence(
        ledger=Ledger(events=ledger().events + failed),
        spec={"cell": cell, "seed": 1},
        cut=CutDocument(t_ms=120.0),
    )
    tried = tuple(tool(step, "mount/mounted", exit_code=code) for step, code in steps)
    return replace(made, tools=(*made.tools, *tried))


WAIT, LOG_IN, REPAIR = Step.REMEDY_WAIT, Step.REMEDY_LOG_IN, Step.FS_REPAIR


@pytest.mark.parametrize(
    ("steps", "remedy", "words"),
    [
        (((WAIT, 0),), Remedy.WAIT, "came back by itself"),
        (((WAIT, 1), (LOG_IN, 0)), Remedy.LOG_IN, "after an unmount, a new login and a mount"),
        (((WAIT, 1), (LOG_IN, 1)), Remedy.RESTART, "as a new client attached it"),
        (((WAIT, 1), (LOG_IN, 32), (REPAIR, 1)), Remedy.REPAIR, "after a repair"),
        ((), Remedy.RESTART, "as a new client attached it"),
    ],
)
def test_a_record_names_the_remedy_of_a_dead_disk(
    steps: tuple[tuple[Step, int], ...], remedy: Remedy, words: str
) -> None:
    made = dead(*steps)
    assert remedy_of(made, failed_writers(made.ledger)) is remedy
    assert CAME_BACK[remedy].endswith(words)
    if remedy is not Remedy.REPAIR:
        judged = judge(made)
        assert judged.verdict is Verdict.OFFLINE
        assert f"{words}: 1 of 1 writers failed for good" in " ".join(judged.reasons)


def test_a_record_says_when_the_disk_was_dead() -> None:
    made = dead((WAIT, 0))
    writers = failed_writers(made.ledger)
    found = with_offline(Absence(), made, writers, gives_up=False)
    assert (found.offline_ms, found.remedy) == (110.0, Remedy.WAIT)
    link = LinkFailure(down_ms=30.0, up_ms=90.0)
    before = replace(made, cut=structs.replace(made.cut, link=link))
    assert with_offline(Absence(), before, writers, gives_up=False).offline_ms == 200.0


@pytest.mark.parametrize("errno", [17, None])
def test_a_call_that_failed_alone_is_no_dead_disk(errno: int | None) -> None:
    made = dead()
    events = made.ledger.events
    if errno is None:
        events = events[:-2]
    else:
        events = (*events[:-1], Failed(t_ms=230.0, seq=9, errno=errno, call="open"))
    writers = failed_writers(replace(made.ledger, events=events))
    assert with_offline(Absence(), made, writers, gives_up=True) == Absence()


@pytest.mark.parametrize(
    ("name", "verdict"),
    [(NAME, Verdict.OFFLINE), (NAME.replace("away180", "away60"), Verdict.REPAIRED)],
)
def test_of_a_client_that_may_give_up_one_call_will_do(name: str, verdict: Verdict) -> None:
    """Each call of a soft mount has its own end, and a later one may outlast the outage."""
    made = dead(cell=name)
    other = (begun(300.0, 10, OperationKind.SCRIBBLE, writer=1, file=1), Done(t_ms=310.0, seq=10))
    made = replace(made, ledger=replace(made.ledger, events=(*made.ledger.events, *other)))
    judged = judge(made)
    assert judged.verdict is verdict
    assert "1 of 2 writers failed for good: errno 5 in fsync" in " ".join(judged.reasons)
    if verdict is Verdict.OFFLINE:
        assert "came back by itself" in " ".join(judged.reasons)


# A node takes the pool over, and the former one comes back.

TAKEOVER = "nfs4-standard-noslog-files-takeover-nasonly"


def test_a_standby_is_another_host_and_the_former_node_is_the_same() -> None:
    cell = Cell.parse(TAKEOVER)
    first, standby = parameters_script(cell), parameters_script(cell, is_standby=True)
    assert first.startswith("zgenhostid")
    assert standby.startswith("zgenhostid")
    assert first != standby
    assert parameters_script(cell.but(event="power")) == ""


@pytest.mark.parametrize(
    ("exit_code", "verdict"),
    [(0, Verdict.SPLIT_BRAIN), (1, Verdict.INTACT), (None, Verdict.INTACT)],
)
def test_a_pool_that_two_nodes_have_is_a_split_brain(
    exit_code: int | None, verdict: Verdict
) -> None:
    former = tool(Step.FORMER_IMPORT, "mount/mounted", exit_code=exit_code)
    judged = judge(evidence(former, spec={"cell": TAKEOVER, "seed": 1}))
    assert judged.verdict is verdict
    assert Guarantee.MAY_LOSE_POOL.is_broken_by(judged.verdict) is (exit_code == 0)


@pytest.mark.parametrize(
    ("event", "verdict"), [("takeover", Verdict.INCONCLUSIVE), ("power", Verdict.INTACT)]
)
def test_a_takeover_has_to_show_the_return_of_the_former_node(event: str, verdict: Verdict) -> None:
    cell = Cell.parse(TAKEOVER).but(event=event)
    assert judge(evidence(spec={"cell": cell.name, "seed": 1})).verdict is verdict


@pytest.mark.parametrize(("fault", "forces"), [("", False), ("split-brain", True)])
def test_the_former_node_imports_as_at_its_boot(
    fault: str, forces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TrialSpec(cell=Cell.parse(TAKEOVER), index=0, seed=1, load_ms=4000, fault=fault)
    trial = Trial.begin(spec, folder=Path("f"), scratch=Path("s"), nas_host="h")
    kept: dict[Step, str] = {}
    ended: list[bool] = []
    former = SimpleNamespace(kill=lambda: ended.append(True))
    machines: Any = SimpleNamespace(start_former=lambda _disks: former)
    writer: Any = SimpleNamespace(
        observe_to_end=lambda _vm, step, argv, **_kw: kept.update({step: argv[-1]})
    )
    monkeypatch.setattr(takeover, "wait_for_disks", lambda *_: None)
    takeover.return_former(trial, machines, writer, b"cache")
    script = kept[Step.FORMER_IMPORT]
    assert base64.b64encode(b"cache").decode() in script
    assert ("zpool import -f -c" in script) is forces
    assert "-aN\nexec zpool list" in script
    assert ended == [True]


# A trial whose client waits lets another one begin.


def site_of(folder: Path, *, waits: bool) -> LocalSite:
    lab = LabSettings(warm_states=Path("/warm"))
    run = RunLayout(folder=folder)
    return LocalSite(WorkerOrders(scratch=folder / "scratch", run=run, lab=lab, waits=waits))


def test_trials_that_wait_have_more_slots_as_far_as_there_is_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_room", lambda: 7)
    assert site_of(tmp_path, waits=False).slots(2) == frozenset(range(2))
    assert site_of(tmp_path, waits=True).slots(2) == frozenset(range(7))
    assert site_of(tmp_path, waits=True).slots(1) == frozenset(range(6))
    assert site_of(tmp_path, waits=True).slots(9) == frozenset(range(9))


WORKER = """
import json, sys
print('{"say": "ready"}', flush=True)
sys.stdin.readline()
for line in sys.stdin:
    for stage in json.loads(line):
        print(json.dumps({"stage": stage}), flush=True)
    print('{"record": {}}', flush=True)
"""


@pytest.mark.parametrize("stage", [AWAY_STAGE, "load"])
def test_a_trial_gives_its_turn_back_as_soon_as_its_client_waits(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "sandboxed", lambda _argv: (sys.executable, "-c", WORKER))
    site = site_of(tmp_path, waits=True)
    site.slots(1)
    turns = site._turns
    assert turns is not None
    free: dict[str, bool] = {}

    def hear(heard: str) -> None:
        free[heard] = is_free = turns.acquire(blocking=False)
        if is_free:
            turns.release()

    controller = site.controller(0, hear=hear)
    controller.start()
    try:
        spec: Any = ["prove", stage]
        assert controller.run_plain(spec, deadline_s=20) == {}
        assert controller.run_plain(spec, deadline_s=20) == {}, "it has its turn again"
    finally:
        controller.kill()
    assert free == {"prove": False, stage: stage == AWAY_STAGE}
    assert turns.acquire(blocking=False)


def test_a_worker_that_dies_before_its_turn_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "sandboxed", lambda _argv: (sys.executable, "-c", WORKER))
    monkeypatch.setattr(local, "_TURN_POLL_S", 0.01)
    site = site_of(tmp_path, waits=True)
    site.slots(1)
    assert site._turns is not None
    site._turns.acquire()
    controller = site.controller(0, hear=lambda _text: None)
    controller.start()
    threading.Timer(0.1, controller.kill).start()
    spec: Any = []
    with pytest.raises(HarnessError, match="a worker died of SIGKILL"):
        controller.run_plain(spec, deadline_s=20)


def test_the_hosts_memory_gives_room_for_some_trials() -> None:
    assert 0 < local._room() < 10_000
