"""The checker of the cut and of the outage after it."""

from __future__ import annotations

from torture.facts.evidence.folder import CUT, Evidence
from torture.oracles.verdict.nas_log import read_nas_lines
from torture.oracles.verdict.terms import Terms
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.checkers.checker import Earlier, Layer, LayerFinding

_PANICS_MAX = 3


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
            *read_nas_lines(list(outage.kernel)).panics[:_PANICS_MAX],
        ),
        unknown=unknown,
    )
