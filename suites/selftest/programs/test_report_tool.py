"""`tools/report` as it is typed."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.programs.launcher import tool
from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import in_words, interval_in_words, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.setup import provision

QUICK = cells_of(Matrix.QUICK)
SAFE = Cell.parse("iscsi-always-noslog-btrfs-bothdie")
LOSES = Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")


report = partial(tool, "report")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "20261121-010203-abcd"
    return write_run(folder, make_records(120, cells=QUICK, seed=1))


def test_the_page_lands_beside_the_run_and_the_answer_in_the_terminal(run: Path) -> None:
    done = report(run)
    page = run / "report.html"
    assert done.stdout.splitlines()[-1] == str(page)
    assert "theory says safe: 0 of " in done.stdout
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "src=" not in text.replace("data-src=", "")
    assert "@import" not in text


def test_a_defect_of_the_tool_is_no_comparison(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exit code of 1 would say that the new run is worse."""

    def broken(*_: object) -> int:
        raise RuntimeError("a defect")

    monkeypatch.setattr("torture.report.terminal.print_run_comparison", broken)
    monkeypatch.setattr("sys.argv", ["report", "--compare", str(run), str(run)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(CHECKOUT / "tools" / "report"), run_name="__main__")
    assert ended.value.code == 2


def test_a_run_of_any_name_is_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "$(touch x) a b", make_records(12, cells=QUICK, seed=1))
    (tmp_path / "link").symlink_to(run.name)
    done = report(tmp_path / "link", "--export", "markdown")
    assert done.stdout.splitlines()[-1] == str(run / "report.html")
    assert (run / "report.md").exists()
    done = report("--compare", tmp_path / "link", run)


@pytest.mark.parametrize("name", ["report", "judge"])
def test_the_terminal_counts_inconclusive_trials_either_way(tmp_path: Path, name: str) -> None:
    records = [
        changed(record, verdict=verdict, error=None, lost=0)
        for record, verdict in zip(
            make_records(40, cells=[SAFE], seed=1),
            [Verdict.INTACT] * 30 + [Verdict.INCONCLUSIVE] * 10,
            strict=True,
        )
    ]
    folder = write_run(tmp_path / "run", records)
    done = tool(name, folder)
    assert "10 inconclusive" in done.stdout
    assert in_words(rate_of(0, 40)) in done.stdout
    assert in_words(rate_of(10, 40)) in done.stdout


def test_exports_land_where_they_are_asked_for(run: Path, tmp_path: Path) -> None:
    report(run, "--output", tmp_path / "out", "--export", "csv", "--export", "markdown")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "trials.csv", "cells.csv", "report.md"}


@pytest.mark.parametrize(
    ("former", "instead"),
    [("roads", "--export markdown"), ("phases", "the page has it"), ("junit", "--junitxml FILE")],
)
def test_a_former_format_is_refused_with_its_replacement(
    run: Path, former: str, instead: str
) -> None:
    done = report(run, "--export", former, code=2)
    assert f"{former} is no format any more: " in done.stderr
    assert instead in done.stderr


def test_a_broken_line_is_reported_and_no_other_is_lost(run: Path, tmp_path: Path) -> None:
    whole = (run / TRIALS_FILE).read_bytes()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / TRIALS_FILE).write_bytes(whole[:-40])
    done = report(run, broken, "--output", tmp_path / "out")
    notes = [line for line in done.stdout.splitlines() if line.startswith("note: ")]
    assert any("line" in note for note in notes), done.stdout
    assert any("119" in note for note in notes), done.stdout
    assert f"{120} power cuts" in (tmp_path / "out" / "report.html").read_text()


def test_a_page_of_several_runs_takes_the_place_of_none_of_theirs(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "results" / name, make_records(4, cells=[SAFE], seed=seed))
        for seed, name in enumerate(("one", "other"))
    ]
    (runs[0] / "report.html").write_text("its own")
    refused = report(*runs, code=2)
    assert "--output DIR" in refused.stderr
    done = report(tmp_path / "results")
    assert done.stdout.splitlines()[-1] == str(tmp_path / "results" / "report.html"), done.stderr
    assert (runs[0] / "report.html").read_text() == "its own"
    assert not (runs[1] / "report.html").exists()


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One that is safe, and one of the same cell that loses."""
    folder = tmp_path_factory.mktemp("nights")
    safe = list(make_records(60, cells=[SAFE], seed=1))
    lossy = [
        record.__class__.from_json(
            loss.as_json() | {"cell": SAFE.name, "axes": SAFE.axes, "trial": record.trial}
        )
        for record, loss in zip(safe, make_records(60, cells=[LOSES], seed=2), strict=True)
    ]
    return write_run(folder / "old", safe), write_run(folder / "new", lossy)


def test_a_worsening_fails_and_an_improvement_does_not(nights: tuple[Path, Path]) -> None:
    old, new = nights
    worse = report("--compare", old, new, code=1)
    assert f"Worse, and not by chance: {SAFE.name}" in worse.stdout
    better = report("--compare", new, old)
    assert "No configuration of 1 got significantly worse" in better.stdout
    assert "1 rate is the same" in report("--compare", old, old).stdout


@pytest.mark.parametrize("content", [b"", b"no record\n", b"\xff\x00\n", b"[" * 100_000 + b"\n"])
def test_input_that_cannot_be_read_is_no_worsening(
    nights: tuple[Path, Path], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / TRIALS_FILE).write_bytes(content)
    for pair in ((nights[0], tmp_path), (tmp_path, nights[0])):
        refused = report("--compare", *pair, code=2)
        assert str(tmp_path) in refused.stderr
        assert "next: tools/report" in refused.stderr


def test_one_line_that_cannot_be_read_stops_a_comparison(
    nights: tuple[Path, Path], tmp_path: Path
) -> None:
    """It may have been the loss."""
    lines = (nights[0] / TRIALS_FILE).read_bytes()
    (tmp_path / TRIALS_FILE).write_bytes(b"{broken}\n" + lines)
    refused = report("--compare", nights[0], tmp_path, code=2)
    assert "1 line of" in refused.stderr
    (tmp_path / TRIALS_FILE).write_bytes(lines + b'{"trial": "cut o')
    report("--compare", nights[0], tmp_path)


def test_two_nights_without_conclusive_trials_say_nothing(tmp_path: Path) -> None:
    [one] = make_records(1, cells=[SAFE], seed=1)
    folder = write_run(tmp_path / "run", [changed(one, verdict=Verdict.INCONCLUSIVE, lost=0)])
    silent = report("--compare", folder, folder, code=3)
    assert "Nothing can be compared" in silent.stdout
    assert "next: tools/report" in silent.stderr


def test_cells_that_vanished_fail_unless_they_were_left_out_on_purpose(tmp_path: Path) -> None:
    both = [
        changed(record, verdict=Verdict.INTACT, lost=0, error=None)
        for record in make_records(12, cells=[SAFE, LOSES], seed=1)
    ]
    old = write_run(tmp_path / "old", both)
    new = write_run(tmp_path / "new", [own for own in both if own.cell == SAFE.name])
    vanished = report("--compare", old, new, code=1)
    assert f"no trial in the new ones: {LOSES.name}" in vanished.stdout
    assert "--subset" in vanished.stdout
    report("--compare", old, new, "--subset")
    report("--compare", new, old)


def test_two_configurations_are_compared(run: Path) -> None:
    done = report(run, "--cells", SAFE.name, LOSES.name)
    assert f"harm: {LOSES.name} is significantly higher than {SAFE.name}" in done.stdout
    missing = report(run, "--cells", SAFE.name, "iscsi-never", code=2)
    assert "the runs have no trial of iscsi-never" in missing.stderr


def test_a_run_that_stopped_by_itself_is_judged_with_intervals_of_its_kind(tmp_path: Path) -> None:
    """The end of such a run names this command; both have to say the same."""
    sound = [
        changed(record, verdict=Verdict.INTACT, lost=0)
        for record in make_records(30, cells=[SAFE], seed=1)
    ]
    run = write_run(tmp_path / "run", sound, options={"until": "upper<0.1"})
    assert interval_in_words(sequential_rate_of(0, 30)) in tool("judge", run).stdout


def test_two_equal_cells_are_shown_without_a_significant_difference(tmp_path: Path) -> None:
    """One cut without a loss is no more than a coin that fell once."""
    other = Cell.parse("iscsi-always-noslog-xfs-bothdie")
    [one] = make_records(1, cells=[SAFE], seed=1)
    others = make_records(40, cells=[other], seed=1)
    sound = [changed(record, verdict=Verdict.INTACT, lost=0) for record in (one, *others)]
    unresolved = changed(sound[-1], verdict=Verdict.INCONCLUSIVE)
    run = write_run(tmp_path / "run", [*sound[:-1], unresolved])
    done = report(run, "--cells", SAFE.name, other.name)
    assert "0/1 0 %" in done.stdout
    assert "0/39 0 %" in done.stdout
    assert "[-99 to +11]" in done.stdout
    assert f"note: 1 trials of {other.name} are inconclusive" in done.stdout
    nothing = write_run(tmp_path / "nothing", [sound[0], replace(unresolved, cell=other.name)])
    report(nothing, "--cells", SAFE.name, other.name, code=3)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "name runs to report on"),
        (("/nonexistent",), "no run at /nonexistent"),
        (("a", "--compare", "b", "c"), "name runs to report on"),
        (("--compare", "/nonexistent", "/nonexistent"), "no run at"),
        (("a", "--export", "pdf"), "pdf"),
        (("a", "--cells", "b", "c", "--export", "csv"), "a comparison writes nothing"),
        (("--compare", "b", "c", "--output", "d"), "a comparison writes nothing"),
        (("a", "--subset"), "--subset belongs to --compare"),
    ],
)
def test_a_wrong_call_says_why(arguments: tuple[str, ...], why: str) -> None:
    done = report(*arguments, code=2)
    assert why in done.stderr


def test_a_missing_environment_is_no_worsening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(provision, "ENVIRONMENT", tmp_path / "missing")
    with pytest.raises(SystemExit) as left:
        provision.use_environment()
    assert left.value.code == 2
    assert "next: tools/run --setup-only" in capsys.readouterr().err
