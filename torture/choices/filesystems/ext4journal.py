"""ext4 with data=journal (ext4(5)): all writes go through the journal, data too.

ext4 treats O_DIRECT like any other write there (Linux `fs/ext4/inode.c`, `ext4_should_use_dio`).
Each mount sets how data are written. The checker and its output are ext4's.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.filesystems import ext4
from torture.choices.filesystems.protocol import DEVICE, MOUNT_POINT, Filesystem
from torture.facts.axes.axis import Choice

CHOICE: Choice[Filesystem] = Choice(
    name="ext4journal",
    value=replace(
        ext4.CHOICE.value,
        mount=("mount", "-t", "ext4", "-o", "data=journal", DEVICE, MOUNT_POINT),
        writes_once=False,
        root_words="rootfstype=ext4 rootflags=data=journal",
    ),
    words="ext4 with data=journal",
    explained="ext4 with data=journal",
    place=5,
)
