"""After the reboot the volume has half its length."""

from __future__ import annotations

from torture.choices.faults._zpool import zpool_that
from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.choices.volumes import SIZE_MIB
from torture.choices.volumes.dataset import IMAGE

_HALF_MIB = SIZE_MIB // 2

FAULT = Fault(
    name="device-short",
    layer=Layer.NAS,
    words="the volume is half as long after import",
    cell="iscsi-always-noslog-raw-bothdie",
    seen_by=Sight.DATA,
    cuts=1,
    bound_to=frozenset({"filesystem"}),
    before_import=zpool_that(
        '/zpool.real "$@" && case $1 in import) '
        f"if [ -e {IMAGE} ]; then truncate -s {_HALF_MIB}M {IMAGE}; "
        f"else zfs set volsize={_HALF_MIB}M tank/vm; fi;; esac"
    ),
)
