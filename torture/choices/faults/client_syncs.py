"""A client whose syncs do not reach its disk."""

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULTS = (
    # A client whose fsync does nothing: its files lie on a volatile overlay.
    #
    # A volatile mount omits every sync of the filesystem below it, and reports success (Linux
    # filesystems/overlayfs.rst). No setting of the NAS helps: acknowledged data have not left the
    # client.
    Fault(
        name="fsync-ignored",
        layer=Layer.CLIENT,
        words="the client's fsync does nothing",
        cell="iscsi-always-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        cuts=1,
        bound_to=frozenset({"filesystem"}),
        in_client=(
            "mkdir /tmp/empty /mnt/work && mount -t overlay -o "
            "lowerdir=/tmp/empty,upperdir=/mnt/load,workdir=/mnt/work,volatile overlay /mnt/load"
        ),
    ),
    # A filesystem sends its disk no flush (ext4(5), barrier=0).
    Fault(
        name="no-barriers",
        layer=Layer.CLIENT,
        words="ext4 without barriers",
        cell="iscsi-standard-noslog-ext4-bothdie",
        seen_by=Sight.AUDIT,
        cuts=1,
        bound_to=frozenset({"filesystem"}),
        in_client="mount -o remount,barrier=0 /mnt",
    ),
)
