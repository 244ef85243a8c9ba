"""Whose fault it is that a saved state does not resume, and what becomes of the state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import libvirt
import pytest

from torture.errors import DeadlineExceeded, HarnessError
from torture.machines.host.abilities import Accelerator
from torture.machines.lab import machine as machine_module
from torture.machines.lab.agent import StartRefused, StateFault, fault_of_state
from torture.machines.lab.domains import MachineSpec
from torture.machines.lab.machine import Machine
from torture.machines.lab.saved_states import WarmStates

RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "resume"
REFUSALS = {
    (path.stem, case): words
    for path in sorted(RECORDED.glob("*.json"))
    for case, words in json.loads(path.read_text())["refusals"].items()
}
ELSEWHERE = frozenset(
    {"name-not-let-go", "name-taken", "no-folder-of-the-console", "no-kernel", "no-qemu", "no-room",
     "no-root-image", "no-state", "no-tap", "out-of-files", "out-of-memory", "tap-taken"}
)  # fmt: skip
UNEXPLAINED = frozenset({"qemu-killed"})
SILENT = DeadlineExceeded("the guest agent of nas did not answer within 60 s")
DAMAGED = StartRefused("nas does not resume", refusal="operation failed: image magic is incorrect")
NAME_TAKEN = StartRefused(
    "nas does not resume", refusal="operation failed: domain 'nas' is already being removed"
)
SPEC = MachineSpec(
    name="nas",
    kernel=Path("/i/vmlinuz"),
    initrd=Path("/i/initrd"),
    root_image=Path("/i/root.sqfs"),
    command_line="quiet",
    memory_mib=768,
    accelerator=Accelerator.TCG,
    console_log=Path("/c/console.log"),
)


def fault(refusal: str) -> StateFault:
    return fault_of_state(StartRefused("nas does not resume", refusal=refusal))


def test_every_failure_was_recorded_with_each_libvirt() -> None:
    stems = {stem for stem, _ in REFUSALS}
    cases = {case for _, case in REFUSALS}
    assert len(stems) == 2
    assert set(REFUSALS) == {(stem, case) for stem in stems for case in cases}
    assert cases > ELSEWHERE | UNEXPLAINED


@pytest.mark.parametrize(("stem", "case"), REFUSALS)
def test_only_a_wrong_file_is_the_fault_of_the_state(stem: str, case: str) -> None:
    expected = StateFault.CERTAIN
    if case in ELSEWHERE:
        expected = StateFault.NONE
    if case in UNEXPLAINED:
        expected = StateFault.POSSIBLE
    assert fault(REFUSALS[stem, case]) is expected


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        # written down from the sources of QEMU and libvirt
        ("operation failed: job 'start' unexpectedly failed", StateFault.POSSIBLE),
        (
            "internal error: qemu unexpectedly closed the monitor: qemu-system-x86_64: "
            "../target/i386/kvm/kvm.c:2893: kvm_buf_set_msrs: Assertion `ret == n' failed.",
            StateFault.POSSIBLE,
        ),
        ("Domain not found: no domain with matching name 'nas'", StateFault.POSSIBLE),
        (
            "operation failed: guest CPU doesn't match specification: missing features: avx512f",
            StateFault.CERTAIN,
        ),
        (
            "operation failed: job 'start' failed: load of migration failed: Cannot allocate memory",
            StateFault.NONE,
        ),
        ("words that are new", StateFault.NONE),
    ],
)
def test_rarer_words_are_understood_too(refusal: str, expected: StateFault) -> None:
    assert fault(refusal) is expected


def test_a_guest_that_stays_silent_after_its_resume_puts_the_state_under_suspicion() -> None:
    assert fault_of_state(SILENT) is StateFault.POSSIBLE


class Nas:
    """A machine whose next resume fails in the given way, or works."""

    name = "nas"

    def __init__(self) -> None:
        self.failure: HarnessError | None = None

    def resume(self, _state: Path, *, deadline_s: float) -> None:
        assert deadline_s > 0
        if self.failure is not None:
            raise self.failure


class Resumes:
    """Resumes from one saved state, again and again."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "nas-0123.state"
        self.state.write_bytes(b"LibvirtQemudSave")
        self.announced: list[str] = []
        self._warm = WarmStates(directory=folder, connection=None, libvirt_root=folder)
        self._nas = Nas()

    def resume(self, failure: HarnessError | None) -> None:
        self._nas.failure = failure
        machine = cast(Machine, self._nas)
        self._warm.resume(machine, self.state, deadline_s=1, say=self.announced.append)

    def fail(self, failure: HarnessError) -> None:
        with pytest.raises(HarnessError) as raised:
            self.resume(failure)
        assert raised.value is failure


@pytest.mark.parametrize(
    ("failures", "is_kept"),
    [
        ([DAMAGED], False),
        ([NAME_TAKEN] * 10, True),
        ([SILENT], True),
        ([SILENT, SILENT], False),
        ([SILENT, None, SILENT], True),
        ([SILENT, NAME_TAKEN], True),
        ([SILENT, NAME_TAKEN, SILENT], False),
    ],
    ids=[
        "a damaged state is deleted at once",
        "a sound state outlives any number of failures elsewhere",
        "one silence is a suspicion",
        "a suspected state is deleted at the second failure in a row",
        "a resume that works clears a state of suspicion",
        "a failure elsewhere raises no suspicion",
        "a failure elsewhere clears no suspicion",
    ],
)
def test_a_state_is_kept_until_its_failures_are_its_own(
    failures: list[HarnessError | None], is_kept: bool, tmp_path: Path
) -> None:
    resumes = Resumes(tmp_path)
    for place, failure in enumerate(failures, start=1):
        resumes.fail(failure) if failure else resumes.resume(None)
        assert resumes.state.exists() or place == len(failures)
    assert resumes.state.exists() is is_kept
    if SILENT not in failures or not is_kept:
        assert list(tmp_path.iterdir()) == ([resumes.state] if is_kept else [])
    said = ["deleting the saved state of nas, which did not resume"]
    assert resumes.announced == ([] if is_kept else said)


class Refusal(libvirt.libvirtError):  # type: ignore[misc]
    """The error that libvirt raises; without a connection it has no code of its own."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code

    def get_error_code(self) -> int:
        return self.code


class Libvirt:
    """Finds no domain, lists `nas` a few times more, and refuses every start."""

    def __init__(self, *, listings: int) -> None:
        self.listings = listings

    def lookupByName(self, name: str) -> Any:
        raise Refusal(f"no domain {name}", libvirt.VIR_ERR_NO_DOMAIN)

    def listDefinedDomains(self) -> list[str]:
        self.listings -= 1
        return ["other", "nas"] if self.listings >= 0 else ["other"]

    def createXML(self, _xml: str, _flags: int) -> Any:
        words = "too early" if self.listings >= 0 else "in time"
        raise Refusal(words, libvirt.VIR_ERR_OPERATION_FAILED)


def refused_start(connection: Libvirt, root: Path) -> StartRefused:
    nas = Machine(connection=connection, libvirt_root=root, spec=SPEC)
    with pytest.raises(StartRefused) as raised:
        nas.boot(deadline_s=1)
    return raised.value


def test_a_start_waits_until_the_former_life_has_left_the_list(tmp_path: Path) -> None:
    assert refused_start(Libvirt(listings=3), tmp_path).refusal == "in time"


def test_a_former_life_that_never_leaves_is_not_the_fault_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_module, "_GONE_DEADLINE_S", 0.05)
    error = refused_start(Libvirt(listings=10**9), tmp_path)
    assert "end of the former nas" in error.message
    assert fault_of_state(error) is StateFault.NONE
