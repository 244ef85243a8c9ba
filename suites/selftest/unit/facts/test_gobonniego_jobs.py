"""A run of gobonniego as three jobs: the figures that it prints, and times to match."""

from __future__ import annotations

import pytest

from torture.checkout import CHECKOUT
from torture.facts.speed.gobonniego_jobs import ends_of_run, gobonniego_jobs, gobonniego_options
from torture.facts.speed.jobs import SpeedJob
from torture.oracles.verdict.applications.gobonniego_output import parse_runs

_RECORDED = CHECKOUT / "suites/selftest/recorded/gobonniego/two-runs.stdout"


def test_its_jobs_have_names_that_say_them_whole() -> None:
    jobs = gobonniego_jobs(2)
    assert [job.name for job in jobs] == [
        "gobonniego_write-64k-t2",
        "gobonniego_read-64k-t2",
        "gobonniego_iops-0.5k-t2",
    ]
    assert [SpeedJob.parse(job.name) for job in jobs] == list(jobs)
    assert all(job.pattern.is_of_gobonniego for job in jobs)
    assert not SpeedJob.parse("write-64k-t2").pattern.is_of_gobonniego


def test_its_options_say_size_threads_and_time() -> None:
    assert " ".join(gobonniego_options(size_mib=128, threads=2, run_s=2.5)) == (
        "-json -runs 1 -size 0.125 -threads 2 -iops-duration 2.5"
    )


def test_the_ends_have_the_rates_that_a_recorded_run_printed() -> None:
    run = parse_runs(_RECORDED.read_text())[0]
    rates = (run.write_megabytes_per_second, run.read_megabytes_per_second, run.iops)
    write, read, iops = ends_of_run(gobonniego_jobs(2), rates, size_mib=51, run_s=1.0).values()
    assert write.bytes == read.bytes == 51 * 2**20
    for end, rate in ((write, rates[0]), (read, rates[1])):
        assert end.mib_per_s * 2**20 / 1e6 == pytest.approx(rate)
        assert end.operations == 51 * 16
        assert end.mean_ms == pytest.approx(end.run_ms * 2 / end.operations)
    assert iops.operations_per_s == pytest.approx(rates[2], rel=1e-5)
    assert iops.mib_per_s == pytest.approx(rates[2] * 512 / 2**20, rel=1e-5)
    assert iops.mean_ms == pytest.approx(2000 / rates[2], rel=1e-5), "two threads wait at a time"
