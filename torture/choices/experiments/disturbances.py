"""Machines that stand still, come late, are busy, or change: nothing may be lost by it."""

from torture.choices.experiments.protocol import Fault, Layer

_BUSY = "for i in 1 2; do setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 & done"

EXPERIMENTS = (
    # The clocks of NAS and client are two days apart.
    Fault(
        name="clock-skewed",
        layer=Layer.NAS,
        words="the clocks are two days apart",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        in_nas="date --utc --set '+1 day'",
        in_client="date --utc --set '-1 day'",
    ),
    # Programs that only consume processor time run in NAS and client.
    Fault(
        name="cores-loaded",
        layer=Layer.NAS,
        words="NAS and client are busy with something else",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        in_nas=_BUSY,
        in_client=_BUSY,
    ),
    # The log device leaves the pool under the load, and joins it again.
    #
    # ZFS overwrites the labels of a device that leaves, and writes those of one that joins, outside of
    # any transaction group (OpenZFS `module/zfs/vdev_label.c`, `vdev_label_init`).
    Fault(
        name="log-device-moved",
        layer=Layer.NAS,
        words="the log device leaves and joins again under the load",
        cell="iscsi-always-plp-ext4-bothdie",
        seen_by=None,
        bound_to=frozenset({"slog"}),
        load_ms=8_000,
        in_nas=(
            "setsid sh -c 'sleep 0.5; zpool remove tank virtio-slog0 && "
            "zpool add -f tank log /dev/disk/by-id/virtio-slog0' </dev/null >/dev/null 2>&1 &"
        ),
    ),
    # A NAS is away for a minute: the client waits, and no timeout may become a loss.
    Fault(
        name="nas-back-late",
        layer=Layer.NAS,
        words="the NAS is back after 60 s",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        before_import="sleep 60",
    ),
    # The emulator of the NAS stands still for 12 s under the load: initiators wait longer than
    # that.
    Fault(
        name="nas-stood-still",
        layer=Layer.NAS,
        words="the NAS stood still for 12 s before the cut",
        cell="iscsi-always-noslog-btrfs-nasonly",
        seen_by=None,
        nas_stands_still_ms=12_000,
    ),
)
