"""The parsers of zpool and mount, on recorded outputs: whole, cut off at each place, and garbled.

And `zpool status` of versions that print text only.
"""

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
HEALTHY = recording("zpool/status-text-scrubbed")
WITHOUT_LOG = recording("zpool/status-text-without-log")
SHORT_OF_A_LEG = recording("zpool/status-text-short-of-a-leg")
ERRORS = recording("zpool/status-text-errors")
WITH_CACHE = recording("zpool/status-text-with-cache")
RECORDED = (HEALTHY, WITHOUT_LOG, SHORT_OF_A_LEG, ERRORS, WITH_CACHE)

_SCAN = next(line for line in HEALTHY.stdout.splitlines() if line.startswith("  scan: "))
_DISK = next(line for line in HEALTHY.stdout.splitlines() if "virtio-data0 " in line)

_SOME = "errors: 3 data errors, use '-v' for a list"


def said(*changes: tuple[str, str], of: ToolOutput = HEALTHY) -> ToolOutput:
    """The recorded one with other words in it."""
    text = of.stdout
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return replace(of, stdout=text)


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


@pytest.mark.parametrize("output", [STATUS, HEALTHY], ids=["JSON", "text"])
def test_a_healthy_status_is_understood(output: ToolOutput) -> None:
    status = parse_status(output)
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
        status_with(error_count="1e999"),
        status_with(vdevs=[]),
    ):
        with pytest.raises(UnreadableError):
            parse_status(output)


@pytest.mark.parametrize("output", [STATUS, HEALTHY], ids=["JSON", "text"])
@given(place=st.floats(0, 1, exclude_max=True), junk=st.text(min_size=1, max_size=8))
def test_a_garbled_status_never_invents_errors(output: ToolOutput, place: float, junk: str) -> None:
    at = int(place * (len(output.stdout) - 1))
    text = output.stdout[:at] + "\x00" + junk + output.stdout[at + 1 + len(junk) :]
    with pytest.raises(UnreadableError):
        parse_status(replace(output, stdout=text))


def test_a_pool_that_lost_its_log_device_says_so() -> None:
    status = parse_status(recording("zpool/status-without-log"))
    assert status.state == "DEGRADED"
    assert status.unhealthy_devices == ("10445152025390439593 CANT_OPEN", "tank DEGRADED")
    assert status.data_errors == 0


# The text of versions without `-j`.


def test_a_cache_and_spares_hold_no_part_of_the_pool() -> None:
    healthy = parse_status(HEALTHY)
    assert parse_status(WITH_CACHE) == healthy
    failing = said(
        ("  vde        ONLINE       0     0     0", "  vde        FAULTED      3     0     9"),
        of=WITH_CACHE,
    )
    assert parse_status(failing) == healthy
    spares = (
        "\tspares\n\t  vdf        AVAIL   \n\t  vdg        INUSE     currently in use\n\nerrors:"
    )
    assert parse_status(said(("\nerrors:", spares), of=WITH_CACHE)) == healthy


@pytest.mark.parametrize("heading", ["dedup", "special", "logs"])
def test_each_class_of_devices_counts(heading: str) -> None:
    row = f"\t{heading}\t\n\t  vdx        ONLINE       0     0     7"
    status = parse_status(said(("\nerrors:", f"{row}\n\nerrors:")))
    assert (status.device_errors, status.summary) == (7, "ONLINE, 7 device errors")


_DATE = "Sun Nov 22 10:10:10 2026"


@pytest.mark.parametrize(
    "section",
    [
        f"remove: Removal of vdev 1 copied 1.50M in 0h0m, completed on {_DATE}\n"
        "\t936 memory used for removed device mappings",
        f"remove: Evacuation of vdc in progress since {_DATE}\n\t1M copied out of 2M at 1M/s, 50.0% done",
        f"remove: Removal of vdc canceled on {_DATE}",
        f"expand: expanded raidz1-0-0 copied 1M in 00:00:03, on {_DATE}",
        f"expand: expansion of raidz1-0-0 in progress since {_DATE}\n\t1M / 2M copied at 1M/s",
        f"checkpoint: created {_DATE}, consumes 81.5K",
        "checkpoint: discarding, 81.5K remaining.",
        f"  scan: resilvered (mirror-0) 32M in 00:00:03 with 0 errors on {_DATE}",
        f"  scan: resilver (mirror-0) in progress since {_DATE}\n\t1M resilvered, 50.0% done",
        f"  scan: resilver (mirror-0) canceled on {_DATE}",
        f" scrub: scrubbed 3 error blocks in 0 days 00:00:01 on {_DATE}",
        "    scan warning: skipped blocks that are only referenced by the checkpoint.",
    ],
)
def test_an_operation_beside_the_scrub_changes_nothing(section: str) -> None:
    more = said((_SCAN, f"{_SCAN}\n{section}"))
    assert parse_status(more) == parse_status(HEALTHY)
    for word in ("moval", "vacuation", "xpan", "reated", "iscarding", "esilver", "warning"):
        if word in section:
            with pytest.raises(UnreadableError):
                parse_status(replace(more, stdout=more.stdout.replace(word, "other")))


def test_a_text_says_so_of_a_pool_that_lost_its_log_device() -> None:
    status = parse_status(WITHOUT_LOG)
    assert status.state == "DEGRADED"
    assert (status.data_errors, status.device_errors) == (0, 0)
    log, tank = sorted(status.unhealthy_devices)
    assert log.endswith(" UNAVAIL")
    assert tank == "tank DEGRADED"


def test_a_mirrored_log_that_is_short_of_a_leg_is_the_only_thing_degraded() -> None:
    status = parse_status(SHORT_OF_A_LEG)
    states = sorted(device.split(" ")[1] for device in status.unhealthy_devices)
    assert states == ["DEGRADED", "DEGRADED", "UNAVAIL"]
    assert status.scrubbed


def test_errors_are_counted_wherever_they_stand() -> None:
    status = parse_status(ERRORS)
    assert status.data_errors > 0
    assert status.device_errors > 0
    assert parse_status(said(("errors: No known data errors", _SOME))).data_errors == 3
    assert parse_status(said((" with 0 errors on ", " with 4 errors on "))).data_errors == 4
    counts = _DISK[: _DISK.rindex("ONLINE")] + "ONLINE    1024     2     3"
    assert parse_status(said((_DISK, counts))).device_errors == 1029


def test_a_group_repeats_the_errors_of_its_devices() -> None:
    lines = [
        "\t  mirror-0      DEGRADED     0     0     7",
        "\t    disk0       ONLINE       0     0     7  (repairing)",
        "\t    disk1       FAULTED      1     2     0  too many errors",
        "\tspecial\t",
        "\t  disk2         ONLINE       0     0     5",
    ]
    status = parse_status(said((_DISK, "\n".join(lines))))
    assert status.device_errors == 15
    assert status.unhealthy_devices == ("mirror-0 DEGRADED", "disk1 FAULTED")


@pytest.mark.parametrize(
    "scan",
    [
        "  scan: scrub canceled on Sun Nov 22 10:10:10 2026",
        "  scan: none requested",
        "  scan: resilvered 1.50K in 00:00:01 with 0 errors on Sun Nov  1 10:10:10 2026",
        "  scan: scrub in progress since Sun Nov 22 10:10:10 2026\n"
        "\t44.3M scanned at 44.3M/s, 12K issued at 12K/s, 44.3M total\n"
        "\t0B repaired, 0.03% done, no estimated completion time",
    ],
)
def test_only_a_scrub_that_came_to_its_end_counts(scan: str) -> None:
    assert parse_status(HEALTHY).scrubbed
    assert not parse_status(said((_SCAN, scan))).scrubbed
    assert not parse_status(said((_SCAN + "\n", ""))).scrubbed
    long = "  scan: scrub repaired 0B in 2 days 03:04:05 with 0 errors on Sun Nov 22 10:10:10 2026"
    assert parse_status(said((_SCAN, long))).scrubbed


@pytest.mark.parametrize("output", RECORDED)
def test_a_status_that_is_not_whole_is_unreadable(output: ToolOutput) -> None:
    whole = parse_status(output)
    text = output.stdout.rstrip("\n")
    assert parse_status(replace(output, stdout=text)) == whole
    for end in range(len(text)):
        with pytest.raises(UnreadableError):
            parse_status(replace(output, stdout=text[:end]))
    for begin in range(1, text.index("state:")):
        with pytest.raises(UnreadableError):
            parse_status(replace(output, stdout=text[begin:]))


@pytest.mark.parametrize(
    "output",
    [
        replace(HEALTHY, exit_code=1),
        replace(HEALTHY, exit_code=None),
        replace(HEALTHY, argv=("zpool", "status", "tank")),
        replace(HEALTHY, stdout="no pools available\n"),
        replace(HEALTHY, stdout=""),
        replace(HEALTHY, stdout=HEALTHY.stdout + "\n" + HEALTHY.stdout),
        said((" state: ONLINE", " state: SOMEHOW")),
        said((_DISK, _DISK.replace("ONLINE", "ONLIEN"))),
        said((_DISK, _DISK.replace("     0", "     -", 1))),
        said((_DISK, _DISK.replace("     0", "  1.5K", 1))),
        said((_DISK + "\n", "")),
        said(("  pool: tank", "  pool: other")),
        said(("errors: No known", "errors: Some known")),
        said((_SCAN, "  scan: scrub in 00:00:01 with 0 errors")),
        said((_SCAN, "  scan: defragmented on Sun Nov 22 10:10:10 2026")),
        said((_SCAN, "remove: Removal of vdev 1 copied 1M in 0h0m, completed")),
        said((_SCAN, _SCAN + "\n" + _SCAN)),
        said(("\nerrors: No known data errors\n", ""), ("config:\n", f"{_SOME}\nconfig:\n")),
        said(("errors: No known data errors\n", f"{_SOME}\n\tand more\n")),
    ],
)
def test_unknown_output_is_unreadable(output: ToolOutput) -> None:
    with pytest.raises(UnreadableError):
        parse_status(output)


@given(
    output=st.sampled_from((WITHOUT_LOG, ERRORS)),
    line=st.integers(0, 40),
    junk=st.text(alphabet=" \tabcXYZ019:-", min_size=1, max_size=12),
)
def test_a_line_in_place_of_another_never_makes_a_pool_healthy(
    output: ToolOutput, line: int, junk: str
) -> None:
    lines = output.stdout.splitlines()
    lines[line % len(lines)] = junk
    try:
        status = parse_status(replace(output, stdout="\n".join(lines) + "\n"))
    except UnreadableError:
        return
    assert (status.state, status.data_errors, status.unhealthy_devices) != ("ONLINE", 0, ())
