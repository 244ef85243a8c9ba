"""A cut, or a replay of one, and a walk over the crash states of its recording."""

from __future__ import annotations

from pathlib import Path

from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import CUT_STATE
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.events import load_recording
from torture.facts.zfs.versions import ZfsVersion
from torture.features.walk.engines.recovery_programs import ensure_recovery_programs
from torture.features.walk.tasks import Walk, WalkAround
from torture.features.walk.walk import walk
from torture.features.walk.walk_values import Around, LostState
from torture.machines.images.source_trees import SourceTree
from torture.trials.trial.courses.cut_course import cut_and_recover
from torture.trials.trial.courses.protocol import Course, Progress
from torture.trials.trial.courses.replay_course import recover_again
from torture.trials.trial.cut import KeptCut, keep_earlier_cut
from torture.trials.trial.shared.machines import Machines, PowerCut, Trial
from torture.trials.trial.shared.resident import EvidenceWriter


def _cut_and_walk(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    def look(cut: PowerCut, kept: KeptCut) -> KeptCut:
        """The first state with a loss is recovered instead of the drawn one."""
        lost = _walked(trial, machines, evidence, cut)
        return kept if lost is None else keep_earlier_cut(evidence, kept, lost.cut, lost.state)

    cut_and_recover(trial, machines, evidence, look)


def _walk_around(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    def look(recordings: Path, cut: CutDocument) -> None:
        """The recorded cut may be one amid a recovery."""
        state = read_crash_state(recordings / CUT_STATE)
        power_cut = PowerCut(
            recording=load_recording(recordings / cut.view["recording"]),
            seq=state.cut if cut.log_seq is None else cut.log_seq,
            t_ms=cut.t_ms or 0.0,
            took_ms=cut.took_ms or 0.0,
        )
        around = Around(state=state, acknowledged=cut.confirmed.event or power_cut.seq)
        _walked(trial, machines, evidence, power_cut, around=around)

    recover_again(trial, machines, evidence, look)


def _walked(
    trial: Trial,
    machines: Machines,
    evidence: EvidenceWriter,
    cut: PowerCut,
    *,
    around: Around | None = None,
) -> LostState | None:
    order = trial.spec.task
    assert isinstance(order, Walk), "the course is found by the task"
    with evidence.stage("walk"):
        return walk(trial, order, machines, evidence, cut, around=around)


def _prepare(zfs: ZfsVersion, tree: SourceTree | None, progress: Progress) -> None:
    ensure_recovery_programs(zfs, progress=progress, tree=tree)


COURSES = (
    Course(task=Walk, stages=_cut_and_walk, prepare=_prepare),
    Course(task=WalkAround, stages=_walk_around, prepare=_prepare, makes_recording=False),
)
