"""A zvol: a block device of the pool (zfsprops(7), zvol in zfs-create(8))."""

from __future__ import annotations

from torture.choices.volumes import VOLUME

DEVICE = f"/dev/zvol/{VOLUME}"
_TRACING = "/sys/kernel/tracing"
_QUEUED = f"{_TRACING}/events/block/block_bio_queue"


def begin_flush_trace_script() -> str:
    """Shell: let the kernel trace the requests of its block devices (tracefs, events/block)."""
    return f"""set -eu
mountpoint -q {_TRACING} || mount -t tracefs nodev {_TRACING}
echo > {_TRACING}/trace
echo 1 > {_QUEUED}/enable"""


def end_flush_trace_script() -> str:
    """Shell: end the trace, and print how many flushes the zvol received.

    Flags follow the device, e.g. `230,0 FWS 0 + 0`: an F in the first place is a flush before the
    rest (Linux kernel/trace/blktrace.c, `blk_fill_rwbs`).
    """
    return f"""set -eu
echo 0 > {_QUEUED}/enable
numbers=$(tr : , < /sys/block/$(basename $(readlink -f {DEVICE}))/dev)
grep -c "block_bio_queue: $numbers F" {_TRACING}/trace || true"""
