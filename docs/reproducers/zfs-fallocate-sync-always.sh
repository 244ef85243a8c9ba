#!/bin/sh
# With sync=always ZFS on Linux commits no fallocate(2): a punched hole and an extension are gone after a crash.
#
# It freezes a pool on a file, so that the intent log alone is kept, and changes files in four ways. Each
# change has returned, and none was followed by an fsync. The crash is a copy of the file. By zfsprops(7)
# sync=always writes and flushes every transaction before its system call returns.
# Exit status: 1 if a change is lost, 0 if all four are there. Needs root, python3 and a machine to spare.
set -eu
directory=$(mktemp -d)
pool=fallocate$$
trap 'zpool destroy -f $pool 2> /dev/null || true; rm -rf "$directory"' EXIT
truncate -s 256M "$directory/disk"
zpool create -O sync=always $pool "$directory/disk"
cd /$pool
for file in written truncated punched extended; do
    dd if=/dev/urandom of=$file bs=64k count=1 2> /dev/null
done
zpool sync $pool
zpool freeze $pool

dd if=/dev/zero of=written bs=64k count=1 conv=notrunc 2> /dev/null
truncate -s 0 truncated
# Not fallocate(1): it calls fsync before it ends (util-linux, include/closestream.h).
python3 -S - << 'END'
import ctypes, os

KEEP_SIZE, PUNCH_HOLE = 1, 2


def fallocate(file, mode, bytes):
    descriptor = os.open(file, os.O_RDWR)
    size = ctypes.c_longlong
    assert ctypes.CDLL(None).fallocate(descriptor, mode, size(0), size(bytes)) == 0


fallocate("extended", 0, 128 * 1024)
fallocate("punched", PUNCH_HOLE | KEEP_SIZE, 64 * 1024)
END
mkdir "$directory/crash"
cp --sparse=always "$directory/disk" "$directory/crash/disk"
cd /
zpool destroy -f $pool
zpool import -f -d "$directory/crash" $pool

lost=0
say() {
    if [ "$2" = "$3" ]; then echo "$1: kept"; else echo "$1: lost"; lost=1; fi
}
zeros=$(head -c 64k /dev/zero | sha256sum)
say "zeros that were written" "$(sha256sum < /$pool/written)" "$zeros"
say "a truncation" "$(stat -c %s /$pool/truncated)" 0
say "a punched hole" "$(sha256sum < /$pool/punched)" "$zeros"
say "an extension" "$(stat -c %s /$pool/extended)" 131072
exit $lost
