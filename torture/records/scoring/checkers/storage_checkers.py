"""The checkers of the pool, of the client's filesystem, and of the outage after the cut.

That of the pool also looks at the disk through which the client read the pool's volume.
"""

from __future__ import annotations

from torture.choices.filesystems.protocol import Filesystem
from torture.facts.evidence.folder import CUT, Evidence, Step
from torture.oracles.verdict.boot_verdict import with_boot
from torture.oracles.verdict.filesystem_verdict import judge_filesystem
from torture.oracles.verdict.mount import read_kernel_log, read_nas_log
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding

_FAILED_DISK = "the checker's disk failed although the pool is whole"
_PANICS_MAX = 3
_CHECKS = (Step.FS_CHECK_AFTER_REPAIR, Step.FS_CHECK)
_LOGS = (Step.CHECK_DMESG, Step.BOOT, Step.BOOT_DMESG, Step.BOOT_AFTER_REPAIR)


def check_pool(evidence: Evidence, terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """The pool's verdict; a disk that fails on a pool without errors is the machinery's fault."""
    pool = judge_pool(evidence, is_replay=terms.is_replay)
    garbled = evidence.garbled_tools
    unknown = (*((f"{garbled} lines of tools are garbled",) if garbled else ()), *pool.unknown)
    is_explained = pool.verdict is not None and (
        pool.verdict.is_corruption or (pool.verdict.is_damage and not unknown)
    )
    distrusts = _has_failed_disk(evidence) and not is_explained
    if pool.verdict is Verdict.INTACT and distrusts and not unknown:
        unknown = (_FAILED_DISK,)
    return LayerFinding(
        layer=Layer.POOL,
        verdict=pool.verdict,
        reasons=pool.reasons,
        unknown=unknown,
        summary=pool.summary,
        distrusts_disk=distrusts,
    )


def _has_failed_disk(evidence: Evidence) -> bool:
    """Whether it failed while something needed it: after the last unmount only the checker does."""
    outputs = (evidence.output(step) for step in _LOGS)
    logs = [read_kernel_log(output) for output in outputs if output is not None]
    checks = (evidence.output(step) for step in _CHECKS)
    last_check = next((check for check in checks if check is not None), None)
    has_vouched = last_check is not None and last_check.exit_code == 0
    return any(log.disk_failed or (log.disk_failed_later and not has_vouched) for log in logs)


def check_filesystem(
    evidence: Evidence, _terms: Terms, earlier: Earlier, /, *, filesystem: Filesystem, is_root: bool
) -> LayerFinding:
    """The filesystem's verdict; none on a lost pool, and none where its disk may have failed."""
    pool = earlier[Layer.POOL]
    if pool.verdict is Verdict.POOL_LOST or pool.distrusts_disk or not filesystem.has_files:
        return LayerFinding(layer=Layer.FILESYSTEM)
    found = judge_filesystem(evidence, filesystem.read_check)
    if is_root:
        found = with_boot(evidence, found)
    return LayerFinding(
        layer=Layer.FILESYSTEM,
        verdict=found.verdict,
        reasons=found.reasons,
        unknown=found.unknown,
        summary=found.summary,
        is_repaired=found.repaired,
    )


def check_outage(evidence: Evidence, _terms: Terms, _earlier: Earlier, /) -> LayerFinding:
    """Unavailable where a machine did not come back, with the panics of its kernel."""
    unknown = () if evidence.is_cut_read else (f"{CUT} is missing or garbled",)
    outage = evidence.outage
    if outage is None:
        return LayerFinding(layer=Layer.OUTAGE, unknown=unknown)
    return LayerFinding(
        layer=Layer.OUTAGE,
        verdict=Verdict.UNAVAILABLE,
        reasons=(
            f"{outage.machine}, {outage.stage}: {outage.what}",
            *read_nas_log(list(outage.kernel)).panics[:_PANICS_MAX],
        ),
        unknown=unknown,
    )
