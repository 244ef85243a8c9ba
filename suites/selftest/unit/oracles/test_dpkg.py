"""The read-back of dpkg's packages: damaged roots, and those in which it died amid its work."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import begun
from torture.facts.evidence.ledger import Done, Ledger, OperationKind
from torture.oracles.verdict.applications.transactions import consult_transactions, parse_found
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Findings
from vmimages.client.load import read
from vmimages.client.load.applications import application_of, dpkg
from vmimages.client.load.applications.rows import payload_of

TRIAL = 7
SIZE = 600
GOOD = json.dumps({"before": [1, 2], "sizes": [SIZE]})


class Root:
    """One installed package, and the two programs that are asked about it."""

    def __init__(self, base: Path) -> None:
        self.programs = base / "programs"
        self.programs.mkdir()
        self.job = {
            "application": "dpkg",
            "trial": TRIAL,
            "seed": 1,
            "directory": str(base / "roots"),
            "writers": 1,
        }
        application_of(self.job).prepare()
        self.file = base / "roots/0/usr/share/load0-0/f0"
        self.file.parent.mkdir()
        self.file.write_bytes(payload_of(TRIAL, 3, 0, SIZE))
        self.described(GOOD)
        self.program("dpkg", "exit 0")

    def program(self, name: str, script: str) -> None:
        """A program of this name that is this script."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def described(self, description: str) -> None:
        """The description of the package in dpkg's words."""
        said = self.programs / "said"
        said.write_text(f"load0-0\t3\tinstalled\t{description}\n")
        self.program("dpkg-query", f"cat {said}")

    def read(self) -> dict[str, Any]:
        return application_of(self.job).read()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    made = Root(tmp_path)
    monkeypatch.setenv("PATH", str(made.programs), prepend=":")
    return made


def test_a_package_is_there_with_all_before_it(root: Root) -> None:
    read = root.read()
    assert read["whole"] == [1, 2, 3]
    assert not any(read[name] for name in ("parts", "complaints", "refused"))


@pytest.mark.parametrize(
    "description",
    ["", "[1, 2]", "3", '{"before": [1, 2, 600]}', '{"sizes": [600]}', '{"before": 1, "sizes": 2}'],
)
def test_an_unknown_description_is_refused(root: Root, description: str) -> None:
    """So a status file reads of which a sector is gone, or is older."""
    root.described(description)
    assert root.read()["refused"].startswith("root 0: ")


def test_a_size_that_no_file_has_is_compared_with_that_of_the_file(root: Root) -> None:
    """A torn sector made two numbers one. A file of that size does not fit into memory."""
    root.described(GOOD.replace(str(SIZE), f"{SIZE}99999999999999"))
    read = root.read()
    assert read["parts"] == {"3": "load0-0: f0 holds something else"}
    assert read["whole"] == [1, 2]


def test_other_content_of_the_same_size_is_reported(root: Root) -> None:
    root.file.write_bytes(payload_of(TRIAL, 4, 0, SIZE))
    assert list(root.read()["parts"]) == ["3"]


@pytest.mark.parametrize("check", ["--audit", "--verify"])
@pytest.mark.parametrize("ending", ["exit 2", "kill -ABRT $$"])
def test_a_check_that_could_not_look_is_refused(root: Root, check: str, ending: str) -> None:
    root.program("dpkg", f'case "$*" in *{check}*) {ending};; esac')
    assert f"dpkg {check}" in root.read()["refused"]


def test_a_check_that_found_something_is_a_complaint(root: Root) -> None:
    root.program("dpkg", 'case "$*" in *--audit*) echo " load0-9 is broken"; exit 1;; esac')
    assert root.read()["complaints"] == ["dpkg --audit: load0-9 is broken"]


SIZES = [700, 5]
Lines = dict[int, list[str]]
"""By writer, what `dpkg-query` prints of each package."""


def line(package: str, version: int, state: str, before: list[int] | None) -> str:
    """None: without a description."""
    about = "" if before is None else json.dumps({"before": before, "sizes": SIZES})
    return f"{package}\t{version}\t{state}\t{about}"


OTHERS = line("load1-0", 2, "installed", [])
"""Of the other writer, who has finished."""


class Roots:
    """Roots of two writers, in which dpkg prints what the test sets."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory / "dpkg"
        self.job = {
            "trial": TRIAL, "seed": 7, "mode": "application", "application": "dpkg", "writers": 2,
            "directory": str(self.directory),
        }  # fmt: skip
        self.audited = ""
        """The output of `dpkg --audit` for writer 0's."""
        self._lines: Lines = {}
        application_of(self.job).prepare()
        monkeypatch.setattr(dpkg, "run_program", self._run)

    def _run(self, argv: list[str]) -> subprocess.CompletedProcess[bytes]:
        is_audit = "--audit" in argv and f"--root={self.directory}/0" in argv
        said = self.audited if is_audit else ""
        if argv[0] == "dpkg-query":
            writer = int(Path(argv[1].removesuffix("/var/lib/dpkg")).name)
            said = "".join(f"{one}\n" for one in self._lines[writer])
        return subprocess.CompletedProcess(argv, 0, said.encode(), b"")

    def install(self, writer: int, package: str, seq: int) -> Path:
        """Its files, as that version has them."""
        folder = self.directory / f"{writer}/usr/share/{package}"
        folder.mkdir(parents=True, exist_ok=True)
        for number, size in enumerate(SIZES):
            (folder / f"f{number}").write_bytes(payload_of(TRIAL, seq, number, size))
        return folder

    def judged(self, ledger: Ledger, *lines: str, others: tuple[str, ...] = (OTHERS,)) -> Findings:
        self._lines = {0: list(lines), 1: list(others)}
        self.install(1, "load1-0", 2)
        found = parse_found(json.dumps(read.run(self.job)))
        return consult_transactions(ledger, found, has_one_order=True, cut_ms=None)


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    return Roots(tmp_path, monkeypatch)


def ledger_of(*events: tuple[str, int, str]) -> Ledger:
    """Words, transactions and packages, beginning with what the other writer finished."""
    every = [("begin", 2, "load1-0"), ("done", 2, "load1-0"), *events]
    return Ledger(
        events=tuple(
            begun(
                10.0 * place, seq, OperationKind.TRANSACTION, writer=int(package[4]), blocks=(),
                what={"package": package, "sizes": SIZES},
            )
            if word == "begin"
            else Done(t_ms=10.0 * place, seq=seq)
            for place, (word, seq, package) in enumerate(every)
        )
    )  # fmt: skip


P, Q = "load0-1", "load0-2"
INSTALLED = (("begin", 3, P), ("done", 3, P), ("begin", 5, P), ("done", 5, P))
UPGRADING = ledger_of(*INSTALLED, ("begin", 9, P))
FINISHED = ledger_of(*INSTALLED, ("begin", 9, Q))
"""The package of before is installed; something else is under way."""


@pytest.mark.parametrize(
    "left",
    [
        line(P, 5, "half-configured", [3]),
        line(P, 5, "unpacked", [3]),
        line(P, 5, "half-installed", [3]),
        line(P, 9, "unpacked", [3, 5]),
        line(P, 9, "half-configured", [3, 5]),
    ],
)
def test_an_upgrade_that_was_under_way_loses_nothing(roots: Roots, left: str) -> None:
    roots.audited = f"The following packages are in a mess:\n {P}   words\n"
    findings = roots.judged(UPGRADING, left)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())


def test_a_first_installation_that_was_under_way_has_no_description_yet(roots: Roots) -> None:
    roots.install(0, P, 5)
    whole = line(P, 5, "installed", [3])
    left = line(Q, 9, "half-installed", None)
    findings = roots.judged(FINISHED, whole, left)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())
    without_the_others = roots.judged(FINISHED, whole, left, others=())
    assert (without_the_others.verdict, without_the_others.lost) == (Verdict.CORRUPTED, 1)


@pytest.mark.parametrize(
    ("left", "verdict"),
    [
        (line(P, 5, "half-installed", [3]), Verdict.CORRUPTED),
        (line(P, 5, "half-installed", None), Verdict.CORRUPTED),
        (line(P, 5, "config-files", [3]), Verdict.CORRUPTED),
        (line(P, 5, "unpacked", [3]), Verdict.ROLLED_BACK),
        (line(P, 3, "half-installed", []), Verdict.ROLLED_BACK),
        (line(P, 3, "installed", []), Verdict.ROLLED_BACK),
        (line(P, 5, "installed", None), Verdict.UNREPAIRABLE),
        (line(P, 5, "unpacked", None), Verdict.UNREPAIRABLE),
    ],
)
def test_a_package_without_a_running_transaction_is_installed(
    roots: Roots, left: str, verdict: Verdict
) -> None:
    roots.install(0, P, int(left.split("\t")[1]))
    findings = roots.judged(FINISHED, left)
    assert findings.verdict is verdict
    assert findings.lost >= 1
    assert findings.reasons


def test_an_installed_package_that_is_gone_is_lost(roots: Roots) -> None:
    findings = roots.judged(FINISHED)
    assert findings.lost == 2
    assert {"transaction 3 is gone", "transaction 5 is gone"} <= set(findings.reasons)


def test_a_package_amid_its_first_installation_was_never_installed(roots: Roots) -> None:
    """As if the upgrade that is under way had found nothing there."""
    findings = roots.judged(UPGRADING, line(P, 9, "half-installed", None))
    assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, 2)


def test_a_version_that_was_never_installed_is_not_half_there(roots: Roots) -> None:
    findings = roots.judged(UPGRADING, line(P, 11, "unpacked", [3, 5]))
    assert findings.verdict is Verdict.CORRUPTED
    assert findings.foreign == 1


def test_an_installed_package_has_its_own_files(roots: Roots) -> None:
    whole = line(P, 5, "installed", [3])
    folder = roots.install(0, P, 5)
    assert roots.judged(UPGRADING, whole).verdict is Verdict.INTACT
    (folder / "f1").write_bytes(payload_of(TRIAL, 3, 1, SIZES[1]))
    findings = roots.judged(UPGRADING, whole)
    assert (findings.verdict, findings.torn) == (Verdict.CORRUPTED, 1)
    roots.install(0, P, 5)
    roots.audited = f"The following packages are in a mess:\n {P}   words\n"
    assert roots.judged(UPGRADING, whole).verdict is Verdict.CORRUPTED
