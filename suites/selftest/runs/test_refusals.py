"""A host that lacks something: each lack ends in its own clear error, never in a hang."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import run_program

_CELL = "iscsi-always-noslog-btrfs-bothdie"
_DEADLINE_S = 90
_OWN_MOUNTS = ("unshare", "--mount", "--user", "--map-root-user")
"""In a user namespace even for root: what is switched off there stays on outside."""


@pytest.fixture(scope="module", autouse=True)
def sandboxes_can_be_nested() -> None:
    """Skip where a container's /proc forbids a sandbox within a namespace: all would fail alike."""
    probe = "from torture.machines.host.scratch import sandbox_refusal; print(sandbox_refusal())"
    probed = run_program(*_OWN_MOUNTS, sys.executable, "-c", probe, deadline_s=_DEADLINE_S)
    if probed.stdout.strip() != "None":
        pytest.skip(f"no sandbox within a user namespace here: {probed.stdout}{probed.stderr}")


def _run_after(preparation: str, *, scratch: Path, results: Path) -> str:
    """The output of a run whose host was changed by a shell command, in a mount namespace of its own."""
    pytest_command = (
        f"{sys.executable} -m pytest suites/powercut -p no:cacheprovider --matrix quick -k {_CELL} "
        f"--trials 1 --scratch {scratch} --results {results}"
    )
    script = f"set -e; {preparation}; exec {pytest_command}"
    completed = run_program(*_OWN_MOUNTS, "sh", "-c", script, deadline_s=_DEADLINE_S)
    assert completed.returncode != 0
    assert "Traceback" not in completed.stdout
    return completed.stdout + completed.stderr


@pytest.mark.parametrize(
    ("preparation", "complaint"),
    [
        pytest.param(
            "mount --bind /dev/null $(command -v qemu-system-x86_64)", "qemu", id="no-qemu"
        ),
        pytest.param("mount --bind /dev/null $(command -v nbdkit)", "nbdkit", id="no-nbdkit"),
        pytest.param(
            "mount --bind /dev/null $(/sbin/ldconfig -p | sed -n 's/.*libvirt.so.0 .*=> //p' | head -1)",
            "libvirt",
            id="no-libvirt",
        ),
        pytest.param(
            "echo 0 > /proc/sys/user/max_net_namespaces", "namespaces", id="no-namespaces"
        ),
    ],
)
def test_a_missing_part_is_named_with_the_next_step(
    vm_scratch: Path, tmp_path: Path, preparation: str, complaint: str
) -> None:
    output = _run_after(preparation, scratch=vm_scratch, results=tmp_path)
    assert complaint in output.lower()
    assert "next:" in output


@pytest.mark.parametrize("place", ["scratch", "results"])
def test_a_full_disk_is_said_before_anything_begins(
    vm_scratch: Path, tmp_path: Path, place: str
) -> None:
    places = {"scratch": vm_scratch, "results": tmp_path}
    small = places[place] / "small"
    small.mkdir()
    preparation = f"mount -t tmpfs -o size=6m none {small}"
    output = _run_after(preparation, **(places | {place: small}))
    assert "the run cannot begin: only" in output
    assert "next: free some space" in output
