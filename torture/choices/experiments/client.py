"""A client whose syncs do not reach its disk, or whose load stops."""

from torture.choices.experiments.protocol import Fault, Layer, Sight

_STOP = "sleep 2; pkill -STOP -f '[l]oad write'"

EXPERIMENTS = (
    # A client whose fsync does nothing: its files lie on a volatile overlay.
    #
    # A volatile mount omits every sync of the filesystem below it, and reports success (Linux
    # filesystems/overlayfs.rst). No setting of the NAS helps: acknowledged data have not left the
    # client.
    Fault(
        name="fsync-ignored",
        layer=Layer.CLIENT,
        words="the client's fsync does nothing",
        seen_by=Sight.AUDIT,
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
        bound_to=frozenset({"filesystem"}),
        in_client="mount -o remount,barrier=0 /mnt",
    ),
    # A load stops two seconds after its first acknowledgement: then no write is left for a cut to
    # take.
    #
    # Its writers are stopped amid their operations, so each has one operation under way for ever.
    # An instrument that counts these as work would call the cut intact.
    #
    # The transaction group after the last write comes 5 s later, and is at risk then: hence a long
    # load. Its cuts have no aim. A cut that aims at a trim or a label causes the write itself. So
    # it has a write to take (6 of 10 cuts of any aim were empty).
    Fault(
        name="load-stalled",
        layer=Layer.CLIENT,
        words="the load stalls",
        seen_by=Sight.EMPTY,
        aim="anywhere",
        load_ms=20_000,
        under_load=_STOP,
    ),
)
