"""The checker of the pool, and of the disk through which the client read the pool's volume."""

from __future__ import annotations

from torture.facts.evidence.folder import Evidence, Step
from torture.oracles.verdict.mount import read_kernel_log
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding, answer_of

_FAILED_DISK = "the checker's disk failed although the pool is whole"
_LOGS = (Step.CHECK_DMESG, Step.BOOT, Step.BOOT_DMESG, Step.BOOT_AFTER_REPAIR)


def check_pool(evidence: Evidence, terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """The pool's verdict; a disk that fails on a pool without errors is the machinery's fault."""
    if evidence.garbled_tools:
        why = f"{evidence.garbled_tools} lines of tools are garbled"
        return LayerFinding(layer=Layer.POOL, unknown=(why,), distrusts_disk=True)
    pool, unknown = answer_of(lambda: judge_pool(evidence, is_replay=terms.is_replay))
    has_failed = _has_failed_disk(evidence)
    if pool is None:
        return LayerFinding(layer=Layer.POOL, unknown=unknown, distrusts_disk=has_failed)
    is_odd = has_failed and pool.verdict is Verdict.INTACT
    return LayerFinding(
        layer=Layer.POOL,
        verdict=pool.verdict,
        reasons=pool.reasons,
        unknown=(_FAILED_DISK,) if is_odd else (),
        summary=pool.summary,
        distrusts_disk=is_odd,
    )


def _has_failed_disk(evidence: Evidence) -> bool:
    logs = (evidence.output(step) for step in _LOGS)
    return any(read_kernel_log(log).disk_failed for log in logs if log is not None)
