"""A walk in words: its first loss, the fewest dropped writes that cause it, the layer they belong to."""

from __future__ import annotations

from collections.abc import Iterator

from torture.facts.recording.intent_log import Role
from torture.facts.stats.rates import interval_in_words, rate_of
from torture.features.walk.documents import DroppedWrite, SetsTaken, WalkDocument, WalkedLoss
from torture.oracles.verdict.guarantee import Verdict

_WRITES_MAX = 8
_SLOG = "slog"
"""The serials of log devices begin so (`torture.machines.nas.pool`)."""
_LAYERS = {
    Role.ZIL: "the intent log on the pool's disks",
    Role.UBERBLOCK: "the uberblock that ends a transaction group",
    Role.HEARTBEAT: "the heartbeat of the pool's host",
    Role.LABEL: "a label of the pool",
    Role.METADATA: "the metadata of a transaction group",
    Role.DATA: "the data of a transaction group",
}


def walk_in_words(walk: WalkDocument) -> Iterator[str]:
    """The counts, and the first loss."""
    proven = f"{walk.proven} more were proven equal to one of them, " if walk.proven else ""
    yield (
        f"the walk: {walk.recovered} of {walk.distinct} distinct crash states were recovered, "
        f"{proven}{walk.states_lost} lost something"
    )
    if walk.sets.cuts:
        yield f"  {_sets_in_words(walk.sets)}"
    yield from certainty_in_words(walk)
    if walk.broken_off:
        yield f"  it broke off: {walk.broken_off}"
    for loss in walk.losses[:1]:
        yield f"  the first is {loss.verdict}, {_cause(loss)}"
        for write in (loss.dropped or ())[:_WRITES_MAX]:
            kept = f", but for its first {write.sectors_kept} sectors" if write.sectors_kept else ""
            yield (
                f"    {write.disk}: {write.length_bytes} bytes at {write.offset_bytes}, "
                f"{layer_of(write)}{kept}"
            )


def _sets_in_words(sets: SetsTaken) -> str:
    """The cuts and the sets of surviving writes that the states are of."""
    whole = sets.cuts_taken - sets.cuts_drawn
    drawn = (
        f"; of {sets.cuts_drawn:,} others {sets.sets_drawn:,} of some 2^{sets.sets_log2:.0f} sets"
    )
    return (
        f"they are of {sets.cuts_taken:,} of {sets.cuts:,} cuts: of {whole:,} each set of surviving "
        f"writes{drawn if sets.cuts_drawn else ''}"
    )


def certainty_in_words(walk: WalkDocument) -> Iterator[str]:
    """The checks of the library, and the share of wrong states that they would have shown."""
    if walk.by_library:
        recovered = (
            f"{walk.checked} of the {walk.by_library} states intact by OpenZFS's library alone"
        )
        by = "by the kernel's ZFS, too"
        yield _checked(
            f"{recovered} were drawn and recovered {by}", walk.checked_differing, walk.checked
        )
    proofs = walk.proven + walk.proofs_repeated
    if proofs:
        recovered = (
            f"{walk.proofs_repeated} of the {proofs} proven states were recovered all the same"
        )
        yield _checked(recovered, walk.proofs_differing, walk.proofs_repeated)


def _checked(recovered: str, differing: int, checked: int) -> str:
    """With the exact interval; a draw without repetition makes it wider than it must be."""
    if not checked:
        return f"  {recovered}: any share may be wrong"
    share = interval_in_words(rate_of(differing, checked))
    return f"  {recovered}: {differing} ended otherwise [{share}]"


def _cause(loss: WalkedLoss) -> str:
    lost = f"{loss.lost} of {loss.acknowledged} acknowledged operations"
    if loss.dropped is None:
        return f"{lost} lost; the fewest dropped writes were not sought"
    if not loss.dropped and loss.verdict == Verdict.POOL_LOST:
        return "although each write before the cut survived"
    if not loss.dropped:
        return f"{lost} lost without any dropped write: they were only in the memory of the NAS"
    layers = ", ".join(sorted({layer_of(write) for write in loss.dropped}))
    return f"{lost} lost by dropping {len(loss.dropped)} of {loss.unflushed} unflushed writes ({layers})"


def layer_of(write: DroppedWrite) -> str:
    """The part of the pool that a write belongs to."""
    if write.role == Role.ZIL and write.disk.startswith(_SLOG):
        return "the intent log on the SLOG"
    return next((words for role, words in _LAYERS.items() if role == write.role), write.role)
