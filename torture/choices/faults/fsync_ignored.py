"""A client whose fsync does nothing: a volatile overlay on its files (Linux filesystems/overlayfs.rst).

Such a mount omits every call that would sync what lies below it, and says that all went well. No setting
of the NAS is of any help: what was acknowledged has not left the client.
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
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
)
