"""Settings of ZFS, and of its volume's queue, that silently weaken it."""

from torture.choices.experiments.protocol import Fault, Layer, Sight

EXPERIMENTS = (
    # A pool commits no transaction group of its own accord.
    #
    # The thread that commits waits out its old timeout first, unless another commit is forced. The
    # audit reports a commit as late after 8 s (`torture.oracles.audit.commits.LATE_MS`); a usual
    # load is shorter.
    Fault(
        name="never-commits",
        layer=Layer.ZFS,
        words="no transaction group is committed",
        cell="iscsi-disabled-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        cuts=2,
        load_ms=20_000,
        in_nas="echo 3600 > /sys/module/zfs/parameters/zfs_txg_timeout && zpool sync tank",
    ),
    # sync=standard has silently become disabled.
    Fault(
        name="sync-ignored",
        layer=Layer.ZFS,
        words="sync=standard is silently disabled",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        amounts_to={"sync": "disabled"},
        in_nas="zfs set sync=disabled tank/vm",
    ),
    # sync=always has silently become standard.
    #
    # ZFS obeys the client's own flushes, so every acknowledged operation is covered. The writes
    # that the client's disk completed before those flushes are not covered. A client that lives
    # loses them. Behind `nfs_image_dsync` each write is flushed anyhow: only a COMMIT that the cut
    # meets is lost (1 of 5 cuts).
    Fault(
        name="sync-weakened",
        layer=Layer.ZFS,
        words="sync=always is silently standard",
        cell="iscsi-always-noslog-ext4-nasonly",
        seen_by=Sight.AUDIT,
        amounts_to={"sync": "standard"},
        in_nas="zfs set sync=standard tank/vm",
    ),
    # ZFS never flushes its disks: a tunable that forums recommend (zfs(4)).
    Fault(
        name="zfs-nocacheflush",
        layer=Layer.ZFS,
        words="zfs_nocacheflush=1",
        cell="iscsi-always-noslog-btrfs-bothdie",
        seen_by=Sight.AUDIT,
        amounts_to={"zfs_nocacheflush": "nocacheflush"},
        in_nas="echo 1 > /sys/module/zfs/parameters/zfs_nocacheflush",
    ),
    # ZFS does not flush its writes to its intent log (zfs(4)).
    Fault(
        name="zil-nocacheflush",
        layer=Layer.ZFS,
        words="zil_nocacheflush=1",
        seen_by=Sight.AUDIT,
        amounts_to={"zil_nocacheflush": "zilnocacheflush"},
        in_nas="echo 1 > /sys/module/zfs/parameters/zil_nocacheflush",
    ),
    # A zvol reports to the block layer that it has no cache, so no flush reaches ZFS.
    Fault(
        name="zvol-write-through",
        layer=Layer.NAS,
        words="the zvol's queue is write through",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        bound_to=frozenset({"transport"}),
        in_nas=(
            "zvol=$(basename $(readlink -f /dev/zvol/tank/vm)) && "
            "echo write through > /sys/block/$zvol/queue/write_cache"
        ),
    ),
    # sync=always is lost at the reboot. Without a second cut, only a look at the settings tells it.
    Fault(
        name="sync-lost-at-return",
        layer=Layer.ZFS,
        words="the NAS comes back with sync=disabled",
        cell="iscsi-always-noslog-ext4-nasonly",
        seen_by=Sight.SETTINGS,
        amounts_to={"sync": "disabled"},
        after_return="zfs set sync=disabled tank/vm",
    ),
    # The export comes back with another option.
    Fault(
        name="export-lost-at-return",
        layer=Layer.NAS,
        words="the NAS comes back with an async export",
        cell="nfs_image-standard-noslog-ext4-bothdie",
        seen_by=Sight.SETTINGS,
        bound_to=frozenset({"transport"}),
        amounts_to={"nfs_export": "export_async"},
        after_return=(
            "exportfs -o rw,async,no_subtree_check,no_root_squash,insecure,fsid=0,mountpoint "
            "'*:/tank/vm'"
        ),
    ),
    # A tunable is lost at the reboot: the audit of the NAS's later life sees what it does.
    Fault(
        name="nocacheflush-at-return",
        layer=Layer.ZFS,
        words="the NAS comes back with zfs_nocacheflush=1",
        seen_by=Sight.AUDIT,
        amounts_to={"zfs_nocacheflush": "nocacheflush"},
        after_return="echo 1 > /sys/module/zfs/parameters/zfs_nocacheflush",
    ),
    # sync=disabled has silently become standard: the cell looks safer than it is.
    Fault(
        name="sync-strengthened",
        layer=Layer.ZFS,
        words="sync=disabled is silently standard",
        cell="iscsi-disabled-noslog-ext4-bothdie",
        seen_by=Sight.SETTINGS,
        amounts_to={"sync": "standard"},
        in_nas="zfs set sync=standard tank/vm",
    ),
    # The log's data lie elsewhere than the cell says.
    Fault(
        name="logbias-flipped",
        layer=Layer.ZFS,
        words="logbias is silently throughput",
        seen_by=Sight.SETTINGS,
        in_nas="zfs set logbias=throughput tank/vm",
    ),
)
