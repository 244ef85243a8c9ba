"""The checker of the client's filesystem, and of the boot from it."""

from __future__ import annotations

from torture.choices.filesystems.protocol import Filesystem
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.booted.boot_verdict import with_boot
from torture.oracles.verdict.filesystem_verdict import FilesystemFinding, judge_filesystem
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding, answer_of


def check_filesystem(
    evidence: Evidence, _terms: Terms, earlier: Earlier, /, *, filesystem: Filesystem, is_root: bool
) -> LayerFinding:
    """The filesystem's verdict; none on a lost pool, and none where its disk may have failed."""
    pool = earlier[Layer.POOL]
    if pool.verdict is Verdict.POOL_LOST or pool.distrusts_disk or not filesystem.has_files:
        return LayerFinding(layer=Layer.FILESYSTEM)

    def look() -> FilesystemFinding:
        mounted = judge_filesystem(evidence, filesystem.read_check)
        return with_boot(evidence, mounted) if is_root else mounted

    found, unknown = answer_of(look)
    if found is None:
        return LayerFinding(layer=Layer.FILESYSTEM, unknown=unknown)
    return LayerFinding(
        layer=Layer.FILESYSTEM,
        verdict=found.verdict,
        reasons=found.reasons,
        summary=found.summary,
        is_repaired=found.repaired,
    )
