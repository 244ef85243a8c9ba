"""A bug of the dummy slog, cleared by a version that is built from source."""

from __future__ import annotations

from torture.choices.experiments.protocol import FromSource, KnownBug, Side, Sight

EXPERIMENT = KnownBug(
    name="dummy-bug",
    words="a dummy bug",
    source="no report of it",
    affected=Side(cell="iscsi-always-dummyslog-ext4-bothdie", axes=("layout=raidz1",), zfs="9.9.9"),
    cleared=Side(
        cell="iscsi-always-plp-ext4-bothdie", zfs=FromSource(name="9.9.10", branch="nine")
    ),
    seen_by=Sight.AUDIT,
)
