"""A handover to a standby, with played machines; and a preparation that fails.

The failure of a link and a handover, with a played NAS and a clock that does not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.choices.experiments import FAULTS
from torture.choices.experiments.protocol import Fault
from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.volumes import VolumeOptions
from torture.errors import HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import Completed
from torture.machines.lab.saved_states import PreparedFolders
from torture.machines.nas.pool import pool_disks, wait_for_disks_script
from torture.records.record.specs import TrialSpec
from torture.trials.trial import outage, prepared_machines
from torture.trials.trial.courses import cut_course
from torture.trials.trial.outage import fail_link, hand_over
from torture.trials.trial.prepared_machines import ready_machines
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, StorageFailed

CELL = Cell.parse("nvme_tcp-standard-noslog-ext4-handover-bothdie")
OPTIONS = VolumeOptions(sync=Sync.STANDARD)
TRANSPORT_OF_CELL = CELL[TRANSPORT]
STEPS = {
    TRANSPORT_OF_CELL.traits.release_script: "release",
    "zpool export tank": "export",
    "zpool import -d /dev/disk/by-id -o cachefile=none tank": "import",
    TRANSPORT_OF_CELL.wait_for_volume_script(): "volume",
    TRANSPORT_OF_CELL.publish_script(OPTIONS): "publish",
    wait_for_disks_script(pool_disks(CELL)): "disks",
    FAULTS["zfs-nocacheflush"].in_nas: "fault",
}


class _Played:
    """Two NASes that note their steps; one step ends with this exit code, None where it hangs."""

    def __init__(
        self, failing: str = "", exit_code: int | None = 1, fault: Fault | None = None
    ) -> None:
        self.happened: list[str] = []
        self._fault = fault
        self._failing = failing
        self._exit_code = exit_code

    def start_nas(self, role: str, disks: object, *, draws_anew: bool) -> Any:
        assert (role, disks, draws_anew) == ("standby", pool_disks(CELL), True)
        self.happened.append("standby: start")
        return self.machine("standby")

    def machine(self, name: str) -> Any:
        def run(*argv: str, deadline_s: float) -> Completed:
            assert deadline_s > 0
            step = STEPS[argv[-1]]
            self.happened.append(f"{name}: {step}")
            return Completed(
                vm=name,
                argv=argv,
                exit_code=self._exit_code if step == self._failing else 0,
                stdout="",
                stderr=f"{step} failed",
                duration_ms=1,
            )

        def require_success(completed: Completed, *, deadline_s: float) -> None:
            if completed.exit_code != 0:
                raise HarnessError(f"{completed.stderr} within {deadline_s}")

        return SimpleNamespace(
            name=name,
            spec=SimpleNamespace(console_log=f"{name}.log"),
            run=run,
            must=lambda *argv, deadline_s: require_success(
                run(*argv, deadline_s=deadline_s), deadline_s=deadline_s
            ),
            require_success=require_success,
            kill=lambda: self.happened.append(f"{name}: off"),
        )

    def hand_over(self) -> Any:
        trial = SimpleNamespace(
            transport=TRANSPORT_OF_CELL,
            volume_options=OPTIONS,
            disks=pool_disks(CELL),
            fault=self._fault,
        )
        return hand_over(cast("Any", trial), cast("Any", self), self.machine("nas"))


def test_the_former_nas_is_off_before_the_standby_has_the_disks() -> None:
    played = _Played()
    assert played.hand_over().name == "standby"
    assert played.happened == [
        "nas: release",
        "nas: export",
        "nas: off",
        "standby: start",
        "standby: disks",
        "standby: import",
        "standby: volume",
        "standby: publish",
    ]


def test_the_standby_has_the_fault_of_the_nas() -> None:
    played = _Played(fault=FAULTS["zfs-nocacheflush"])
    played.hand_over()
    assert played.happened[-2:] == ["standby: publish", "standby: fault"]


@pytest.mark.parametrize("step", ["import", "volume", "publish"])
@pytest.mark.parametrize("exit_code", [1, None])
def test_a_standby_that_does_not_serve_is_the_storages_failure(
    step: str, exit_code: int | None
) -> None:
    with pytest.raises(StorageFailed, match=f"the standby .*: {step} failed"):
        _Played(step, exit_code).hand_over()


@pytest.mark.parametrize("step", ["release", "export"])
def test_a_refusal_of_the_former_nas_is_the_machinerys_failure_and_a_hang_the_storages(
    step: str,
) -> None:
    with pytest.raises(HarnessError, match=f"{step} failed") as refused:
        _Played(step).hand_over()
    assert not isinstance(refused.value, StorageFailed)
    with pytest.raises(StorageFailed, match="hung"):
        _Played(step, None).hand_over()


@pytest.mark.parametrize(
    ("fate", "dead"), [("bothdie", ["standby", "client"]), ("clientlater", ["standby"])]
)
def test_the_cut_falls_on_the_standby(
    fate: str, dead: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nas, client, standby = (SimpleNamespace(name=name) for name in ("nas", "client", "standby"))
    cell = Cell.parse(f"nvme_tcp-standard-noslog-ext4-handover-{fate}")
    spec = TrialSpec(cell=cell, index=0, seed=1, load_ms=1000)
    trial = Trial.begin(spec, folder=tmp_path, scratch=tmp_path, nas_host="nas")
    halted: list[str] = []
    shelf = SimpleNamespace(halt_with_freeze=lambda *dying: halted.extend(x.name for x in dying))

    class _Cut(Exception):
        """The cut of these machines."""

    def cut(dying: Sequence[Any]) -> Any:
        raise _Cut(*(machine.name for machine in dying))

    for step, answer in {
        "ready_machines": (nas, client),
        "fail_link": (None, standby),
        "start_loads": None,
        "prove": None,
        "settle": None,
        "trace_disk": None,
        "not_in_effect": (),
    }.items():
        monkeypatch.setattr(cut_course, step, lambda *_parts, _answer=answer, **_words: _answer)
    waited: list[Any] = []

    def wait(*parts: Any) -> bool:
        waited.append(parts[-1])
        return True

    monkeypatch.setattr(cut_course, "wait_for_moment", wait)
    machines: Any = SimpleNamespace(shelf=shelf, cut=cut)
    with pytest.raises(_Cut) as raised:
        cut_course.cut_and_recover(trial, machines, EvidenceWriter(folder=tmp_path))
    assert list(raised.value.args) == halted == dead
    assert waited == [standby]


# A preparation that fails leaves its consoles with the trial that made it, and no prepared
# folder.

PREPARED = Cell.parse("iscsi-always-noslog-btrfs-nasonly")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    made = Trial.begin(
        TrialSpec(cell=PREPARED, index=0, seed=1, load_ms=1000),
        folder=tmp_path / "evidence",
        scratch=tmp_path / "scratch",
        nas_host="10.77.0.2",
    )
    made.folder.mkdir()
    return made


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    """One whose NAS ends before its agent answers."""

    def start_nas(*, console_log: Path, disks: object, port_socket: object) -> None:
        assert port_socket is None
        console_log.write_text("torture: 17.02 s: exit code 1 of: modprobe -a zfs\n")
        raise HarnessError("nas stopped by itself", hint=f"read {console_log}")

    return SimpleNamespace(
        network=SimpleNamespace(nas_host="10.77.0.2"),
        sockets=tmp_path,
        prepared=PreparedFolders(tmp_path / "prepared"),
        keys=lambda *, preload: (preload,),
        start_nas=start_nas,
    )


def test_the_console_of_a_failed_preparation_stays_where_its_error_says(
    trial: Trial, lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        prepared_machines, "set_up_nas", lambda _trial, machines: machines.start_nas(1, ())
    )
    with (
        closing(Machines(trial=trial, lab=lab)) as machines,
        pytest.raises(HarnessError, match="nas stopped by itself") as failure,
    ):
        ready_machines(trial, machines, EvidenceWriter(folder=trial.folder))
    console = trial.folder / "prepare" / "nas-1.console.log"
    assert failure.value.hint == f"read {console}"
    assert console.read_text().endswith("modprobe -a zfs\n")
    assert [path.suffix for path in (tmp_path / "prepared").iterdir()] == [".lock"]


_DEADLINE_S = 120


class _Rig:
    """Machines and a load that note what happens to them."""

    def __init__(self, cell: str) -> None:
        self.happened: list[str] = []
        self.now_s = 0.0
        self.acknowledged = 7
        self.are_over = False
        own = Cell.parse(cell)
        self.trial = SimpleNamespace(
            cell=own,
            spec=SimpleNamespace(seed=5),
            clock_ms=lambda: self.now_s * 1000,
            transport=own[TRANSPORT],
        )
        network = SimpleNamespace(plug_nas=lambda is_in: self.happened.append(f"plug {is_in}"))
        self.machines = SimpleNamespace(lab=SimpleNamespace(network=network))
        self.nas = SimpleNamespace(must=self._must)
        self.last: Any = None

    def sleep(self, s: float) -> None:
        self.now_s += s

    def _must(self, *argv: str, deadline_s: float) -> None:
        assert deadline_s > 0
        end, start = self.trial.transport.traits.target_scripts
        target = {end: "end target", start: "start target"}
        self.happened.append(target.get(argv[-1], "lose" if "addr del" in argv[-1] else "regain"))

    def wait_until(self, reached: Any, *, deadline_s: float) -> bool:
        assert deadline_s == _DEADLINE_S
        assert not reached()
        self.acknowledged += 1
        self.happened.append("answered")
        return bool(reached())

    def fail(self) -> Any:
        """The `LinkFailure`, or None."""
        rig = cast("Any", self)
        failure, self.last = fail_link(rig.trial, rig.machines, rig, rig.nas)
        return failure


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> list[_Rig]:
    rigs: list[_Rig] = []
    monkeypatch.setattr("time.sleep", lambda s: rigs[0].sleep(s))
    return rigs


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        ("iscsi", ["plug False", "plug True", "answered"]),
        ("nvme_tcp", ["plug False", "plug True", "answered"]),
        ("nvme_tcp_two", ["lose", "regain", "answered"]),
        ("iscsi_two", ["lose", "regain", "answered"]),
    ],
)
def test_a_link_fails_and_is_mended_before_the_cut(
    transport: str, expected: list[str], no_wait: list[_Rig]
) -> None:
    rig = _Rig(f"{transport}-standard-noslog-ext4-linkfails-bothdie")
    no_wait.append(rig)
    failure = rig.fail()
    assert rig.happened == expected
    assert 500 <= failure.down_ms <= 2500
    assert failure.up_ms == pytest.approx(failure.down_ms + 16_000)
    assert failure.has_other_path == transport.endswith("_two")
    assert rig.last is rig.nas


@pytest.mark.parametrize("transport", ["iscsi", "iscsi_two", "nvme_tcp", "nvme_tcp_two", "nfs4"])
def test_a_target_restarts_with_every_path_to_it(transport: str, no_wait: list[_Rig]) -> None:
    filesystem = "files" if transport == "nfs4" else "ext4"
    rig = _Rig(f"{transport}-standard-noslog-{filesystem}-targetrestarts-bothdie")
    no_wait.append(rig)
    failure = rig.fail()
    assert rig.happened == ["end target", "start target", "answered"]
    assert failure.up_ms == pytest.approx(failure.down_ms + 4_000)
    assert not failure.has_other_path


@pytest.mark.parametrize("transport", ["nfs_image", "smb"])
def test_a_target_that_cannot_restart_is_refused(transport: str) -> None:
    with pytest.raises(ValueError, match="needs a target that restarts"):
        Cell.parse(
            f"{transport}-standard-noslog-{'ext4' if transport == 'nfs_image' else 'files'}"
            "-targetrestarts-bothdie"
        )


@pytest.mark.parametrize("transport", ["iscsi", "iscsi_two", "nvme_tcp", "nfs4"])
def test_a_standby_takes_over_while_no_client_reaches_either(
    transport: str, no_wait: list[_Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = "files" if transport == "nfs4" else "ext4"
    rig = _Rig(f"{transport}-standard-noslog-{filesystem}-handover-bothdie")
    no_wait.append(rig)
    standby = object()

    def hand_over(trial: object, machines: object, nas: object) -> object:
        assert (trial, machines, nas) == (rig.trial, rig.machines, rig.nas)
        rig.happened.append("hand over")
        rig.sleep(3)
        return standby

    monkeypatch.setattr(outage, "hand_over", hand_over)
    failure = rig.fail()
    assert rig.happened == ["plug False", "hand over", "plug True", "answered"]
    assert rig.last is standby
    assert failure.up_ms == pytest.approx(failure.down_ms + 3_000)
    assert not failure.has_other_path


def test_a_standby_is_refused_where_the_target_keeps_the_volume() -> None:
    with pytest.raises(ValueError, match="needs a target that lets go"):
        Cell.parse("smb-standard-noslog-files-handover-bothdie")


def test_a_link_that_stays_is_left_alone(no_wait: list[_Rig]) -> None:
    rig = _Rig("iscsi-standard-noslog-ext4-bothdie")
    no_wait.append(rig)
    assert rig.fail() is None
    assert (rig.happened, rig.now_s, rig.last) == ([], 0.0, rig.nas)


def test_a_cable_is_put_in_again_after_an_interruption(no_wait: list[_Rig]) -> None:
    rig = _Rig("iscsi-standard-noslog-ext4-linkfails-bothdie")
    no_wait.append(rig)

    def interrupted(s: float) -> None:
        if rig.happened:
            raise KeyboardInterrupt

    rig.sleep = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        rig.fail()
    assert rig.happened == ["plug False", "plug True"]
