"""All that this checkout prints of published and recorded trials, as files that `diff` compares.

    python -m suites.selftest.golden OUT

writes the page and each export of `results/published`, the schemas and `--help` of all suites and tools.
It also writes `tools/judge` of each recorded trial, and the plan of each published cut. A commit that
only arranges code leaves `diff -r` of two folders empty. Any other commit names the difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from suites.selftest.recorded.json_schemas import schemas
from torture.choices.matrix.cells import Cell
from torture.files import CHECKOUT
from torture.records.record.run_document import RunLayout, read_run_document
from torture.records.record.specs import DRAWS, TrialSpec
from torture.records.record.trials_file import index_in, read_records
from torture.report.exports import EXPORTS
from torture.trials.plan.trial_plan import draw_plan

_COMMAND_S = 600
_PUBLISHED = CHECKOUT / "results" / "published"
_EVIDENCE = CHECKOUT / "suites" / "selftest" / "recorded" / "evidence"


def main() -> None:
    """Write all files below the folder that the command line names."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True)
    for name, text in schemas().items():
        _keep(out / "schemas" / name, text)
    _keep_helps(out / "help")
    _keep_verdicts(out / "verdicts")
    _keep(out / "plans.jsonl", "".join(_plans()))
    exports = [word for export in EXPORTS for word in ("--export", export)]
    _printed("tools/report", str(_PUBLISHED), *exports, "--output", str(out / "report"))


def _keep_helps(folder: Path) -> None:
    for tool in sorted((CHECKOUT / "tools").iterdir()):
        if tool.is_file():
            _keep(folder / f"{tool.name}.txt", _printed(f"tools/{tool.name}", "--help"))
    for suite in sorted((CHECKOUT / "suites").glob("*/conftest.py")):
        place = str(suite.parent.relative_to(CHECKOUT))
        text = _printed(sys.executable, "-m", "pytest", place, "--help")
        _keep(folder / "suites" / f"{suite.parent.name}.txt", text)


def _keep_verdicts(folder: Path) -> None:
    for path in sorted(_EVIDENCE.glob("*.zip")):
        with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(path) as packed:
            packed.extractall(place)
            trial = next(Path(place).rglob("spec.json")).parent
            _keep(folder / f"{path.stem}.txt", _printed("tools/judge", str(trial)))


def _plans() -> Iterator[str]:
    """A line for each draw of each published cut."""
    for folder in sorted(path for path in _PUBLISHED.iterdir() if path.is_dir()):
        run = read_run_document(folder)
        assert run is not None
        load_ms = int(str(run.options["duration_ms"]))
        for record in read_records(RunLayout(folder=folder).trials_file).records:
            if not record.cut.plan:
                continue
            index = index_in(record.trial)
            assert index is not None
            for draw in DRAWS:
                spec = TrialSpec(
                    cell=Cell.parse(record.cell), index=index, seed=record.seed, load_ms=load_ms,
                    origin=record.origin, draw=draw,
                )  # fmt: skip
                plan = draw_plan(spec).as_json()
                yield json.dumps({"trial": record.trial, "draw": draw, "plan": plan}) + "\n"


def _keep(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace(str(CHECKOUT), "CHECKOUT"))


def _printed(*argv: str) -> str:
    ended = subprocess.run(
        argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=_COMMAND_S, check=False,
        env=os.environ | {"COLUMNS": "100"},
    )  # fmt: skip
    return f"exit code {ended.returncode}\n{ended.stdout}{ended.stderr}"


if __name__ == "__main__":
    main()
