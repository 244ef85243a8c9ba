"""Servers of the NAS that answer before their data are stable."""

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.choices.volumes.dataset import DIRECTORY

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

FAULTS = (
    # A server answers COMMIT and commits nothing: its export has silently become asynchronous.
    #
    # With `async`, Linux's server answers before anything is on stable storage (exports(5)).
    Fault(
        name="commit-ignored",
        layer=Layer.NAS,
        words="COMMIT is answered and nothing committed",
        cell="nfs3-standard-noslog-files-bothdie",
        seen_by=Sight.AUDIT,
        cuts=1,
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
        cuts=1,
        bound_to=frozenset({"transport"}),
        in_nas=_SERVE_FROM_CACHE,
    ),
)
