"""Every cell there can be, also those of no matrix."""

from __future__ import annotations

from itertools import product

from torture.matrix.axes import Disks, Fate, Filesystem, Layout, Slog, SlogClass, Sync, Transport
from torture.matrix.cells import Cell

EVERY_CELL = tuple(
    Cell(
        transport=transport,
        sync=sync,
        slog=slog,
        slog_class=slog_class,
        layout=layout,
        disks=disks,
        filesystem=filesystem,
        fate=fate,
    )
    for transport, sync, slog, slog_class, layout, disks, filesystem, fate in product(
        Transport, Sync, Slog, SlogClass, Layout, Disks, Filesystem, Fate
    )
    if slog is not Slog.NONE or slog_class is SlogClass.NVME
)
