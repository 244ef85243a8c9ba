"""A real trial on a Dask worker: a session of pytest, a scheduler and a worker, each a process."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from suites.selftest.programs.fleet.dask_cluster import Cluster
from suites.selftest.runs.processes import Sandbox, commands_in, sandboxes_of
from torture.deadlines import wait_until_true
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RunLayout, read_run_document
from torture.records.record.trials_file import read_records
from torture.records.scoring.score import rejudge

_CELL = "iscsi-always-noslog-btrfs-bothdie"
_DEADLINE_S = 400


def test_a_trial_on_a_dask_worker_gives_record_and_evidence_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    with TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        worker = cluster.worker(tmp_path)
        argv = [
            sys.executable, "-m", "pytest", "suites/powercut", "-q", "--cell", _CELL,
            "--workers", f"dask:{cluster.address}", "--duration", "2", "--results", str(tmp_path),
        ]  # fmt: skip
        session = subprocess.Popen(
            argv, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        sandboxes: set[Sandbox] = set()

        def is_over() -> bool:
            sandboxes.update(sandboxes_of(worker.pid))
            return session.poll() is not None

        try:
            assert wait_until_true(is_over, deadline_s=_DEADLINE_S, poll_s=0.5)
        finally:
            session.kill()
        said, _ = session.communicate()
        assert session.returncode == 0, said
        assert sandboxes, "the trial ran in a sandbox of the Dask worker"
        assert commands_in(sandboxes) == {}, "and the worker, which is still there, ended it"
    [run] = [RunLayout(folder=path) for path in tmp_path.iterdir() if not path.is_symlink()]
    [record] = read_records(run.trials_file).records
    assert (record.error, record.verdict, record.dead_tries) == (None, Verdict.INTACT, 0)
    assert record.where.host == platform.node()
    document = read_run_document(run.folder)
    assert document is not None
    of_run = {name: image.sha256[:16] for name, image in document.images.items() if image}
    assert record.where.images == of_run
    assert [record] == [*rejudge(run.folder).records], "all evidence has arrived"
