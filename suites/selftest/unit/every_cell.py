"""Every cell there can be, also those of no matrix."""

from __future__ import annotations

from itertools import product

from torture.axes.disks import Disks
from torture.axes.fate import Fate
from torture.axes.layout import Layout
from torture.axes.slog_class import SlogClass
from torture.axes.sync import Sync
from torture.matrix.axes import Filesystem, Slog, Transport
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
