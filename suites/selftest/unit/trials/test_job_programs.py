"""The programs of a measurement's jobs: how jobs share a run, and gobonniego in the client."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from torture.errors import HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.speed.gobonniego_jobs import MEMORY_MIB, gobonniego_jobs
from torture.records.tasks.measure_task import MeasureOrder
from torture.trials.trial.measure.job_programs import Target, lay_out, run_jobs, runs_of
from torture.trials.trial.shared.evidence_writer import EvidenceWriter

_JOBS = tuple(job.name for job in gobonniego_jobs(2))
_ORDER = MeasureOrder(jobs=_JOBS, size_mib=128, run_s=4)
_PRINTED = (
    '{"version": "1", "results": [{"write_megabytes_per_second": 10.0,'
    ' "read_megabytes_per_second": 20.0, "iops": 300.0}]}'
)


class Client:
    """A machine that answers each command alike."""

    def __init__(self, stdout: str = _PRINTED, exit_code: int = 0, stderr: str = "") -> None:
        self.commands: list[tuple[str, ...]] = []
        self.programs: dict[str, bytes] = {}
        self.agent = Mock(put_program=self.programs.__setitem__)
        self.spec = Mock(console_log=Path("console.log"))
        self._done = (stdout, exit_code, stderr)

    def run(self, *argv: str, deadline_s: float) -> Completed:
        assert deadline_s > 0
        self.commands.append(argv)
        stdout, exit_code, stderr = self._done
        return Completed(vm="client", argv=argv, exit_code=exit_code, stdout=stdout, stderr=stderr)


def target_of(client: object, program: Path, sha256: str = "") -> Target:
    """A client with a gobonniego that its user brought."""
    job = {"directory": "/mnt/load/bench", "program": str(program), "sha256": sha256}
    return Target(
        client=client,  # type: ignore[arg-type]
        path="/mnt/load/speed",
        slow=lambda _times: None,
        settle=lambda: None,
        empty_cache=lambda: pytest.fail("no job is cold"),
        linked=lambda _link, _times: nullcontext(lambda: 0),
        gobonniego=job,
    )


def test_its_jobs_share_a_run_and_those_of_fio_do_not() -> None:
    fio = ("write-128k-t1", "read-128k-t1")
    assert runs_of((*_JOBS, *fio)) == (_JOBS, fio[:1], fio[1:])
    assert runs_of((fio[0], *_JOBS, fio[1])) == (fio[:1], _JOBS, fio[1:])
    assert runs_of(()) == ()


def test_one_run_is_the_end_of_each_of_its_jobs(tmp_path: Path) -> None:
    client = Client()
    ends = run_jobs(target_of(client, tmp_path), _JOBS, _ORDER, EvidenceWriter(folder=tmp_path))
    assert list(ends) == list(_JOBS)
    assert ends[_JOBS[0]].mib_per_s * 2 == pytest.approx(ends[_JOBS[1]].mib_per_s)
    assert ends[_JOBS[2]].operations_per_s == pytest.approx(300)
    (argv,) = client.commands
    script, program, directory, options = argv[2], argv[4], argv[6], argv[7:]
    assert f"- {MEMORY_MIB * 1024}) / $(kib Hugepagesize)" in script
    assert (program, directory) == ("/run/gobonniego", "/mnt/load/bench")
    assert " ".join(options) == "-json -runs 1 -size 0.125 -threads 2 -iops-duration 4"


@pytest.mark.parametrize(
    ("client", "complaint"),
    [
        (Client(stdout=_PRINTED[:40]), "unreadable"),
        (Client(stdout=""), "unreadable"),
        (Client(stdout=f"{_PRINTED}\n{_PRINTED}"), "unreadable"),
        (Client(stdout=_PRINTED.replace("300.0", "0")), "did nothing"),
        (Client(exit_code=2, stderr="panic: no space"), "gobonniego returned 2: panic: no space"),
    ],
)
def test_a_run_without_figures_is_the_machinerys_failure(
    client: Client, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(HarnessError, match=complaint):
        run_jobs(target_of(client, tmp_path), _JOBS, _ORDER, EvidenceWriter(folder=tmp_path))


def test_the_users_program_is_brought_in_once_and_must_be_the_same(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_bytes(b"program")
    client, evidence = Client(), EvidenceWriter(folder=tmp_path)
    digest = hashlib.sha256(b"program").hexdigest()
    lay_out(target_of(client, own, digest), _ORDER, evidence)
    assert client.programs == {"/run/gobonniego": b"program"}
    assert client.commands == [], "it makes its own files"
    with pytest.raises(HarnessError, match="is not the file"):
        lay_out(target_of(client, own, "0" * 64), _ORDER, evidence)
