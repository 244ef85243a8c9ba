"""The cells and plans that the options of suites/powercut choose."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

import pytest

from fixtures.early_options import refuse_before_setup, refuse_misspelt
from fixtures.options import read_options
from torture.facts.axes.sweeps import Matrix
from torture.facts.linux.kernels import DEFAULT_KERNELS, Kernels
from torture.facts.stats.sequential import Until
from torture.machines.images.source_trees import ChosenSource, SourceTree, choose_linux
from torture.records.schedules import order_of


@pytest.mark.parametrize(
    ("until", "asked", "trials"),
    [(None, None, 1), (None, 7, 7), ("upper<0.01", None, 4 * 535), ("lower > 0.5", 12, 12)],
)
def test_a_question_says_how_many_trials_unless_the_user_does(
    until: str | None,
    asked: int | None,
    trials: int,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = None if until is None else str(Until.parse(until))
    order = None if until is None else order_of(f"until:{until}")
    monkeypatch.setattr(pytestconfig.option, "until", order)
    monkeypatch.setattr(pytestconfig.option, "trials", asked)
    options = read_options(pytestconfig)
    assert (options.trials, options.schedule.question) == (trials, question or "")
    written = options.as_json()
    assert (written["trials"], written["until"]) == (trials, question)
    assert written["schedule"] == ("fixed" if until is None else f"until:{until}")


def test_more_trials_than_fit_into_memory_are_refused(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "matrix", Matrix.FULL)
    monkeypatch.setattr(pytestconfig.option, "until", order_of("until:upper<0.0001"))
    with pytest.raises(pytest.UsageError, match="use fewer --trials, or --cell"):
        read_options(pytestconfig)


def test_a_run_names_the_content_of_the_users_files_that_its_cells_take(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--continue` compares it: trials with another job are another run's."""
    job = tmp_path / "own.fio"
    job.write_text("[own]\nrw=write\nsize=1M\nverify=crc32c\n")
    monkeypatch.setattr(pytestconfig.option, "fio_job", job)
    monkeypatch.setattr(pytestconfig.option, "cell", ["iscsi-always-noslog-ext4-fio_own-bothdie"])
    expected = {"fio_own": hashlib.sha256(job.read_bytes()).hexdigest()}
    assert read_options(pytestconfig).as_json()["brought"] == expected


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--trials 0", "at least 1"),
        ("--trials=-3", "at least 1"),
        ("--trials many", "at least 1"),
        ("--jobs 0", "at least 1"),
        ("--duration 0.1", "must be 0.5 to 300 s"),
        ("--duration 1200", "must be 0.5 to 300 s"),
        ("--duration nan", "must be 0.5 to 300 s"),
        ("--duration inf", "must be 0.5 to 300 s"),
        ("--seed x", "--seed: invalid int value"),
        ("--continue /nonexistent", "it has no run.json"),
        ("--continue results", "it has no run.json"),
        ("--trails 5", "did you mean --trials"),
        ("--trial=5", "did you mean --trials"),
        ("--cells x", "did you mean --cell"),
        ("--unti 'upper<0.1'", "did you mean --until"),
        ("--tunables a=1", "did you mean --tunable"),
        ("--matrix huge", "'huge' is not one of quick"),
        ("--cell iscsi-sometimes", "--cell: "),
        ("--axis layout=raidz9", "'raidz9' is no choice of layout"),
        ("--property recordsize", "write NAME=VALUE"),
        ("suites/powrcut", "there is no suites/powrcut; there are "),
        ("suites/powercut/test_nothing.py::test_x", "there is no suites/powercut/test_nothing.py"),
        ("suites/speed --table full", "did you mean --tables"),
    ],
)
def test_a_mistake_is_refused_before_the_set_up(arguments: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        refuse_before_setup(shlex.split(arguments))


def test_a_run_beside_the_caller_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And half a second is a length, in each of its spellings."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "run.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    refuse_before_setup(["--continue", "own", "--duration", ".5"])
    refuse_before_setup(["--continue", "results/published/20261201-043759-6027"])


def test_no_option_of_ours_or_of_pytests_is_taken_for_a_mistake(
    pytestconfig: pytest.Config,
) -> None:
    registered = {
        name
        for group in pytestconfig._parser._groups
        for option in group.options
        for name in option.names()
        if name.startswith("--")
    }
    assert {"--cell", "--trials", "--continue", "--durations"} <= registered
    refuse_misspelt(sorted(registered))


@pytest.mark.parametrize(
    ("both", "nas", "client", "expected"),
    [
        (None, None, None, DEFAULT_KERNELS),
        ("bookworm", None, None, Kernels(nas="bookworm", client="bookworm")),
        (None, "bookworm", None, Kernels(nas="bookworm", client="trixie")),
        ("bookworm", None, "trixie", Kernels(nas="bookworm", client="trixie")),
        (None, None, "trixie-backports", Kernels(client="trixie-backports")),
    ],
)
def test_an_option_of_one_machine_goes_before_that_of_both(
    both: str | None,
    nas: str | None,
    client: str | None,
    expected: Kernels,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for option, name in (("linux", both), ("linux_nas", nas), ("linux_client", client)):
        chosen = None if name is None else choose_linux(name)
        monkeypatch.setattr(pytestconfig.option, option, chosen)
    assert read_options(pytestconfig).lab.linux == expected


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--linux", "6.12"], "no recipe for Linux 6.12"),
        (["--linux", "trixie-backports"], "2.3.9 supports Linux 4.18 to 7.2"),
        (["--zfs", "2.1.11", "--linux-nas", "trixie"], "2.1.11 supports Linux 3.10 to 6.2"),
        (
            ["--linux-client", "trixie-backports", "--cell", "iscsi-always-noslog-zfs-bothdie"],
            "trixie-backports has 7.3",
        ),
    ],
)
def test_a_pair_that_does_not_fit_is_refused_before_a_build(arguments: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        refuse_before_setup(arguments)


def test_a_client_that_needs_no_zfs_may_have_any_kernel() -> None:
    refuse_before_setup(["--linux-client", "trixie-backports"])
    refuse_before_setup(["--zfs", "2.1.11", "--linux-client", "trixie"])


def test_a_source_tree_is_the_version_that_its_content_is_called(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert read_options(pytestconfig).zfs_tree is None
    tree = SourceTree(root=tmp_path, version="2.4.99-0123456789ab")
    chosen = ChosenSource(version=tree.version, tree=tree)
    monkeypatch.setattr(pytestconfig.option, "zfs", chosen)
    options = read_options(pytestconfig)
    assert (options.lab.zfs, options.zfs_tree) == (tree.version, tree)
