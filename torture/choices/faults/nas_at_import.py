"""A NAS that does not come back from its reboot, or without its volume as it was."""

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.choices.volumes import SIZE_MIB
from torture.choices.volumes.dataset import IMAGE

_HALF_MIB = SIZE_MIB // 2


def _zpool_that(body: str) -> str:
    """Shell: put this script in the place of `zpool`; the real one is `/zpool.real`."""
    return (
        f"cp /usr/sbin/zpool /zpool.real && printf '#!/bin/sh\\n{body}\\n' > /zpool && "
        "chmod +x /zpool && mount --bind /zpool /usr/sbin/zpool"
    )


FAULTS = (
    # After the reboot the volume has half its length.
    Fault(
        name="device-short",
        layer=Layer.NAS,
        words="the volume is half as long after import",
        cell="iscsi-always-noslog-raw-bothdie",
        seen_by=Sight.DATA,
        cuts=1,
        bound_to=frozenset({"filesystem"}),
        before_import=_zpool_that(
            '/zpool.real "$@" && case $1 in import) '
            f"if [ -e {IMAGE} ]; then truncate -s {_HALF_MIB}M {IMAGE}; "
            f"else zfs set volsize={_HALF_MIB}M tank/vm; fi;; esac"
        ),
    ),
    # The import of the pool does not end in the NAS after its reboot.
    #
    # The trial gives up after 20 s here, so that the fault costs no more time than others.
    Fault(
        name="nas-hangs",
        layer=Layer.NAS,
        words="the NAS hangs at import",
        cell="iscsi-always-noslog-ext4-bothdie",
        seen_by=Sight.POOL,
        cuts=1,
        before_import=_zpool_that("sleep 600"),
        import_patience_s=20,
    ),
    # The kernel of the NAS panics after its reboot, when it imports the pool.
    Fault(
        name="nas-panics",
        layer=Layer.NAS,
        words="the NAS panics at import",
        cell="iscsi-always-noslog-ext4-bothdie",
        seen_by=Sight.POOL,
        cuts=1,
        before_import=_zpool_that("echo c > /proc/sysrq-trigger; sleep 600"),
    ),
    # The pool is imported, and its volume is gone.
    Fault(
        name="volume-gone",
        layer=Layer.NAS,
        words="the volume is gone after import",
        cell="iscsi-always-noslog-ext4-bothdie",
        seen_by=Sight.POOL,
        cuts=1,
        before_import=_zpool_that(
            '/zpool.real "$@" && case $1 in import) zfs destroy tank/vm;; esac'
        ),
    ),
)
