"""One bit of a block of data is another one after the cut.

It is not seen in every cut: the intent log's replay may write the whole block anew.
"""

from __future__ import annotations

from torture.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="bit-flipped",
    layer=Layer.DISK,
    words="one bit flips on a disk",
    cell="iscsi-always-noslog-btrfs-bothdie",
    seen_by=Sight.POOL,
    cuts=1,
    before_import=(
        "byte=$(dd if={device} bs=1 skip={offset} count=1 | od -An -tu1) && "
        'printf "\\\\$(printf %o $((byte ^ 1)))" | '
        "dd of={device} bs=1 seek={offset} conv=notrunc,fsync && "
        "udevadm settle --timeout=20"
    ),
)
