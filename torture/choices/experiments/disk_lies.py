"""Disks that had not done their last flushes at the cut, and had acknowledged them."""

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.facts.recording.crash_state import DiskState, Policy

EXPERIMENTS = (
    # No flush covers writes younger than 2 s, as of a disk whose cache forgets its youngest content.
    #
    # With flushes every 50 ms that is a lie about the last 2 s. Operations acknowledged in that time
    # are lost unless a group has them, and the group is as young.
    Fault(
        name="flush-of-old-only",
        layer=Layer.DISK,
        words="a disk's flushes cover nothing younger than 2 s",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.DATA,
        bound_to=frozenset({"layout"}),
        aim="acknowledged",
        survivors={"data0": DiskState(policy=Policy.LYING, lying_ms=2_000)},
    ),
    # A leg of a mirror had not done its last 10 s of flushes, and had acknowledged them.
    #
    # ZFS takes the newer leg's uberblock, reads that leg's blocks, and heals the other leg: nothing
    # is lost. But when a pool has to be healed after a cut, one of its disks broke its promise. ZFS
    # commits a group every 5 s. With a lie as short as that, 4 of 10 cuts found only stale blocks
    # of the intent log. ZFS takes these from the other leg.
    Fault(
        name="leg-stale",
        layer=Layer.DISK,
        words="a leg of a mirror reads as it was 10 s ago",
        cell="iscsi-always-noslog-mirrored-ext4-bothdie",
        seen_by=Sight.POOL,
        bound_to=frozenset({"layout"}),
        survivors={
            "data0": DiskState(policy=Policy.ALL),
            "data1": DiskState(policy=Policy.LYING, lying_ms=10_000),
        },
    ),
    # A disk had not done its last 50 ms of flushes, and had acknowledged them.
    #
    # The last acknowledgement is a median of 92 ms old at cuts with another aim: 2 of 14 of these
    # cuts see this short lie. Its cuts aim at an acknowledgement, as a share of all cuts does. With
    # sync=always, most writes of an operation were flushed longer before, because guests are
    # emulated: 2 of 10 cuts lost something. With sync=standard 13 of 20 did. In the others, another
    # writer's commit had made the data of the operation durable before.
    Fault(
        name="lies-for-50-ms",
        layer=Layer.DISK,
        words="a disk lies about its last 50 ms",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.DATA,
        cuts=3,
        bound_to=frozenset({"layout"}),
        aim="acknowledged",
        survivors={"data0": DiskState(policy=Policy.LYING, lying_ms=50)},
    ),
    # A log device dies 5 ms before the cut: it acknowledges flushes to the end, and does none.
    #
    # The acknowledgement of a flushed operation takes longer than that through emulated guests. Only
    # cuts with such an operation count, and few have one: 1 of 10 cuts showed it.
    Fault(
        name="log-dies-early",
        layer=Layer.DISK,
        words="a log device dies 5 ms before the cut",
        cell="iscsi-always-plp-ext4-bothdie",
        seen_by=Sight.DATA,
        cuts=28,
        bound_to=frozenset({"slog"}),
        aim="acknowledged",
        survivors={"slog0": DiskState(policy=Policy.LYING, lying_ms=5)},
    ),
    # The legs of a mirrored SLOG differ: one is complete, the other lacks its last 700 ms.
    #
    # Acknowledged blocks of the intent log are on one leg only, as when the other leg lied. ZFS
    # reads all copies of a block of the log before it takes the log to be at its end
    # (`module/zfs/zil.c`, `zil_read_log_block`).
    Fault(
        name="log-on-one-leg",
        layer=Layer.DISK,
        words="the end of the log is on one leg of its mirror",
        cell="iscsi-always-mirror-btrfs-bothdie",
        seen_by=None,
        bound_to=frozenset({"slog"}),
        survivors={
            "slog0": DiskState(policy=Policy.ALL),
            "slog1": DiskState(policy=Policy.LYING, lying_ms=700),
        },
    ),
)
