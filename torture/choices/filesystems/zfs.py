"""ZFS on the client's disk, a pool of its own on that one disk (zpoolconcepts(7), zfsprops(7)).

The NAS's intent log cannot be audited beneath it: both look the same there. Nothing is compressed,
so that a recording shows the load's sectors. The pool is imported by name, forced: an earlier boot
of the client had it last. An import finds the last whole transaction group, and the mount replays its
intent log.

A check is a scrub and the status after it, which also counts the errors that the scrub repaired:
its metadata has two copies. Its closing proofs are a scrub that has finished and no error. `zpool
status -j` -> `FsckResult`. The pool is exported after it, or the next trial's client would still
have it.
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.filesystems.protocol import DEVICE, MOUNT_POINT, Filesystem
from torture.facts.axes.axis import Choice
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import (
    FsckResult,
    exit_code_of,
    first_whole_line,
    has_crashed,
    lines_of,
    refuse_codes_beyond,
    unreadable,
)
from torture.oracles.verdict.pool_tools.zpool import REASONS_OF_POOLS, parse_status

_POOL = "vm"
_IMPORT = 'zpool import -f -N -o cachefile=none -d "$(dirname "$1")"'
_MAKE = f"""set -eu
modprobe zfs
zpool create -f -o cachefile=none -O mountpoint=legacy -O compression=off {_POOL} "$1"
"""
_OF_THE_POOL = "|".join(f'*"{reason}"*' for reason in REASONS_OF_POOLS)
_MOUNT = f"""modprobe zfs || exit 1
if ! zpool list -H -o name {_POOL} >/dev/null 2>&1; then
    if ! said=$({_IMPORT} {_POOL} 2>&1); then
        case $said in
        {_OF_THE_POOL})
            echo "mount: $2: mount failed:" $said >&2
            exit 32 ;;
        esac
        echo "$said" >&2
        exit 1
    fi
fi
exec mount -t zfs {_POOL} "$2"
"""
_SAY = """zpool status "$3" "$2" || code=1
test $code -ne 0 || test "$(zpool status -x "$2")" = "pool '$2' is healthy" || code=3
zpool export "$2"
exit $code
"""
_LOOK = f"""code=0
zpool scrub -w "$2" || code=1
{_SAY}"""
_MEND = f"""code=0
zpool list -H -o name "$2" >/dev/null 2>&1 || {_IMPORT} -F "$2" || exit 1
zpool scrub -w "$2" && zpool clear "$2" && zpool scrub -w "$2" || code=1
{_SAY}"""
_FOUND_CODE = 3
_REFUSED = ("cannot import '", "cannot scrub ", "cannot clear ", "cannot open '")


def parse_zpool_check(output: ToolOutput) -> FsckResult:
    """The findings of a scrub and the status after it; raises `UnreadableError` on ambiguous output."""
    code = exit_code_of(output)
    if has_crashed(code):
        return FsckResult(clean=False, problems=tuple(lines_of(output)), gave_up=True)
    refuse_codes_beyond(output, (0, 1, _FOUND_CODE))
    if code == 1:
        refusals = (first_whole_line(output.stderr, start) for start in _REFUSED)
        refusal = next((line for line in refusals if line is not None), "")
        if not any(reason in refusal for reason in REASONS_OF_POOLS):
            raise unreadable(output, "no known reason of the pool's")
        return FsckResult(clean=False, problems=(refusal,), gave_up=True)
    status = parse_status(replace(output, stderr="", exit_code=0))
    if not status.scrubbed:
        raise unreadable(output, "its scrub did not finish")
    problems: list[str] = []
    if status.data_errors:
        problems.append(f"{_errors(status.data_errors)} in data")
    if status.device_errors:
        problems.append(f"{_errors(status.device_errors)} of its disk")
    problems += [f"not online: {name}" for name in status.unhealthy_devices]
    if bool(problems) is not (code == _FOUND_CODE):
        raise unreadable(output, f"its exit code contradicts its output: {problems[:1]}")
    return FsckResult(clean=status.data_errors == 0, problems=tuple(problems))


def _errors(count: int) -> str:
    return f"{count} error" + ("" if count == 1 else "s")


CHOICE: Choice[Filesystem] = Choice(
    name="zfs",
    value=Filesystem(
        make=("sh", "-c", _MAKE, "make", DEVICE),
        # imports the pool if necessary; a pool that fails to import is a failed mount
        mount=("sh", "-c", _MOUNT, "mount", DEVICE, MOUNT_POINT),
        # some transaction groups later (zpoolprops(7), `autotrim`)
        discarding=("zpool", "set", "autotrim=on", _POOL),
        # no first check: zdb(8) would not replay the log either; no scrub: the check reads all copies
        check=("sh", "-c", _LOOK, "check", DEVICE, _POOL, "-j"),
        # gives up the last transactions where the import fails otherwise (-F)
        repairs=(("sh", "-c", _MEND, "repair", DEVICE, _POOL, "-j"),),
        read_check=parse_zpool_check,
        writes_once=False,
        looks_like_zfs=True,
    ),
    words="ZFS on the client's disk",
    explained="a pool of the client's own",
    place=6,
)
