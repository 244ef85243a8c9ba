"""Notes for the report's reader: versions, accelerators, odd trials, cells that lose too little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import duckdb

from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Origin
from torture.records.scoring.detection import said_of
from torture.report.reading.text import printable, shortened


def notes_on_manifests(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a conclusive live trial has no manifest."""
    row = sql.execute(
        "SELECT count(*) FILTER (NOT has_manifest), count(*) FROM live WHERE badness >= 0"
    ).fetchone()
    without, of = row or (0, 0)
    if not without:
        return ()
    were = "was" if without == 1 else "were"
    return (
        f"{without:,} of {of:,} conclusive trials {were} judged without a manifest of the evidence: "
        "missing evidence goes undetected there",
    )


def notes_on_confirmations(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a live trial was cut at the moment of a finding."""
    row = sql.execute("SELECT count(*) FROM live WHERE is_confirmation").fetchone()
    count = row[0] if row else 0
    if not count:
        return ()
    were = "1 trial was" if count == 1 else f"{count:,} trials were"
    return (
        f"{were} cut at the moment of a finding instead of the drawn one: not counted in rates, but "
        "among the broken guarantees",
    )


def notes_on_older_rules(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if intact trials of safe cells would need their evidence to be judged again.

    Their records do not say how many writers failed for good, which is damage now.
    """
    rows = sql.execute(
        "SELECT cell, count(*) FROM live WHERE verdict = ? AND guarantee = ? AND writers = 0 "
        "AND contains(reasons, 'failed in the client') GROUP BY cell ORDER BY cell",
        [Verdict.INTACT, Guarantee.SAFE],
    ).fetchall()
    if not rows:
        return ()
    of = ", ".join(f"{trials:,} of {printable(cell)}" for cell, trials in rows)
    return (
        f"operations failed in the client of {sum(trials for _, trials in rows):,} intact trials: {of}. "
        "An older judge saw no damage in that; by today's rule a writer that fails for good breaks a "
        "safe guarantee",
    )


_EXAMPLES_MAX = 3
_REPEATS = (Origin.REPLAY, Origin.RERUN)


def notes_on_repeats(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if a trial was repeated: how many repeats ended like the original, if that is here."""
    rows = sql.execute(
        "SELECT again.trial, again.origin, again.verdict, first.verdict FROM counted AS again "
        "LEFT JOIN live AS first ON first.trial = again.repeats WHERE list_contains(?, again.origin) "
        # a trial may be live on several versions of ZFS and Linux: prefer those of the repeat
        "QUALIFY row_number() OVER (PARTITION BY again.place ORDER BY first.zfs = again.zfs DESC, "
        "(first.linux_nas, first.linux_client) = (again.linux_nas, again.linux_client) DESC) = 1 "
        "ORDER BY again.trial, again.origin_run",
        [[origin.value for origin in _REPEATS]],
    ).fetchall()
    if not rows:
        return ()
    origins = Counter(origin for _, origin, _, _ in rows)
    kinds = " and ".join(
        f"{origins[origin]:,} {origin}{'s' if origins[origin] > 1 else ''}"
        for origin in _REPEATS
        if origins[origin]
    )
    others = [row for row in rows if row[3] is not None and row[2] != row[3]]
    lost = sum(row[3] is None for row in rows)
    parts = [f"{len(rows) - len(others) - lost:,} ended as the trial that was repeated"]
    if others:
        examples = [f"{printable(trial)}: {now}, was {was}" for trial, _, now, was in others]
        rest = len(others) - _EXAMPLES_MAX
        shown = "; ".join(examples[:_EXAMPLES_MAX]) + (f"; and {rest:,} more" if rest > 0 else "")
        parts.append(f"{len(others):,} otherwise ({shown})")
    if lost:
        parts.append(f"of {lost:,} that trial is not here")
    return (f"{kinds} left out of all rates and cases: {', '.join(parts)}",)


def notes_on_lower_bounds(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence for each cell that must lose, and loses less than theory says."""
    rows = sql.execute(
        "SELECT cell, count(*), count(*) FILTER (is_loss) FROM live WHERE is_at_risk "
        "GROUP BY cell ORDER BY cell"
    ).fetchall()
    said = (said_of(printable(cell), at_risk=cuts, lost=lost) for cell, cuts, lost in rows)
    return tuple(filter(None, said))


_ZFS_NOT_SAID = "an unknown version"


def zfs_versions(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The number of live trials of each version, the most frequent first."""
    rows = sql.execute(
        "SELECT zfs, count(*) FROM live GROUP BY zfs ORDER BY count(*) DESC, zfs"
    ).fetchall()
    return {shortened(printable(zfs)) or _ZFS_NOT_SAID: trials for zfs, trials in rows}


def qemus(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The same of the hypervisor's QEMU, in trials that have one."""
    rows = sql.execute(
        "SELECT qemu, count(*) FROM (SELECT advertised::JSON ->> 'hypervisor_qemu' AS qemu FROM live) "
        "WHERE qemu <> '' GROUP BY qemu ORDER BY count(*) DESC, qemu"
    ).fetchall()
    return {shortened(printable(qemu)): trials for qemu, trials in rows}


def notes_on_versions(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if one rate counts trials of several versions."""
    return note_on_several("OpenZFS", zfs_versions(sql))


def note_on_several(software: str, trials_of: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence, if there are trials of several versions of this software."""
    if len(trials_of) < 2:
        return ()
    counts = ", ".join(f"{trials:,} of {version}" for version, trials in trials_of.items())
    return (
        f"several versions of {software} count together: {counts}; to separate them, report on each "
        "by itself, or --compare them",
    )


def notes_on_states(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if one rate counts trials that several states of the suite have made."""
    rows = sql.execute(
        "SELECT engine_state, count(*) FROM judged GROUP BY ALL ORDER BY count(*) DESC, engine_state"
    ).fetchall()
    trials_of = {
        shortened(printable(state)) or "an unknown state": trials for state, trials in rows
    }
    if len(trials_of) < 2:
        return ()
    counts = ", ".join(f"{trials:,} of {state}" for state, trials in trials_of.items())
    return (f"trials of {len(trials_of)} states of the suite count together: {counts}",)


_LINUX_NOT_SAID = "an unknown kernel"


def kernels(sql: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The number of live trials of each pair of kernels, in words, the most frequent first.

    Machines with the same kernel are one word; others name the NAS's first.
    """
    rows = sql.execute(
        "SELECT linux_nas, linux_client, count(*) FROM live GROUP BY linux_nas, linux_client "
        "ORDER BY count(*) DESC, linux_nas, linux_client"
    ).fetchall()
    return {_in_words(nas, client): trials for nas, client, trials in rows}


def notes_on_kernels(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence, if one rate counts trials of several kernels."""
    return note_on_several("Linux", kernels(sql))


def _in_words(nas: str, client: str) -> str:
    if nas == client:
        return _release(nas)
    return f"{_release(nas)} in the NAS and {_release(client)} in the client"


def _release(text: str) -> str:
    return shortened(printable(text)) or _LINUX_NOT_SAID


_HINT = "report on the hosts of each by themselves"


def accelerators(sql: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Each known accelerator of live trials to the outcomes of its conclusive ones, in words."""
    rows = sql.execute(
        "SELECT accelerator, count(*) FILTER (badness >= 0 AND is_loss), "
        "count(*) FILTER (badness >= 0) FROM live WHERE accelerator <> '' "
        "GROUP BY accelerator ORDER BY accelerator"
    ).fetchall()
    return {
        shortened(printable(name)): f"a loss in {losses:,} of {trials:,}"
        for name, losses, trials in rows
    }


def notes_on_accelerators(sql: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """A sentence with the outcomes of each, if one rate counts trials of several accelerators."""
    found = accelerators(sql)
    if len(found) < 2:
        return ()
    apart = "; ".join(f"{name}: {outcomes}" for name, outcomes in found.items())
    return (f"trials of KVM and of emulation count together. Apart: {apart}; {_HINT}",)
