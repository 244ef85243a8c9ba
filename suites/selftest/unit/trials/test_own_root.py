"""A client whose root is on the NAS's disk: which failures are outcomes, and which the machinery's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.choices.test_boot import DOWN, UP
from torture.choices.filesystems import AXIS
from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.folder import Completed, Step
from torture.machines.lab.machine import GuestDied
from torture.trials.trial import own_root
from torture.trials.trial.outage import BrokenOff, keep_outage
from torture.trials.trial.own_root import boots, install_script, keep_loss_of_root
from torture.trials.trial.recovery import detach
from torture.trials.trial.setup import prepare_disk
from torture.trials.trial.shared.resident import EvidenceWriter, StorageFailed


class FakeMachine:
    """It runs what `answers` says, by a word of the command, and well where that says nothing."""

    def __init__(
        self, folder: Path, name: str = "client", **answers: int | Exception | None
    ) -> None:
        self.name = name
        self.spec = SimpleNamespace(console_log=folder / "boot.console.log")
        self.answers = answers
        self.killed = False
        self.ran: list[str] = []

    has_exited_unexpectedly = False

    def is_alive(self) -> bool:
        return not self.killed

    def kill(self) -> None:
        self.killed = True

    def run(self, *argv: str, deadline_s: float) -> Completed:
        self.ran.append(" ".join(argv))
        answer = next((self.answers[x] for x in self.answers if x in argv[0]), 0)
        if isinstance(answer, Exception):
            raise answer
        return Completed(
            vm=self.name,
            argv=argv,
            exit_code=answer,
            stdout="",
            stderr="",
            duration_ms=int(deadline_s),
        )

    def must(self, *argv: str, deadline_s: float) -> Completed:
        done = self.run(*argv, deadline_s=deadline_s)
        if done.exit_code != 0:
            raise HarnessError(f"{argv[0]} returned {done.exit_code}")
        return done


@dataclass(frozen=True, kw_only=True)
class ListedEvidence(EvidenceWriter):
    """A writer that keeps steps in a list."""

    kept: list[tuple[Step, Completed]] = field(default_factory=list)

    def keep(self, step: Step, completed: Completed) -> None:
        self.kept.append((step, completed))


def evidence_in(folder: Path) -> ListedEvidence:
    return ListedEvidence(folder=folder, timings={"check": 1})


def trial_in(*, boots_from_disk: bool = True) -> Any:
    filesystem = AXIS.choice("ext4journal").value.on("/dev/vdb")
    return SimpleNamespace(
        boots_from_disk=boots_from_disk,
        device="/dev/vdb",
        root_words=f"root=/dev/vdb {filesystem.root_words}",
        filesystem=filesystem,
        has_own_filesystem=True,
        attachment=SimpleNamespace(device="/dev/vdb", detach_script=""),
        volume_options=SimpleNamespace(takes_discards=True),
        transport=None,
        is_mounted=True,
        workloads=(),
        jobs={},
    )


def loads_that(*, are_over: bool) -> Any:
    return SimpleNamespace(are_over=are_over)


def died(machine: Any, *, kernel_crashed: bool = True) -> GuestDied:
    return GuestDied(
        "client stopped by itself\nat once", machine=machine, kernel_crashed=kernel_crashed
    )


Boot = Callable[..., tuple[bool, Any]]


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """Boot a VM whose console says this, and which is this or fails so; the evidence of it."""

    def _boot(console: str, outcome: Any, nas: Any = None) -> tuple[bool, Any]:
        evidence = evidence_in(tmp_path)

        def booted(role: str, *, name: str) -> Any:
            assert name not in {"client", "checker", "nas"}
            (tmp_path / f"{role}.console.log").write_text(console)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        idle: list[Any] = []
        monkeypatch.setattr(own_root, "wait_until_idle", lambda *_args: idle.append(1))
        answering: Any = nas or FakeMachine(tmp_path, "nas")
        machines: Any = SimpleNamespace(trial=trial_in(), boot_client_from_disk=booted)
        is_up = boots(machines, evidence, answering, Step.BOOT)
        assert idle
        return is_up, dict(evidence.kept)

    return _boot


def test_the_root_is_checked_at_boot_and_has_the_options_of_its_filesystem() -> None:
    script = install_script(trial_in())
    assert f"echo '/dev/vdb / ext4 data=journal 0 1' > {MOUNT_POINT}/etc/fstab" in script
    assert script.startswith("set -eu\n")


def test_a_root_is_not_made_anew_but_found_at_one_place_more(tmp_path: Path) -> None:
    client: Any = FakeMachine(tmp_path)
    prepare_disk(trial_in(), client)
    assert client.ran == [
        f"mount --bind / {MOUNT_POINT}",
        f"mount -o remount,discard {MOUNT_POINT}",
        f"sh -c sync -f {MOUNT_POINT}",
    ]
    other: Any = FakeMachine(tmp_path)
    prepare_disk(trial_in(boots_from_disk=False), other)
    assert [ran.split()[0] for ran in other.ran] == ["mkfs.ext4", "mount", "mount", "sh"]


def test_a_client_lets_go_of_its_root_by_never_writing_to_it_again(tmp_path: Path) -> None:
    client: Any = FakeMachine(tmp_path)
    detach(trial_in(), evidence_in(tmp_path), client)
    assert client.ran == [f"sh -c sync; umount {MOUNT_POINT}; mount -o remount,ro /"]
    other: Any = FakeMachine(tmp_path)
    detach(trial_in(boots_from_disk=False), evidence_in(tmp_path), other)
    assert other.ran == [f"umount {MOUNT_POINT}"]


def test_a_vm_that_came_up_is_shut_down_and_all_it_said_is_kept(boot: Boot, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    is_up, kept = boot(UP, machine)
    assert is_up
    assert machine.killed
    assert list(kept) == [Step.BOOT_DMESG, Step.BOOT_HALT, Step.BOOT_FSCK, Step.BOOT]
    assert (kept[Step.BOOT].exit_code, kept[Step.BOOT].stdout) == (0, UP)
    assert kept[Step.BOOT_FSCK].exit_code == 0
    assert "recovering journal" in kept[Step.BOOT_FSCK].stdout


def test_a_kernel_that_gives_up_is_a_vm_that_does_not_boot(boot: Boot) -> None:
    is_up, kept = boot(DOWN, died(FakeMachine(Path("nowhere"))))
    assert not is_up
    assert (kept[Step.BOOT].exit_code, kept[Step.BOOT].stderr) == (1, "its kernel gave up")
    assert kept[Step.BOOT_FSCK].exit_code == 8


def test_a_vm_that_is_silent_beside_a_nas_that_answers_does_not_boot(
    boot: Boot, tmp_path: Path
) -> None:
    late = DeadlineExceeded("the guest agent of client did not answer within 240 s")
    is_up, kept = boot("", late)
    assert not is_up
    assert kept[Step.BOOT].stderr == late.message
    assert Step.BOOT_FSCK not in kept
    with pytest.raises(HarnessError, match="true returned 1"):
        boot("", late, FakeMachine(tmp_path, "nas", true=1))


@pytest.mark.parametrize("answer", [1, None, HarnessError("Input/output error")])
def test_an_agent_that_answers_and_runs_nothing_is_not_up(
    boot: Boot, tmp_path: Path, answer: int | Exception | None
) -> None:
    machine = FakeMachine(tmp_path, dmesg=answer)
    is_up, kept = boot(UP, machine)
    assert not is_up
    assert machine.killed
    assert kept[Step.BOOT].stderr.startswith("its agent answer")


def test_an_emulator_that_is_gone_is_the_machinerys(boot: Boot, tmp_path: Path) -> None:
    gone = died(FakeMachine(Path("nowhere")), kernel_crashed=False)
    for outcome in (gone, FakeMachine(tmp_path, dmesg=gone)):
        with pytest.raises(GuestDied):
            boot(UP, outcome)


def test_a_client_that_panics_or_runs_nothing_after_its_writers_lost_its_root(
    tmp_path: Path,
) -> None:
    client: Any = FakeMachine(tmp_path)
    client.spec.console_log.write_text(DOWN)
    panicked, silent = evidence_in(tmp_path), evidence_in(tmp_path)
    writing, over = loads_that(are_over=False), loads_that(are_over=True)
    keep_loss_of_root(trial_in(), panicked, writing, client, died(client))
    no_answer = HarnessError("guest-exec: Input/output error")
    keep_loss_of_root(trial_in(), silent, over, client, no_answer)
    for evidence in (panicked, silent):
        [(step, lost)] = evidence.kept
        assert (step, lost.stdout) == (Step.CLIENT_LOST_ROOT, DOWN)
    assert panicked.kept[0][1].stderr == "client stopped by itself"


@pytest.mark.parametrize("boots_from_disk", [True, False])
def test_any_other_failure_beside_a_client_that_writes_is_the_machinerys(
    tmp_path: Path, boots_from_disk: bool
) -> None:
    client: Any = FakeMachine(tmp_path)
    failures = [
        HarnessError("no answer"),
        died(client, kernel_crashed=False),
        died(FakeMachine(tmp_path, "nas")),
    ]
    if not boots_from_disk:
        failures.append(died(client))
    for failure in failures:
        trial, evidence = trial_in(boots_from_disk=boots_from_disk), evidence_in(tmp_path)
        with pytest.raises(HarnessError):
            keep_loss_of_root(trial, evidence, loads_that(are_over=False), client, failure)
        assert evidence.kept == []


@pytest.mark.parametrize("boots_from_disk", [True, False])
def test_a_client_with_a_hanging_root_is_asked_for_no_program_of_that_disk(
    tmp_path: Path, boots_from_disk: bool
) -> None:
    client: Any = FakeMachine(tmp_path, true=None)
    client.spec.console_log = tmp_path / "client.console.log"
    checker: Any = FakeMachine(tmp_path, "checker", true=None)
    evidence = evidence_in(tmp_path)
    machines: Any = SimpleNamespace(
        trial=trial_in(boots_from_disk=boots_from_disk),
        lab=SimpleNamespace(require_host=lambda: None),
        shelf=SimpleNamespace(is_started=False),
        all=(FakeMachine(tmp_path, "nas"), client),
    )
    failure = StorageFailed("the client did not go on", machine=client)
    if boots_from_disk:
        with keep_outage(machines, evidence):
            raise failure
        assert "did not go on" in (tmp_path / "outage.json").read_text()
        machines.all = (FakeMachine(tmp_path, "nas", true=1), client)
    with pytest.raises(BrokenOff), keep_outage(machines, evidence):
        raise failure
    machines.all = (FakeMachine(tmp_path, "nas"), checker)
    failure = StorageFailed("the mount hung", machine=checker)
    with pytest.raises(BrokenOff), keep_outage(machines, evidence):
        raise failure
