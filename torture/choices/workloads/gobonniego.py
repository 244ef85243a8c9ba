"""gobonniego, the user's own (`--gobonniego PATH`, or on PATH), beside the ledger load.

It syncs nothing, so no promise covers its data. It keeps a filesystem busy with write-back, while
the ledger beside it holds the acknowledgements. An error that it finds is evidence, and so is a
file of its own that cannot be read after the cut.

It runs again and again. The first run comes before the ledger begins. So each trial has its
figures, even where the client dies with all its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._files_beside import Beside, LoadBeside
from torture.choices.workloads.protocol import Brought, Command, Place, Surroundings, Workload
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import Completed, Evidence, Step
from torture.oracles.verdict.applications.gobonniego_output import (
    Ending,
    Run,
    figures_of,
    parse_end,
    parse_runs,
)
from torture.oracles.verdict.guarantee import Terms, UnreadableError, Verdict
from torture.oracles.verdict.judgement import Findings

NAME = "gobonniego"
PROGRAM = "/run/gobonniego"
_STOP = "/run/gobonniego.stop"
_ARGUMENTS = ("-json", "-size", "0.03", "-threads", "2", "-runs", "1", "-iops-duration", "0.5")
"""30 MiB: its spot checks come every 8 MiB, and the client has half a GiB of memory."""
_FIRST_DEADLINE_S = 180
_AGAIN = """
while [ ! -e "$1" ]; do
    "$2" -dir "$3" %s 2>/run/gobonniego.stderr || { code=$?; cat /run/gobonniego.stderr >&2; exit $code; }
done
""" % " ".join(_ARGUMENTS)  # noqa: UP031 - the shell's braces stay
_READ = """
if ! cd "$1" 2>/dev/null; then
    # it makes the folder and removes it: only what is there has to be entered
    above=$(ls -a "$(dirname "$1")") || exit
    if echo "$above" | grep -Fxq "$(basename "$1")"; then echo "failed $1: it cannot be entered"; fi
    echo complete
    exit 0
fi
files=$(mktemp) && said=$(mktemp) || exit
find . -type f > "$files" 2> "$said"
sed 's/^/failed /' "$said"
while read -r file; do
    if said=$(cat "$file" 2>&1 >/dev/null); then echo "read $file"; else echo "failed $said"; fi
done < "$files"
echo complete
"""
"""Read the files that it left to their end: a filesystem's checksums cover unsynced data, too."""


class GobonniegoLoad(LoadBeside):
    """It runs in one client, again and again, until `stop` is there or it finds something wrong."""

    def __init__(self, *, surroundings: Surroundings, directory: str) -> None:
        argv = ("sh", "-c", _AGAIN, NAME, _STOP, PROGRAM, directory)
        super().__init__(name=NAME, surroundings=surroundings, argv=argv, stop=_STOP)
        self._directory = directory

    def start(self, program: bytes, brought: Brought) -> None:
        """Bring it in, run it once, then keep it running; raises `HarnessError` if it cannot run."""
        self._guest.put_program(PROGRAM, program)
        argv = (PROGRAM, "-dir", self._directory, *_ARGUMENTS)
        first = self._guest.finish(self._guest.start(argv), argv, deadline_s=_FIRST_DEADLINE_S)
        self._keep(first)
        try:
            ran = first.exit_code == 0 and parse_runs(first.stdout) != ()
        except UnreadableError as error:
            raise HarnessError(
                f"{brought.path}: {error}", hint=f"{brought.path} -version"
            ) from error
        if not ran:
            raise HarnessError(
                f"{brought.path} does not run in the client: {first.exit_code}: {first.stderr}",
                hint=f"{brought.path} {' '.join(_ARGUMENTS)}; it has to be linked statically",
            )
        self.begin()

    def _is_evidence(self, done: Completed) -> bool:
        try:
            return parse_end(done.exit_code, done.stderr).ending is Ending.MISMATCHED
        except UnreadableError:
            return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Gobonniego(Beside):
    """A benchmark by other authors, as a load."""

    name: str = NAME
    prints_before: int = 1

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The program and its place; raises `HarnessError` when the user has brought no program."""
        program = place.brought_for(self.name, option="--gobonniego PATH, or have it on PATH")
        return {
            "directory": f"{place.directory}/bench",
            "program": program.path,
            "sha256": program.sha256,
        }

    def prepare(self, job: dict[str, Any]) -> str:
        """Make a directory of its own."""
        return f"mkdir {job['directory']}"

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> GobonniegoLoad:
        """Bring the program in; return once it has run to its end and runs again."""
        brought = Brought(load=self.name, path=job["program"], sha256=job["sha256"])
        load = GobonniegoLoad(surroundings=surroundings, directory=job["directory"])
        load.start(surroundings.content_of(brought), brought)
        return load

    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that reads all files that it left."""
        return ("sh", "-c", _READ, "read-back", f"{job['directory']}/{NAME}")

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """The errors that it found, and its unreadable files; raises `UnreadableError`."""
        document = self.readback_after_repair if after_repair else self.readback
        text = evidence.readbacks.get(document, "")
        lines = text.splitlines()
        if not lines or lines[-1] != "complete":
            raise UnreadableError(f"there is no complete read-back: {document}")
        reasons = [
            f"a file of gobonniego cannot be read: {line.removeprefix('failed ')}"
            for line in lines
            if line.startswith("failed ")
        ]
        runs: list[Run] = []
        said: list[str] = []
        for output in (tool for tool in evidence.tools if tool.step == Step.CLIENT_LOAD):
            try:
                runs += parse_runs(output.stdout)
            except UnreadableError as error:  # it costs the figures, and is no evidence about data
                said.append(str(error))
            end = parse_end(output.exit_code, output.stderr)
            if end.ending is Ending.MISMATCHED:
                reasons.append(f"gobonniego read other data than it had written: {end.words}")
            elif end.words:
                said.append(f"gobonniego ended: {end.words}")
        return Findings(
            acknowledged=0,
            lost=0,
            verdict=Verdict.CORRUPTED if reasons else Verdict.INTACT,
            reasons=(*reasons, *said),
            figures=figures_of(runs),
        )


CHOICE: Choice[Workload] = Choice(
    name=NAME, value=Gobonniego(), words="your gobonniego, beside the ledger"
)
