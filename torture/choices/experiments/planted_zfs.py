"""ZFS itself with a line changed (`vmimages/zfs/planted`): bugs, and one harmless change."""

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.facts.recording.disks import DiskFault
from torture.facts.recording.intent_log import Role

EXPERIMENTS = (
    # ZFS whose log blocks do not wait for the data they point to (`zil_lwb_write_issue`, zil.c).
    #
    # The flush after the log block may then miss the data of `dmu_sync`, and its block pointer may
    # be missing in the record. With `logbias=throughput` all writes of a volume are logged by
    # pointer.
    Fault(
        name="zfs-dmu-sync-not-awaited",
        layer=Layer.ZFS,
        words="a log block does not wait for the data it points to",
        cell="iscsi-always-noslog-throughput-ext4-bothdie",
        seen_by=Sight.AUDIT,
        cuts=5,
        zfs="2.3.9+dmu_sync_not_awaited",
    ),
    # ZFS that takes the first free segment that fits (`metaslab_df_alloc`, metaslab.c). So it reuses
    # blocks as soon as it may.
    Fault(
        name="zfs-first-fit",
        layer=Layer.ZFS,
        words="free blocks are used again as soon as they may be",
        cell="iscsi-standard-noslog-btrfs-bothdie",
        seen_by=None,
        load_ms=30_000,
        zfs="2.3.9+first_fit",
    ),
    # ZFS reuses freed blocks at once (`metaslab_sync_done`, metaslab.c).
    #
    # The two transaction groups before the last then become unreadable. Nothing is left for a
    # rewind, nor for the case that the last uberblock did not reach the disk.
    #
    # ZFS goes on behind its last allocation (`metaslab_df_alloc`), and a pool with room reuses few
    # blocks within two groups. There 3 of 35 cuts saw the bug [1.8-23 %], and none of 9 with more groups.
    # So this version takes the first free segment. That alone is sound (`zfs-first-fit`). The load
    # lasts for several groups: then 9 of 9 cuts saw the bug [66-100 %].
    Fault(
        name="zfs-frees-not-deferred",
        layer=Layer.ZFS,
        words="freed blocks are used again at once",
        cell="iscsi-standard-noslog-btrfs-bothdie",
        seen_by=Sight.AUDIT,
        cuts=3,
        load_ms=30_000,
        zfs="2.3.9+frees_not_deferred",
    ),
    # ZFS without the flush between a group's writes and its uberblock (`vdev_config_sync`).
    #
    # An uberblock may then reach a disk before the tree below it. A commit of the intent log in
    # between flushes the same disk, so some groups are covered all the same.
    Fault(
        name="zfs-group-not-flushed",
        layer=Layer.ZFS,
        words="a transaction group is not flushed before its uberblock",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        zfs="2.3.9+group_not_flushed",
    ),
    # ZFS whose commits do not wait for the log blocks before theirs (`zil_lwb_set_zio_dependency`,
    # zil.c).
    #
    # A sync then returns while an earlier block of the chain is still in flight: replay would end
    # before it. That takes two blocks of one log in flight at once, and the later one must complete
    # first. Disks that do their writes in order hide it: 0 of 20 cuts saw it [0-17 %]. So one write
    # in four of the intent log is slow here: 18 of 24 cuts saw it [53-90 %]. Sound ZFS waits
    # (`log-write-slow`).
    Fault(
        name="zfs-log-chain-not-awaited",
        layer=Layer.ZFS,
        words="a commit does not wait for the log blocks before its own",
        seen_by=Sight.AUDIT,
        cuts=5,
        on_disks=DiskFault(slow_write_every=4, slow_write_ms=60, role=Role.ZIL),
        zfs="2.3.9+log_chain_not_awaited",
    ),
    # ZFS that does not claim the blocks of its intent log at import (`zil_claim_log_block`, zil.c).
    #
    # ZFS may overwrite them before it replays them. Once replayed, they are freed although they
    # were never allocated, which is a panic. A cut with nothing in the intent log shows nothing.
    Fault(
        name="zfs-log-not-claimed",
        layer=Layer.ZFS,
        words="the blocks of the intent log are not claimed",
        seen_by=Sight.POOL,
        cuts=2,
        zfs="2.3.9+log_not_claimed",
    ),
    # ZFS without the flush after its uberblocks (`vdev_uberblock_sync_list`, vdev_label.c).
    #
    # The next group's blocks may then be on disk before the last group's uberblock. They may
    # overwrite freed blocks that the newest uberblock on disk still refers to. No check of a single
    # cut is likely to meet that; the audit checks each group for it.
    Fault(
        name="zfs-uberblock-not-flushed",
        layer=Layer.ZFS,
        words="uberblocks are not flushed",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        zfs="2.3.9+uberblock_not_flushed",
    ),
)
