"""`zpool status` of versions that print text only: whole, cut off at each place, and garbled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.good_evidence import tool
from torture.facts.evidence.folder import Step, ToolOutput
from torture.oracles.verdict.guarantee import UnreadableError
from torture.oracles.verdict.pool_tools.zpool import PoolStatus, parse_status

HEALTHY = tool(Step.POOL_STATUS, "zpool/status-text-scrubbed")
WITHOUT_LOG = tool(Step.POOL_STATUS, "zpool/status-text-without-log")
SHORT_OF_A_LEG = tool(Step.POOL_STATUS, "zpool/status-text-short-of-a-leg")
ERRORS = tool(Step.POOL_STATUS, "zpool/status-text-errors")
WITH_CACHE = tool(Step.POOL_STATUS, "zpool/status-text-with-cache")
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


def test_a_healthy_pool_is_understood() -> None:
    assert parse_status(HEALTHY) == PoolStatus(
        state="ONLINE", data_errors=0, device_errors=0, unhealthy_devices=(), scrubbed=True
    )


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


def test_a_pool_that_lost_its_log_device_says_so() -> None:
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


@given(at=st.integers(0, len(HEALTHY.stdout) - 2), junk=st.text(min_size=1, max_size=8))
def test_a_garbled_status_never_invents_errors(at: int, junk: str) -> None:
    text = HEALTHY.stdout[:at] + "\x00" + junk + HEALTHY.stdout[at + 1 + len(junk) :]
    with pytest.raises(UnreadableError):
        parse_status(replace(HEALTHY, stdout=text))


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
