"""A server answers COMMIT and commits nothing: its export has silently become asynchronous.

With `async`, Linux's server answers before anything is on stable storage (exports(5)).
"""

from __future__ import annotations

from torture.choices.faults.protocol import Fault, Layer, Sight
from torture.choices.volumes.dataset import DIRECTORY

_OPTIONS = "rw,async,no_subtree_check,no_root_squash,insecure,fsid=0,mountpoint"

FAULT = Fault(
    name="commit-ignored",
    layer=Layer.NAS,
    words="COMMIT is answered and nothing committed",
    cell="nfs3-standard-noslog-files-bothdie",
    seen_by=Sight.AUDIT,
    cuts=1,
    amounts_to={"nfs_export": "export_async"},
    in_nas=f"exportfs -o {_OPTIONS} '*:{DIRECTORY}' && exportfs -v | grep -q async",
)
