"""The doctor: what each probe makes of a host, that every lack has a fix, that none can crash it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.programs.launcher import run_program
from torture.errors import HarnessError
from torture.files import CHECKOUT
from torture.machines.images import IMAGES, GuestImage
from torture.setup import doctor
from torture.setup.doctor import Finding, State, can_run, find_all, in_words, lack, note, ok
from torture.trials.campaign.run import FREE_BYTES_MIN

NAME = "probe"
DOCTOR = CHECKOUT / "tools" / "doctor"


def check(finding: Finding, state: State, *words: str) -> None:
    """Has this state and says these words; a lack has a fix."""
    assert finding.state is state, finding
    assert finding.name == NAME
    for word in words:
        assert word in f"{finding.text} {finding.fix}", finding
    assert finding.fix or state is not State.LACK


def built(name: str) -> GuestImage:
    versions = {"kernel": "6.12-cloud", "zfs": "2.3.9", "btrfs-progs": "6.14"}
    place = Path("nowhere")
    return GuestImage(
        name=name, key="cafe", kernel=place, initrd=place, root=place, manifest=versions
    )


def not_built(name: str) -> None:
    return None


def executable(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_python_too_old_is_a_lack() -> None:
    check(doctor.python(NAME, version=(3, 10, 13)), State.LACK, "3.10.13")
    check(doctor.python(NAME, version=(3, 11, 0)), State.OK, "3.11.0")
    check(doctor.python(NAME), State.OK)


def test_missing_packages_are_named() -> None:
    found = doctor.packages(NAME, missing=lambda: ("nbdkit", "tini"))
    check(found, State.LACK, "nbdkit tini", "tools/run --setup-only")
    check(doctor.packages(NAME, missing=tuple), State.OK)


def test_an_unfinished_environment_is_a_lack() -> None:
    check(doctor.environment(NAME, is_complete=lambda: False), State.LACK, "--setup-only")
    check(doctor.environment(NAME, is_complete=lambda: True), State.OK)


@pytest.mark.parametrize(
    ("flags", "has_kvm", "state", "word"),
    [
        ("fpu sse2", True, State.NOTE, "neither vmx nor svm"),
        ("fpu vmx", False, State.NOTE, "is missing"),
        ("fpu vmx", True, State.OK, "kvm"),
        ("fpu svm", True, State.OK, "kvm"),
        ("fpu novmx svmless", True, State.NOTE, "tcg"),
    ],
)
def test_kvm_needs_the_processor_and_the_device(
    tmp_path: Path, flags: str, has_kvm: bool, state: State, word: str
) -> None:
    cpuinfo, kvm = tmp_path / "cpuinfo", tmp_path / "kvm"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    if has_kvm:
        kvm.touch()
    check(doctor.accelerator(NAME, cpuinfo=cpuinfo, kvm=kvm), state, word)


def test_libvirt_is_asked_for_its_version_and_needs_its_driver(tmp_path: Path) -> None:
    missing = doctor.libvirt(NAME, library="libvirt-of-nobody.so.0")
    check(missing, State.LACK, "not found", "apt-get install")
    check(doctor.libvirt(NAME, roots=[tmp_path]), State.LACK, "QEMU driver", "apt-get install")
    driver = tmp_path / "any-triplet/libvirt/connection-driver/libvirt_driver_qemu.so"
    driver.parent.mkdir(parents=True)
    driver.touch()
    check(doctor.libvirt(NAME, roots=[tmp_path]), State.OK, ".")


def test_libvirt_wants_its_user() -> None:
    check(doctor.libvirt_user(NAME, user="nobody-has-this-name"), State.LACK, "useradd")
    check(doctor.libvirt_user(NAME, user="root"), State.OK)


def test_qemu_is_found_by_name(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    check(doctor.qemu(NAME, binary=absent), State.LACK, "apt-get install")
    check(doctor.block_drivers(NAME, binary=absent), State.LACK, "apt-get install")
    script = 'echo "QEMU emulator version 8.1.2 (Debian 1:8.1.2)"'
    check(doctor.qemu(NAME, binary=executable(tmp_path / "qemu", script)), State.OK, "8.1.2")


@pytest.mark.parametrize(
    ("said", "state", "word"),
    [
        ("-blockdev driver=iscsi: Unknown driver 'iscsi'", State.LACK, "qemu-block-extra"),
        ("Parameter 'driver' does not accept value 'iscsi'", State.LACK, "iscsi"),
        ("iSCSI: Failed to connect to LUN", State.OK, "load"),
    ],
)
def test_a_block_driver_is_judged_by_the_output_of_loading_it(
    tmp_path: Path, said: str, state: State, word: str
) -> None:
    binary = executable(tmp_path / "qemu", f'echo "{said}" >&2; exit 1')
    check(doctor.block_drivers(NAME, binary=binary), state, word)


def test_a_driver_that_qemu_never_had_is_a_lack() -> None:
    drivers = {"iscsi": "driver=punchcards"}
    check(doctor.block_drivers(NAME, drivers=drivers), State.LACK, "iscsi")


def test_the_shelf_needs_nbdkit_and_a_plugin_that_it_can_load(tmp_path: Path) -> None:
    check(doctor.shelf(NAME, binary=str(tmp_path / "absent")), State.LACK, "apt-get install")
    unbuilt = doctor.shelf(NAME, plugin=lambda: None)
    check(unbuilt, State.LACK, "not built", "tools/run --setup-only")
    (tmp_path / "broken.so").write_bytes(b"no library")
    check(doctor.shelf(NAME, plugin=lambda: tmp_path / "broken.so"), State.LACK, "cannot load")
    check(doctor.shelf(NAME), State.OK, "nbdkit")


def test_a_refused_sandbox_gives_the_reason_and_the_next_step() -> None:
    refused = doctor.namespaces(NAME, refusal=lambda: "unshare: Operation not permitted")
    check(refused, State.LACK, "not permitted", "unprivileged_userns_clone")
    error = HarnessError("not installed: tini", hint="tools/run --setup-only")
    toolless = doctor.namespaces(NAME, refusal=lambda: str(error))
    check(toolless, State.LACK, "not installed: tini")
    assert toolless.fix == "tools/run --setup-only"
    check(doctor.namespaces(NAME, refusal=lambda: None), State.OK)


def test_the_user_mode_network_is_no_lack(tmp_path: Path) -> None:
    check(doctor.network(NAME, tun=tmp_path / "tun"), State.NOTE, "usermode", "modprobe tun")
    check(doctor.network(NAME, tun=Path("/dev/null")), State.OK, "bridge")


@pytest.mark.parametrize(
    ("table", "state"),
    [
        ("ada:100000:65536\n", State.OK),
        ("1815:100000:65536\n", State.OK),
        ("someone:1:65536\n\ngarbage\nada:165536:131072", State.OK),
        ("adam:100000:65536\n", State.NOTE),
        ("ada:100000:1000\n", State.NOTE),
        ("ada:100000:many\n", State.NOTE),
        ("", State.NOTE),
        (None, State.NOTE),
    ],
)
def test_only_a_user_without_root_needs_a_range(
    tmp_path: Path, table: str | None, state: State
) -> None:
    path = tmp_path / "subuid"
    if table is not None:
        path.write_text(table)
    found = doctor.subordinate_ids(NAME, user="ada", uid=1815, table=path)
    check(found, state)
    assert bool(found.fix) == (state is State.NOTE)
    check(doctor.subordinate_ids(NAME, user="root", uid=0, table=path), State.OK)


@pytest.mark.parametrize(
    ("available_kib", "state"),
    [
        (2 * 1024**2 - 1, State.LACK),
        (2 * 1024**2, State.NOTE),
        (4 * 1024**2 - 1, State.NOTE),
        (4 * 1024**2, State.OK),
    ],
)
def test_memory_is_the_available_memory(tmp_path: Path, available_kib: int, state: State) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {available_kib} kB\n")
    check(doctor.memory(NAME, meminfo=meminfo), state)


def test_a_full_disk_is_a_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def free(size_bytes: int) -> None:
        usage = type("Usage", (), {"free": size_bytes})
        monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)

    cache = tmp_path / "not" / "made" / "yet"
    free(4 * 1024**3 - 1)
    check(doctor.image_cache(NAME, root=cache, look=not_built), State.LACK, "TORTURE_CACHE")
    check(doctor.image_cache(NAME, root=cache, look=built), State.OK)
    free(2 * 1024**3 - 1)
    check(doctor.scratch(NAME, base=lambda: tmp_path), State.LACK, "--scratch")
    free(doctor.RESULTS_BYTES_MIN - 1)
    check(doctor.results(NAME, folder=cache), State.LACK, "--results")
    free(4 * 1024**3)
    check(doctor.image_cache(NAME, root=cache, look=not_built), State.OK, "4.0 GiB")
    check(doctor.scratch(NAME, base=lambda: tmp_path), State.OK)
    check(doctor.results(NAME, folder=cache), State.OK)


def test_a_closed_folder_is_a_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    check(doctor.results(NAME, folder=tmp_path), State.LACK, "closed to this user")


def test_the_doctor_asks_for_the_room_a_run_asks_for() -> None:
    assert doctor.RESULTS_BYTES_MIN == FREE_BYTES_MIN


def test_an_image_shows_the_versions_of_its_packages() -> None:
    check(doctor.image(NAME, of="nas", look=not_built), State.LACK, "tools/run --setup-only")
    check(doctor.image(NAME, of="nas", look=built), State.OK, "cafe", "kernel 6.12", "zfs 2.3.9")
    client = doctor.image(NAME, of="client", look=built)
    check(client, State.OK, "btrfs-progs 6.14", "e2fsprogs unknown", "xfsprogs")
    check(doctor.image(NAME, of="later", look=built), State.OK, "kernel")


def test_every_image_is_looked_at() -> None:
    assert {f"image {name}" for name in IMAGES} <= doctor.PROBES.keys()


def test_a_probe_that_raises_is_a_lack_and_the_others_go_on(tmp_path: Path) -> None:
    def hangs(name: str) -> Finding:
        raise subprocess.TimeoutExpired("qemu", 10)

    def hinted(name: str) -> Finding:
        raise HarnessError("there is no dpkg here", hint="install by hand")

    found = find_all(
        {
            "hangs": hangs,
            "hinted": hinted,
            "absent": lambda name: doctor.memory(name, meminfo=tmp_path / "meminfo"),
            "fine": lambda name: ok(name, "yes"),
        }
    )
    assert [finding.state for finding in found] == [State.LACK] * 3 + [State.OK]
    assert [finding.name for finding in found] == ["hangs", "hinted", "absent", "fine"]
    assert found[1].fix == "install by hand"
    assert "FileNotFoundError" in found[2].text
    assert all(finding.fix for finding in found[:3])


def test_only_a_lack_keeps_a_run_from_working() -> None:
    well = (ok("a", "x"), note("b", "y", "z"))
    assert can_run(well)
    assert not can_run((*well, lack("c", "x", "do y")))


def test_a_finding_is_one_line_and_its_fix_stands_below() -> None:
    said = in_words([ok("longer name", "fine"), lack("short", "two\nlines", "type this")])
    assert said.splitlines() == [
        "ok    longer name  fine",
        "LACK  short        two lines",
        "                   fix: type this",
        "lacks: 1; a run cannot work",
    ]
    assert in_words([ok("a", "b")]).splitlines()[-1] == "a run can work"


def run_doctor(**environment: Any) -> subprocess.CompletedProcess[str]:
    """Isolated and without site-packages, as on a host where nothing is installed."""
    return run_program(sys.executable, "-I", "-S", DOCTOR, deadline_s=30, **environment)


def test_the_tool_needs_no_package_and_a_lack_ends_it_with_1(tmp_path: Path) -> None:
    done = run_doctor(TORTURE_CACHE=str(tmp_path), PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line[:4] in ("ok  ", "note", "LACK")]) == len(
        doctor.PROBES
    )
    assert any(line.startswith("LACK  image nas") for line in lines)
    assert any(line.startswith("LACK  QEMU ") for line in lines)
    assert "tools/run --setup-only" in done.stdout


def test_the_exit_code_agrees_with_the_printed_findings() -> None:
    done = run_doctor()
    assert done.stderr == ""
    assert done.returncode == int("LACK" in done.stdout)
