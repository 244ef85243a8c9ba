"""The image of a hypervisor: its own verdict, from `qemu-img` and from its opening.

`qemu-img check` exits with 0 for no error, 2 for corruption, 3 for leaked clusters alone, and 1 where it
could not end (qemu-img(1)). A leaked cluster costs space, and is no damage. Its JSON is QEMU's type
`ImageCheck`, and that of `qemu-img info` is `ImageInfo` (qapi/block-core.json).
"""

from __future__ import annotations

from collections.abc import Iterator

from torture.facts.evidence.documents import json_object
from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.oracles.verdict.filesystem_verdict import needed_output
from torture.oracles.verdict.fsck import exit_code_of, first_whole_line, unreadable
from torture.oracles.verdict.guarantee import DidNotWork, Verdict
from torture.oracles.verdict.judgement import PartFinding, all_known

_CORRUPT, _LEAKED = 2, 3
_OF_IMAGE = (": Failed to blk_new_open '", ": --blockdev ")
_LOCKED = "Failed to get "
"""QEMU `qemu-nbd.c`, `storage-daemon/qemu-storage-daemon.c` and `block/file-posix.c`,
`raw_check_lock_bytes`."""


def judge_image(evidence: Evidence) -> PartFinding:
    """Intact: it opens without errors. Repaired: it opens, and has errors. Unrepairable: it does not."""
    return all_known(_opened(evidence), _looked_at(evidence))


def _opened(evidence: Evidence) -> Iterator[PartFinding]:
    output = needed_output(evidence, Step.IMAGE_OPEN)
    if exit_code_of(output) == 0:
        yield PartFinding(verdict=Verdict.INTACT)
        return
    refusal = first_whole_line(output.stderr, "qemu-")
    if refusal is None or not any(words in refusal for words in _OF_IMAGE):
        raise unreadable(output, "no word of QEMU says why the image was not opened")
    if _LOCKED in refusal:
        raise DidNotWork(f"{output.step}: another process holds the image: {refusal}")
    yield PartFinding(
        verdict=Verdict.UNREPAIRABLE,
        summary="image does not open",
        reasons=(f"{Step.IMAGE_OPEN}: {refusal}",),
    )


def _looked_at(evidence: Evidence) -> Iterator[PartFinding]:
    output = needed_output(evidence, Step.IMAGE_CHECK)
    code = exit_code_of(output)
    opened = evidence.output(Step.IMAGE_OPEN)
    if code == 1 and opened is not None and opened.exit_code:
        return  # neither tool gets in, and the other one says why
    if code not in (0, _CORRUPT, _LEAKED):
        raise DidNotWork(f"{output.step}: {output.name} failed (exit {code})")
    found = _counts_in(output)
    errors = found["corruptions"] + found["check-errors"]
    if bool(errors) is not (code == _CORRUPT):
        raise unreadable(output, f"it exits with {code}, and counts {errors} errors")
    if errors:
        why = f"{Step.IMAGE_CHECK}: {errors} errors in the image's metadata"
        yield PartFinding(verdict=Verdict.REPAIRED, summary="image has errors", reasons=(why,))
        return
    leaks = found["leaks"]
    yield PartFinding(verdict=Verdict.INTACT, summary=f"{leaks} leaked clusters" if leaks else "")


def _counts_in(output: ToolOutput) -> dict[str, int]:
    """QEMU leaves out counts that are zero."""
    printed = json_object(output.stdout.encode(errors="replace"))
    if printed is None or not {"format", "filename"} <= printed.keys():
        raise unreadable(output, "it is not the JSON of qemu-img")
    counts = {name: printed.get(name, 0) for name in ("corruptions", "check-errors", "leaks")}
    if not all(isinstance(count, int) and count >= 0 for count in counts.values()):
        raise unreadable(output, "a count is no number")
    return counts
