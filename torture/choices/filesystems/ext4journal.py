"""ext4 with data=journal (ext4(5)): all writes go through the journal, data too.

ext4 treats O_DIRECT like any other write there (Linux `fs/ext4/inode.c`, `ext4_should_use_dio`).
The checker and its output are ext4's.
"""

from __future__ import annotations

from torture.choices.filesystems.ext4 import Ext4
from torture.choices.filesystems.protocol import Filesystem
from torture.facts.axes.axis import Choice


class Ext4Journal(Ext4):
    """Made like any ext4: each mount sets how data are written."""

    writes_once = False
    root_words = "rootfstype=ext4 rootflags=data=journal"

    def mount(self, device: str, mount_point: str) -> tuple[str, ...]:
        """Mount it, replaying its journal."""
        return ("mount", "-t", "ext4", "-o", "data=journal", device, mount_point)


CHOICE: Choice[Filesystem] = Choice(
    name="ext4journal",
    value=Ext4Journal(),
    words="ext4 with data=journal",
    explained="ext4 with data=journal",
    place=5,
)
