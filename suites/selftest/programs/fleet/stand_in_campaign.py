"""A campaign over a Dask cluster whose trials need no machines. Begun again in its folder, it goes on."""

from __future__ import annotations

from pathlib import Path

from suites.selftest.programs.fleet.dask_stand_in import stand_in
from torture.features.fleet.workers import DaskSite
from torture.machines.lab.lab import LabSettings
from torture.records.record.trials_file import read_records
from torture.records.schedules.protocol import Schedule
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.keeping import EvidencePolicy
from torture.trials.campaign.run import Run, settle
from torture.trials.workers.protocol import WorkerOrders

LAB = LabSettings(warm_states=Path("/nowhere"))


class StandInCampaign:
    """The campaign, under way; whoever makes it stops it."""

    def __init__(
        self,
        folder: Path,
        *,
        address: str,
        schedule: Schedule,
        keep: EvidencePolicy = EvidencePolicy.ALL,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.run = Run(folder=folder)
        orders = WorkerOrders(scratch=folder, run=self.run, lab=LAB)
        self.site = DaskSite(orders, place=address, make=stand_in)
        earlier = read_records(self.run.trials_file).records
        settle(schedule, earlier)
        self.campaign = Campaign(
            run=self.run,
            schedule=schedule,
            site=self.site,
            jobs=1,
            keep=keep,
            earlier=earlier,
        )
        self.campaign.start()
