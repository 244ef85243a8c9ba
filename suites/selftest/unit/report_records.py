"""Made-up records that look like real ones, for the report's tests, its page and its benchmark."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from suites.selftest.unit.made_records import changed, trial_record
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import FATE, SLOG, SYNC, Cell
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import CutDocument, DiskAtCut
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.specs import TrialSpec, draw_seed
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.page.render import render_page
from torture.report.reading.store import Store

BEGUN = "2026-11-21T09:10:24+0000"

_SHARES = {
    Guarantee.SAFE: {Verdict.INTACT: 1.0},
    Guarantee.ROLLS_BACK: {Verdict.INTACT: 0.1, Verdict.ROLLED_BACK: 0.9},
    Guarantee.LOSES: {
        Verdict.INTACT: 0.5, Verdict.ROLLED_BACK: 0.05, Verdict.CORRUPTED: 0.4,
        Verdict.UNREPAIRABLE: 0.05,
    },
    Guarantee.MAY_LOSE_POOL: {
        Verdict.INTACT: 0.3, Verdict.REPAIRED: 0.05, Verdict.ROLLED_BACK: 0.3,
        Verdict.CORRUPTED: 0.2, Verdict.POOL_LOST: 0.15,
    },
}  # fmt: skip
"""How trials end, by what theory guarantees; near what is measured."""
_INCONCLUSIVE = 0.01
_AIMS = ("anywhere", "operation", "write", "flush")
_POLICIES = ("all", "flushed", "subset", "torn")


def make_records(n: int, *, cells: Sequence[Cell], seed: int) -> Iterator[TrialRecord]:
    """So many records, dealt to the cells in turn; the same for the same arguments."""
    for number in range(n):
        drawn = cells[number % len(cells)]
        index = number // len(cells)
        own = draw_seed(run_seed=seed, cell=drawn, index=index)
        spec = TrialSpec(cell=drawn, index=index, seed=own, load_ms=4000)
        yield _record(spec, random.Random(own))


def intact_records(n: int, *, cells: Sequence[Cell], seed: int = 1) -> list[TrialRecord]:
    """The same, as if each of these trials were conclusive, and had lost nothing."""
    intact = {"verdict": Verdict.INTACT, "lost": 0, "rollback_ms": None}
    known = {"error": None, "machinery_failed": False}
    made = make_records(n, cells=cells, seed=seed)
    return [changed(record, **intact, **known) for record in made]


def write_run(
    folder: Path,
    records: Iterable[TrialRecord],
    *,
    seed: int | None = 1,
    begun: str = BEGUN,
    options: dict[str, Any] | None = None,
) -> Path:
    """A run's folder with these records and a `run.json`, without evidence; returns the folder."""
    folder.mkdir(parents=True)
    document = {
        "run": folder.name,
        "seed": seed,
        "options": {"trials": 12, "jobs": 2, "keep": "bad"} | (options or {}),
        "begun": begun,
        "versions": {"qemu": "7.2.22"},
    }
    (folder / "run.json").write_text(json.dumps(document))
    with (folder / TRIALS_FILE).open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record.as_json(), separators=(",", ":")) + "\n")
    return folder


def page_of(run: Path) -> str:
    """The page of a run."""
    with Store.open([run]) as store:
        return render_page(store)


def figures_of(records: Iterable[TrialRecord], **of_run: Any) -> tuple[CellFigures, ...]:
    """The figures of each cell in a run of these records."""
    with TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run", records, **of_run)
        with Store.open([run]) as store:
            return cell_figures(store.tallies())


def _record(spec: TrialSpec, draw: random.Random) -> TrialRecord:
    guarantee = guarantee_of(spec.cell)
    timings = {
        "set up NAS": draw.randint(4500, 7500),
        "set up client": draw.randint(3500, 6500),
        "load": draw.randint(2000, 5500),
        "cut": draw.randint(20, 60),
        "bring NAS back": draw.randint(5500, 11_000),
        "check": draw.randint(3500, 6500),
        "scrub": draw.randint(600, 1300),
    }
    if draw.random() < _INCONCLUSIVE:
        return trial_record(
            trial=spec.trial,
            cell=spec.cell.name,
            axes=spec.cell.axes,
            seed=spec.seed,
            verdict=Verdict.INCONCLUSIVE,
            guarantee=guarantee,
            timings={"set up NAS": timings["set up NAS"]},
            error="nas did not answer within 120 s\n  next: read nas-1.console.log",
            machinery_failed=True,
        )
    shares = _SHARES[guarantee]
    (verdict,) = draw.choices(list(shares), list(shares.values()))
    acknowledged = round(timings["load"] / 1000 * _per_s(spec.cell) * draw.uniform(0.8, 1.2))
    lost = draw.randint(1, max(1, acknowledged // 3)) if verdict.is_loss else 0
    rollback_ms = None
    if verdict is Verdict.ROLLED_BACK:
        rollback_ms = min(draw.lognormvariate(7.2, 0.9), 9_000.0)
    lost_pool = verdict is Verdict.POOL_LOST
    return trial_record(
        has_manifest=True,
        trial=spec.trial,
        cell=spec.cell.name,
        axes=spec.cell.axes,
        seed=spec.seed,
        verdict=verdict,
        guarantee=guarantee,
        cut=_cut(spec, draw, load_ms=timings["load"], acknowledged=acknowledged),
        acknowledged=acknowledged,
        lost=lost,
        verdicts={
            "pool": Verdict.POOL_LOST if lost_pool else Verdict.INTACT,
            "filesystem": None if lost_pool else Verdict.INTACT,
            "data": None if lost_pool else verdict,
        },
        found={"missing": lost, "torn": 0, "stale": lost // 4, "foreign": 0, "torn_in_flight": 0},
        rollback_ms=rollback_ms,
        fsck="clean, journal replayed",
        pool_summary="cannot import: I/O error" if lost_pool else "ONLINE",
        reasons=_reasons(lost, rollback_ms),
        timings=timings,
    )


def _per_s(cell: Cell) -> float:
    """Durable operations a second: what a setting costs."""
    speed = {Sync.DISABLED: 32.0, Sync.STANDARD: 24.0, Sync.ALWAYS: 17.0}[cell[SYNC]]
    return speed * (0.7 if not cell[SLOG].legs else 1) * (1 if cell[FATE] is Fate.NAS_ONLY else 0.9)


def _cut(spec: TrialSpec, draw: random.Random, *, load_ms: int, acknowledged: int) -> CutDocument:
    events = draw.randint(1500, 4000)
    names = ["data0"] if not spec.cell[SLOG].legs else ["data0", "slog0"]
    disks = {}
    for name in names:
        disks[name] = DiskAtCut(
            persistence="volatile",
            policy=draw.choice(_POLICIES),
            writes=draw.randint(300, 900),
            in_flight=draw.randint(0, 3),
            unflushed=draw.randint(0, 30),
            survived=0,
            torn=0,
        )
    t_ms = round(12_000 + load_ms * draw.random(), 3)
    return CutDocument(
        t_ms=t_ms,
        took_ms=round(draw.uniform(0.5, 45), 3),
        plan={
            "after_ms": draw.uniform(500, 4000),
            "aim": draw.choice(_AIMS),
            "delay_ms": 0.0,
            "count": draw.randint(0, 7),
        },
        hit=True,
        log_seq=events,
        log_ms=round(t_ms - 9, 3),
        marks=acknowledged * 3,
        acknowledged=acknowledged if spec.cell[FATE] is Fate.BOTH_DIE else acknowledged // 2,
        view={
            "schema": 1,
            "recording": "life-1",
            "cut": events,
            "seed": spec.seed,
            "disks": {name: {"policy": disk.policy} for name, disk in disks.items()},
        },
        disks=disks,
    )


def _reasons(lost: int, rollback_ms: float | None) -> tuple[str, ...]:
    if not lost:
        return ()
    first = "f00003 of 8192 bytes: no crash explains this"
    if rollback_ms is not None:
        first = f"everything is as one crash {rollback_ms:.0f} ms earlier would have left it"
    named = [f"f{number:05d} is not there (missing)" for number in range(min(lost, 10))]
    return (first, *named, *([f"and {lost - 10} more"] if lost > 10 else []))
