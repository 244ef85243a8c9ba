"""The parsers of zpool and mount, on recorded outputs: whole and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.good_evidence import recording
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import Attempt
from torture.oracles.verdict.guarantee import UnreadableError
from torture.oracles.verdict.mount import parse_mount
from torture.oracles.verdict.pool_tools.zpool import PoolStatus, parse_import, parse_status

IMPORTS = {
    "import-ok": Attempt(is_done=True),
    "import-rewound": Attempt(
        is_done=True,
        reason="Pool tank returned to its state as of Sat Nov 21 05:58:31 2026.; "
        "Discarded approximately 5 seconds of transactions.",
    ),
    "import-missing-log": Attempt(
        is_done=False, reason="one or more devices is currently unavailable"
    ),
    "import-missing-log-2.1": Attempt(
        is_done=False, reason="one or more devices is currently unavailable"
    ),
    "import-needs-rewind": Attempt(is_done=False, reason="I/O error"),
    "import-without-log": Attempt(is_done=True),
    "import-hopeless": Attempt(is_done=False, reason="I/O error"),
    "import-hopeless-rewind": Attempt(
        is_done=False, reason="one or more devices is currently unavailable"
    ),
    "import-no-such-pool": None,
    "import-other-host": None,
    "import-imported-on-host": None,
}
REFUSED_BY_US = """\
pool is imported on nas2 (hostid: 0x4f3c2a1b)
pool is imported on host 'nas2' (hostid=4f3c2a1b).
pool is imported on a different host
pool was previously in use from another system.
pool has the multihost property on and the
the multihost claim could not be written to a device
I/O errors occurred while writing the multihost claim.
one or more devices is read only
one or more devices are already in use
new name of at least one dataset is longer than the maximum allowable length
a pool with that name already exists
a pool with that name is already created/imported,
no such pool available
no such pool or dataset
more than one matching pool
pool already exists
pool is busy
pool is read-only
pool export in progress
out of space
permission denied
delegated administration is disabled on pool
bad address
signal received
the loaded zfs module does not support this operation. A reboot may be required to enable it.
Cannot allocate memory""".splitlines()
"""First lines of refusals that judge no data (OpenZFS 2.1.11 to 2.4.4: `do_import` and its callers in
`cmd/zpool/zpool_main.c`, `zpool_import_props` and `zpool_standard_error_fmt` in libzfs)."""
MOUNTS = {
    "mounted": Attempt(is_done=True),
    "refused-bad-superblock": Attempt(
        is_done=False,
        reason="wrong fs type, bad option, bad superblock on /dev/vdb, missing codepage or helper "
        "program, or other error.",
    ),
    "refused-needs-cleaning": Attempt(
        is_done=False, reason="fsconfig() failed: Structure needs cleaning."
    ),
    "refused-cannot-read": Attempt(is_done=False, reason="can't read superblock on /dev/vdb."),
    "zfs-refused": Attempt(
        is_done=False,
        reason="mount failed: cannot import 'vm': I/O error Destroy and re-create the pool from a "
        "backup source.",
    ),
    "zfs-no-labels": None,
    "no-device": None,
}


STATUS = recording("zpool/status-scrubbed")


def status_with(**changes: Any) -> ToolOutput:
    """The recorded status with other values in the pool, its disk (`disk_...`) or a log device."""
    document = json.loads(STATUS.stdout)
    pool = document["pools"]["tank"]
    disk = pool["vdevs"]["tank"]["vdevs"]["virtio-data0"]
    for key, value in changes.items():
        if key.startswith("disk_"):
            disk[key.removeprefix("disk_")] = value
        else:
            pool[key] = value
    return replace(STATUS, stdout=json.dumps(document))


@pytest.mark.parametrize("case", IMPORTS)
def test_an_import_is_understood(case: str) -> None:
    output, expected = recording(f"zpool/{case}"), IMPORTS[case]
    if expected is None:
        with pytest.raises(UnreadableError, match="pool"):
            parse_import(output)
    else:
        assert parse_import(output) == expected


@pytest.mark.parametrize("reason", REFUSED_BY_US)
def test_a_refusal_that_judges_no_data_is_no_loss(reason: str) -> None:
    output = recording("zpool/import-hopeless")
    with pytest.raises(UnreadableError, match="pool"):
        parse_import(replace(output, stderr=f"cannot import 'tank': {reason}\n"))


@pytest.mark.parametrize("case", MOUNTS)
def test_a_mount_is_understood(case: str) -> None:
    output, expected = recording(f"mount/{case}"), MOUNTS[case]
    if expected is None:
        with pytest.raises(UnreadableError):
            parse_mount(output)
    else:
        assert parse_mount(output) == expected


@pytest.mark.parametrize("case", [f"zpool/{c}" for c in IMPORTS] + [f"mount/{c}" for c in MOUNTS])
def test_damaged_imports_and_mounts_never_turn_their_meaning(case: str) -> None:
    output = recording(case)
    parse = parse_import if case.startswith("zpool") else parse_mount

    def came_back(damaged: ToolOutput) -> bool | None:
        try:
            result = parse(damaged)
        except UnreadableError:
            return None
        return result.is_done

    whole = came_back(output)
    assert came_back(replace(output, exit_code=None)) is None
    assert came_back(replace(output, exit_code=137)) is None
    for cut in range(len(output.stderr)):
        partial = replace(output, stderr=output.stderr[:cut])
        assert came_back(partial) in (whole, None)
    if whole is False:
        assert came_back(replace(output, exit_code=0)) is None
        assert came_back(replace(output, stdout="", stderr="")) is None


def test_a_healthy_status_is_understood() -> None:
    status = parse_status(STATUS)
    assert status == PoolStatus(
        state="ONLINE", data_errors=0, device_errors=0, unhealthy_devices=(), scrubbed=True
    )
    assert status.summary == "ONLINE"


def test_errors_in_a_status_are_counted_wherever_they_stand() -> None:
    assert parse_status(status_with(error_count="3")).data_errors == 3
    assert parse_status(status_with(error_count="1.50K")).data_errors == 1536
    assert parse_status(status_with(disk_checksum_errors="2")).device_errors == 2
    assert parse_status(status_with(disk_write_errors="1K")).device_errors == 1024
    scan = json.loads(STATUS.stdout)["pools"]["tank"]["scan_stats"]
    assert parse_status(status_with(scan_stats=scan | {"errors": "4"})).data_errors == 4
    log = {"virtio-slog0": {"name": "virtio-slog0", "state": "UNAVAIL", "write_errors": "7"}}
    degraded = parse_status(status_with(state="DEGRADED", logs=log))
    assert degraded.unhealthy_devices == ("virtio-slog0 UNAVAIL",)
    assert degraded.summary == "DEGRADED, 7 device errors, not online: virtio-slog0 UNAVAIL"
    for kind, errors in (("dedup", 7), ("special", 7), ("logs", 7), ("l2cache", 0), ("spares", 0)):
        device = {"vdx": {"name": "vdx", "state": "ONLINE", "checksum_errors": "7"}}
        assert parse_status(status_with(**{kind: device})).device_errors == errors


def test_a_status_says_whether_a_scrub_has_finished() -> None:
    scan = json.loads(STATUS.stdout)["pools"]["tank"]["scan_stats"]
    assert not parse_status(status_with(scan_stats={})).scrubbed
    assert not parse_status(status_with(scan_stats=scan | {"state": "CANCELED"})).scrubbed
    assert not parse_status(status_with(scan_stats=scan | {"function": "RESILVER"})).scrubbed


def test_a_damaged_status_is_unreadable() -> None:
    for cut in range(0, len(STATUS.stdout.rstrip()), 7):
        with pytest.raises(UnreadableError):
            parse_status(replace(STATUS, stdout=STATUS.stdout[:cut]))
    for output in (
        replace(STATUS, exit_code=1),
        replace(STATUS, exit_code=None),
        replace(STATUS, stdout="no pools available\n"),
        replace(STATUS, stdout='{"pools":{}}'),
        status_with(error_count="many"),
        status_with(vdevs=[]),
    ):
        with pytest.raises(UnreadableError):
            parse_status(output)


@given(at=st.integers(0, len(STATUS.stdout) - 2), junk=st.text(min_size=1, max_size=8))
def test_a_garbled_status_never_invents_errors(at: int, junk: str) -> None:
    text = STATUS.stdout[:at] + "\x00" + junk + STATUS.stdout[at + 1 + len(junk) :]
    with pytest.raises(UnreadableError):
        parse_status(replace(STATUS, stdout=text))


def test_a_pool_that_lost_its_log_device_says_so() -> None:
    status = parse_status(recording("zpool/status-without-log"))
    assert status.state == "DEGRADED"
    assert status.unhealthy_devices == ("10445152025390439593 CANT_OPEN", "tank DEGRADED")
    assert status.data_errors == 0
