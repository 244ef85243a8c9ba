"""LIO's backstore caches: `fileio` with buffered I/O on the zvol, in place of `iblock`, which does not.

With sync=always ZFS is not at fault: the written data are in the memory of the NAS, above ZFS.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

_TARGET = "/sys/kernel/config/target"
_CACHING = f"{_TARGET}/core/fileio_0/vm"

FAULT = Fault(
    name="lio-write-back",
    layer=Layer.NAS,
    words="LIO's backstore is write back",
    cell="iscsi-always-noslog-ext4-nasonly",
    seen_by=Sight.AUDIT,
    cuts=1,
    bound_to=frozenset({"transport"}),
    in_nas=f"""set -eu
mkdir -p {_CACHING}
size=$(blockdev --getsize64 /dev/zvol/tank/vm)
echo -n fd_dev_name=/dev/zvol/tank/vm,fd_dev_size=$size,fd_buffered_io=1 > {_CACHING}/control
echo 1 > {_CACHING}/enable
lun=$(dirname $(find {_TARGET}/iscsi -type l -path '*/lun_0/vm'))
rm $lun/vm
ln -s {_CACHING} $lun/vm""",
)
