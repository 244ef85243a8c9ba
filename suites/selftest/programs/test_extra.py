"""`--extra DIR`: loads and SLOG kinds from outside of the repository, in pytest and in workers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suites.selftest.programs.collecting import cells_in, collect
from suites.selftest.programs.launcher import run_program
from torture.files import CHECKOUT

EXAMPLE = Path(__file__).with_name("extra")
CELL = "iscsi-always-triple-btrfs-hasty-bothdie"


def python(*argv: str, extra: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A program; `extra` is the folder that a worker finds in its environment."""
    return run_program(sys.executable, *argv, TORTURE_EXTRA=str(extra or ""))


def test_the_examples_cell_is_collected() -> None:
    session = ("-m", "pytest", "suites/powercut", "--collect-only", "-q", "--cell", CELL)
    assert cells_in(python(*session, f"--extra={EXAMPLE}")) == [CELL]
    assert "'triple'" in collect("--cell", CELL).stderr


def test_a_worker_knows_its_choices_and_the_run_names_its_files() -> None:
    source = (
        "import json; from torture.records.record.specs import TrialSpec\n"
        "from torture.discovery import extra_digests\n"
        f"given = dict(cell={CELL!r}, index=0, seed=1, load_ms=500, survive_ms=1, draw=3)\n"
        "spec = TrialSpec.from_json(given)\n"
        "from torture.choices.matrix.cell_terms import guarantee_of\n"
        "print(json.dumps([spec.cell.name, guarantee_of(spec.cell), extra_digests()]))\n"
    )
    done = python("-c", source, extra=EXAMPLE)
    assert done.returncode == 0, done.stderr
    cell, guarantee, digests = json.loads(done.stdout)
    assert (cell, guarantee) == (CELL, "safe")
    assert sorted(digests) == ["slogs/triple.py", "workloads/hasty.py"]
    assert {len(digest) for digest in digests.values()} == {64}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("README", "", "there is no Python file in slogs/ or workloads/"),
        ("slogs/kinds.py", "", "slogs/kinds.py has the name of a module of the suite"),
        ("slogs/wrong.py", "import nowhere\n", "does not load: ModuleNotFoundError"),
        ("workloads/older.py", "from torture.oracles.verdict.terms import Terms\n",
         "import from torture.oracles.verdict.guarantee instead"),
        ("slogs/empty.py", "", "does not define CHOICE"),
        ("slogs/again.py", (EXAMPLE / "slogs/triple.py").read_text().replace('"triple"', '"plp"'),
         "two choices are called 'plp'"),
    ],
)  # fmt: skip
def test_a_useless_folder_is_refused_before_the_set_up(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    tool = str(CHECKOUT / "tools" / "run")
    done = python(tool, "--setup-only", f"--extra={tmp_path}")
    assert done.returncode == 4
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_changed_file_is_another_run(tmp_path: Path) -> None:
    copy = shutil.copytree(EXAMPLE, tmp_path / "extra")
    source = "from torture.discovery import extra_digests; print(extra_digests())"
    before = python("-c", source, extra=copy).stdout
    with (copy / "slogs/triple.py").open("a") as file:
        file.write("# another\n")
    assert before != python("-c", source, extra=copy).stdout
