"""A NAS that answers before its data are stable, or does not come back as it was."""

from torture.choices.experiments.protocol import Fault, Layer, Sight
from torture.choices.volumes import DIRECTORY, IMAGE, SIZE_MIB

_OPTIONS = "rw,async,no_subtree_check,no_root_squash,insecure,fsid=0,mountpoint"
_TARGET = "/sys/kernel/config/target"
_CACHING = f"{_TARGET}/core/fileio_0/vm"

_SERVE_FROM_CACHE = f"""set -eu
mkdir -p {_CACHING}
size=$(blockdev --getsize64 /dev/zvol/tank/vm)
echo -n fd_dev_name=/dev/zvol/tank/vm,fd_dev_size=$size,fd_buffered_io=1 > {_CACHING}/control
echo 1 > {_CACHING}/enable
lun=$(dirname $(find {_TARGET}/iscsi -type l -path '*/lun_0/vm'))
rm $lun/vm
ln -s {_CACHING} $lun/vm"""
_HALF_MIB = SIZE_MIB // 2


def _zpool_that(body: str) -> str:
    """Shell: put this script in the place of `zpool`; the real one is `/zpool.real`."""
    return (
        f"cp /usr/sbin/zpool /zpool.real && printf '#!/bin/sh\\n{body}\\n' > /zpool && "
        "chmod +x /zpool && mount --bind /zpool /usr/sbin/zpool"
    )


EXPERIMENTS = (
    # A server answers COMMIT and commits nothing: its export has silently become asynchronous.
    #
    # With `async`, Linux's server answers before anything is on stable storage (exports(5)).
    Fault(
        name="commit-ignored",
        layer=Layer.NAS,
        words="COMMIT is answered and nothing committed",
        cell="nfs3-standard-noslog-files-bothdie",
        seen_by=Sight.AUDIT,
        amounts_to={"nfs_export": "export_async"},
        in_nas=f"exportfs -o {_OPTIONS} '*:{DIRECTORY}' && exportfs -v | grep -q async",
    ),
    # LIO's backstore caches: `fileio` with buffered I/O on the zvol, in place of `iblock`, which
    # does not.
    #
    # With sync=always ZFS is not at fault: the written data are in the memory of the NAS, above
    # ZFS.
    Fault(
        name="lio-write-back",
        layer=Layer.NAS,
        words="LIO's backstore is write back",
        cell="iscsi-always-noslog-ext4-nasonly",
        seen_by=Sight.AUDIT,
        bound_to=frozenset({"transport"}),
        in_nas=_SERVE_FROM_CACHE,
    ),
    # After the reboot the volume has half its length.
    Fault(
        name="device-short",
        layer=Layer.NAS,
        words="the volume is half as long after import",
        cell="iscsi-always-noslog-raw-bothdie",
        seen_by=Sight.DATA,
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
        seen_by=Sight.POOL,
        before_import=_zpool_that("sleep 600"),
        import_patience_s=20,
    ),
    # The kernel of the NAS panics after its reboot, when it imports the pool.
    Fault(
        name="nas-panics",
        layer=Layer.NAS,
        words="the NAS panics at import",
        seen_by=Sight.POOL,
        before_import=_zpool_that("echo c > /proc/sysrq-trigger; sleep 600"),
    ),
    # The pool is imported, and its volume is gone.
    Fault(
        name="volume-gone",
        layer=Layer.NAS,
        words="the volume is gone after import",
        seen_by=Sight.POOL,
        before_import=_zpool_that(
            '/zpool.real "$@" && case $1 in import) zfs destroy tank/vm;; esac'
        ),
    ),
)
