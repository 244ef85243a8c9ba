"""The evidence that a run keeps, and the folder that shows one loss again on any machine."""

from __future__ import annotations

import os
import shutil
import zipfile
from enum import StrEnum
from pathlib import Path

from torture.facts.axes.fate import Fate
from torture.facts.evidence.folder import CHECK_STATE, CUT_STATE, RECORDINGS, SECOND_CUT_STATE
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.events import (
    DATA,
    LOG,
    RECORD_BYTES,
    WITH_PAYLOAD,
    ViewSource,
    load_recording,
)
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.run_document import RunLayout
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.records.scoring.explanation import outcome_in_full
from torture.records.tasks.protocol import repeats
from torture.trials.trial.shared.resident import pack, unpack_recordings


class EvidencePolicy(StrEnum):
    """The trials whose evidence folders stay."""

    BAD = "bad"
    """Trials worse than guaranteed, inconclusive trials, and any other trial with a loss."""
    ALL = "all"
    NONE = "none"

    def keeps(self, record: TrialRecord) -> bool:
        """Whether the evidence of this trial stays."""
        return self is EvidencePolicy.ALL or (self is EvidencePolicy.BAD and _is_bad(record))


def _is_bad(record: TrialRecord) -> bool:
    return (
        record.verdict is Verdict.INCONCLUSIVE
        or record.verdict.is_loss
        or bool(record.absence.acknowledged_in_outage)
        or record.breaks(Guarantee(record.guarantee))
    )


KEPT_MAX = 20
"""The reproducers of one run: further losses are in its records."""
README = "README.md"
_EVENTS_AFTER = 500
"""So many events after its cut stay with a recording, for the tasks that `tools/replay` takes."""
_STATES = (CUT_STATE, SECOND_CUT_STATE, CHECK_STATE)


def keep_reproducer(run: RunLayout, record: TrialRecord) -> Path | None:
    """Make the reproducer of a trial in the run's folder; None without a recording, or with enough.

    Its evidence is linked, and its recordings are those that the recovered state needs.
    """
    evidence = run.evidence_of(record.trial)
    made = run.reproducers / record.trial
    if not (evidence / RECORDINGS).exists() or made.exists():
        return None
    if run.reproducers.exists() and len(list(run.reproducers.iterdir())) >= KEPT_MAX:
        return None
    partial = made.with_name(f".{record.trial}")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _make(partial, run, record)
        partial.rename(made)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return made


def _make(folder: Path, run: RunLayout, record: TrialRecord) -> None:
    layout, evidence = RunLayout(folder=folder), run.evidence_of(record.trial)
    own = layout.evidence_of(record.trial)
    own.mkdir(parents=True)
    for file in evidence.iterdir():
        if file.is_file() and file.name != RECORDINGS:
            os.link(file, own / file.name)
    lives_on = record.axes.get("fate") == Fate.NAS_ONLY
    _trim(evidence, own, states=_STATES if lives_on else (CUT_STATE,))
    if run.run_file.exists():
        shutil.copy(run.run_file, layout.run_file)
    append_record(layout.trials_file, record)
    (folder / README).write_text(_readme(record, own.relative_to(folder)))


def _trim(evidence: Path, into: Path, *, states: tuple[str, ...]) -> None:
    """Keep these crash states, the parts of the recordings below them, and nothing else."""
    unpacked = into.resolve() / "unpacked"
    unpack_recordings(evidence, unpacked)
    needed: set[Path] = set()
    last_cuts: dict[Path, int] = {}
    views = [unpacked / name for name in states if (unpacked / name).exists()]
    while views:
        view = views.pop()
        state = read_crash_state(view)
        recording = load_recording(state.recording)
        last_cuts[recording.folder] = max(state.cut, last_cuts.get(recording.folder, 0))
        needed |= {view, *recording.folder.iterdir()}
        sources = [disk.source for disk in recording.disks]
        views += [
            view
            for source in sources
            if isinstance(source, ViewSource)
            if (view := source.view.resolve()) not in needed
        ]
    for folder, cut in last_cuts.items():
        _shorten(folder, last=cut + _EVENTS_AFTER)
    with zipfile.ZipFile(into / RECORDINGS, "w", zipfile.ZIP_DEFLATED) as archive:
        pack(archive, needed, below=unpacked)
    shutil.rmtree(unpacked)


def _shorten(folder: Path, *, last: int) -> None:
    """End a recording at this event: no state of a cut before depends on the rest."""
    events = load_recording(folder).events[: last + 1]
    ends = (event.reference + event.length for event in events if event.kind in WITH_PAYLOAD)
    os.truncate(folder / LOG, len(events) * RECORD_BYTES)
    os.truncate(folder / DATA, max(ends, default=0))


def _readme(record: TrialRecord, evidence: Path) -> str:
    repeated = "".join(
        f"tools/replay {own.option} {_EVENTS_AFTER} DIR    # {own.words}\n" for own in repeats()
    )
    lines = "\n".join(f"- {line}" for line in outcome_in_full(record))
    return f"""# {record.cell}: {record.verdict}

OpenZFS {record.zfs} lost something that was acknowledged, or broke a promise of its disks.
The trial's seed is {record.seed}.
`{evidence}/{RECORDINGS}` holds every byte that the NAS's disks had after the cut.

{lines}

In a checkout of the suite, with this folder as DIR:

```
tools/replay DIR                 # a NAS recovers these disks again, a client checks them
tools/replay --zfs VERSION DIR   # another version of OpenZFS recovers them
{repeated}tools/replay --hold DIR          # or the NAS and a client stay up for your commands
tools/explain DIR/trials/*       # why it has its verdict
tools/view DIR/trials/*          # the disks themselves, over NBD
```
"""
