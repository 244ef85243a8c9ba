"""One byte of a file is changed after recovery, and every checksum is right."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight

FAULT = Fault(
    name="byte-changed",
    layer=Layer.DATA,
    words="one byte of a recovered file is changed",
    cell="iscsi-always-noslog-ext4-bothdie",
    seen_by=Sight.DATA,
    cuts=1,
    before_read_back=(
        "file=$(ls -S /mnt/load/* | head -n 1) && "
        "old=$(od -An -tu1 -j 1000 -N 1 $file) && "
        'printf "\\\\$(printf %o $(((old + 1) % 256)))" | '
        "dd of=$file bs=1 seek=1000 conv=notrunc,fsync"
    ),
)
