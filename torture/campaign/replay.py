"""One trial again."""

from __future__ import annotations

from pathlib import Path

from torture.campaign.executor import Campaign, Keep
from torture.campaign.run import Run
from torture.lab.lab import Boot, LabSettings
from torture.lab.scratch import Scratch
from torture.lab.warm import warm_directory
from torture.record.specs import TrialSpec
from torture.record.trials import TrialRecord

_DEADLINE_S = 1200.0


def replay(spec: TrialSpec, *, results: Path, boot: Boot) -> tuple[TrialRecord, Path]:
    """Run one trial in a run of its own; its record and its evidence folder.

    Raises `HarnessError` when no worker can work.
    """
    lab = LabSettings(boot=boot, warm_states=warm_directory())
    scratch = Scratch()
    scratch.remove_abandoned()
    options = {"replay_of": spec.trial}
    run = Run.begin(results=results, seed=spec.seed, lab=lab, options=options)
    with scratch.directory(run.folder.name[-10:]) as directory:
        campaign = Campaign(
            run=run, specs=[spec], jobs=1, keep=Keep.ALL, lab=lab, scratch=directory
        )
        campaign.start()
        try:
            campaign.wait_for(spec.cell, timeout_s=_DEADLINE_S)
        finally:
            campaign.stop()
    return campaign.records[0], run.evidence / spec.trial
