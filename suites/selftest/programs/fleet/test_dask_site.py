"""Campaigns over real Dask workers on loopback, with trials that need no machines: none is lost."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suites.selftest.programs.fleet.dask_cluster import Cluster
from suites.selftest.programs.fleet.dask_stand_in import DIRECTIONS, EVIDENCE_BYTES
from suites.selftest.programs.fleet.stand_in_campaign import StandInCampaign
from suites.selftest.programs.launcher import LAUNCHER
from suites.selftest.programs.ssh_server import SshServer, sshd_path
from suites.selftest.unit.fake_workers import ASKED, specs_of
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.features.fleet.connection import connect
from torture.files import CHECKOUT
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.records.schedules.fixed import FixedSchedule

FLEET = CHECKOUT / "tools" / "fleet"
_DEADLINE_S = 90


class Played(StandInCampaign):
    """Trials of one cell."""

    def __init__(self, folder: Path, cluster: Cluster, *, trials: int) -> None:
        self._specs = specs_of(ASKED, trials=trials)
        super().__init__(folder, address=cluster.address, schedule=FixedSchedule(self._specs))

    def wait_until(self, records: int) -> None:
        """Until so many records are there."""
        assert wait_until_true(
            lambda: self.campaign.verdicts.total() >= records, deadline_s=_DEADLINE_S, poll_s=0.02
        ), self.site.remarks

    def ended(self) -> tuple[TrialRecord, ...]:
        """All records, each with its evidence; no trial is missing or doubled."""
        try:
            assert self.campaign.wait_for(ASKED, timeout_s=_DEADLINE_S)
        finally:
            self.campaign.stop()
        records = read_records(self.run.trials_file).records
        drawn = {spec.trial for spec in self._specs}
        assert sorted(record.trial for record in records) == sorted(drawn)
        assert [record.error for record in records if record.error] == []
        for trial in drawn:
            files = list(self.run.evidence_of(trial).iterdir())
            size = sum(file.stat().st_size for file in files)
            assert 0.9 * EVIDENCE_BYTES < size <= EVIDENCE_BYTES, "two tries, or half of one"
        return records


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        yield cluster


@pytest.fixture
def directions(tmp_path: Path) -> Path:
    folder = tmp_path / "directions"
    folder.mkdir()
    (folder / "seconds").write_text("0.1")
    return folder


def test_records_survive_killed_workers_a_killed_nanny_and_a_host_that_refuses(
    cluster: Cluster, directions: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "refuses").write_text("broken has no nas image")
    cluster.worker(broken)
    alone = cluster.worker(directions)
    nanny = cluster.worker(directions, nanny=True)
    played = Played(tmp_path / "run", cluster, trials=60)
    played.wait_until(10)
    alone.send_signal(signal.SIGKILL)
    alone.wait(_DEADLINE_S)
    (directions / "dies").write_text("0.002")  # with the result, which the campaign still fetches
    played.wait_until(20)
    late = cluster.worker(directions)
    played.wait_until(30)
    os.killpg(nanny.pid, signal.SIGKILL)
    records = played.ended()
    assert 1 <= sum(record.dead_tries for record in records) <= 5
    assert not (directions / "dies").exists()
    [remark] = played.site.remarks
    assert "is out after 3 failures in a row" in remark
    assert "broken has no nas image" in remark
    assert late.poll() is None


def test_a_lost_scheduler_ends_the_run_and_continue_goes_on(
    cluster: Cluster, directions: Path, tmp_path: Path
) -> None:
    worker = cluster.worker(directions)
    played = Played(tmp_path / "run", cluster, trials=40)
    played.wait_until(10)
    os.killpg(cluster.scheduler.pid, signal.SIGKILL)
    with pytest.raises(HarnessError, match="scheduler is gone"):
        played.campaign.wait_for(ASKED, timeout_s=_DEADLINE_S)
    played.campaign.stop()
    before = read_records(played.run.trials_file).records
    assert 10 <= len(before) < 40
    assert [record.error for record in before if record.error] == []
    assert worker.wait(_DEADLINE_S) is not None, "a worker without a scheduler ends"
    folder = tmp_path / "again"
    folder.mkdir()
    with Cluster(folder) as again:
        again.worker(directions)
        records = Played(tmp_path / "run", again, trials=40).ended()
    assert records[: len(before)] == before


@pytest.fixture(scope="module")
def fleet() -> Iterator[tuple[Cluster, Path]]:
    """A cluster with certificates, and the folder of these."""
    with TemporaryDirectory() as folder:
        certificates = Path(folder) / "fleet"
        assert LAUNCHER.run(FLEET, "certificates", certificates).returncode == 0
        with Cluster(Path(folder), certificates=certificates) as cluster:
            yield cluster, certificates


def test_only_holders_of_the_fleets_key_get_in(
    fleet: tuple[Cluster, Path], directions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, certificates = fleet
    assert LAUNCHER.run(FLEET, "certificates", tmp_path / "others").returncode == 0
    again = LAUNCHER.run(FLEET, "certificates", certificates)
    assert (again.returncode, "holds certificates already" in again.stderr) == (1, True)
    assert sorted(path.name for path in certificates.iterdir()) == [
        "ca.pem", "fleet.key", "fleet.pem",
    ]  # fmt: skip
    assert (certificates / "fleet.key").stat().st_mode & 0o077 == 0
    assert cluster.address.startswith("tls://")
    worker = cluster.worker(directions)
    monkeypatch.setenv("TORTURE_CERTIFICATES", str(tmp_path / "others"))
    with pytest.raises(HarnessError, match="no Dask scheduler answers"):
        connect(cluster.address)
    with pytest.raises(HarnessError, match="no Dask scheduler answers"):
        connect(cluster.address.replace("tls:", "tcp:"))
    monkeypatch.setenv("TORTURE_CERTIFICATES", str(certificates))
    Played(tmp_path / "run", cluster, trials=3).ended()
    monkeypatch.setenv("TORTURE_EVIDENCE", "sftp://host/evidence")
    with pytest.raises(HarnessError, match="evidence travels with the records"):
        Played(tmp_path / "shared", cluster, trials=3)
    worker.kill()
    worker.wait(_DEADLINE_S)


@pytest.mark.skipif(sshd_path() is None, reason="there is no sshd here: Debian's openssh-server")
def test_the_printed_command_starts_a_worker_over_ssh(
    fleet: tuple[Cluster, Path], directions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, certificates = fleet
    monkeypatch.setenv("TORTURE_CERTIFICATES", str(certificates))
    port = cluster.address.rpartition(":")[2]
    printed = LAUNCHER.run(FLEET, "commands", "127.0.0.1", "--port", port, "--workers", "1").stdout
    [command] = [line for line in printed.splitlines() if "/dask worker" in line]
    (tmp_path / "ssh").mkdir()
    with SshServer(tmp_path / "ssh") as server:
        argv = [*server.words(), f"export {DIRECTIONS}={directions}; {command}"]
        with (tmp_path / "said").open("wb") as said:
            session = subprocess.Popen(argv, stdout=said, stderr=said)
        played = Played(tmp_path / "run", cluster, trials=3)
        played.ended()
        assert session.poll() is None, (tmp_path / "said").read_text()
    session.wait(_DEADLINE_S)
