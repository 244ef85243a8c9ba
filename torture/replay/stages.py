"""A recorded trial opened again: the same bytes on every disk, recovered and checked once more."""

from __future__ import annotations

import shutil
from pathlib import Path

from torture.evidence.folder import CHECK_VIEW, CUT, CUT_VIEW, LEDGER, PROOF
from torture.matrix.axes import Fate
from torture.trial.archive import unpack_recordings
from torture.trial.context import Bench
from torture.trial.inspect import look
from torture.trial.recovery import bring_nas_back


def replay_stages(bench: Bench) -> None:
    """Bring a NAS up on the recording's view and look.

    When both machines died the view is what the cut left. A client that lived wrote on: then it is
    what the check found. Raises `HarnessError` when no recording was kept.
    """
    evidence = Path(bench.spec.replay_of)
    recordings = bench.scratch / "replayed"
    unpack_recordings(evidence, recordings)
    for name in (LEDGER, CUT, PROOF):
        shutil.copy(evidence / name, bench.folder / name)
    lived = bench.spec.cell.fate is Fate.NAS_ONLY
    with bench.stage("bring NAS back"):
        nas = bring_nas_back(bench, recordings / (CHECK_VIEW if lived else CUT_VIEW))
    if nas is not None:
        look(bench, nas)
