#!/bin/sh
# With sync=always ZFS on Linux commits no fallocate(2): a hole and an extension are gone after a crash.
#
#   zfs-fallocate-sync-always.sh     as root, on a spare machine with OpenZFS and python3
#
# The script freezes a pool on a file, as OpenZFS's own tests of its intent log do: later changes are in the intent
# log alone. It changes files in four ways, without an fsync. By zfsprops(7) sync=always writes and flushes every
# transaction before its system call returns. It copies the pool's file for the state after a crash, and imports the
# copy. It exits with 1 where a change is lost, and with 0 where all four are there.
set -eu

place=$(mktemp -d)
pool=fallocate$$

# shellcheck disable=SC2329  # the trap calls it
end() {
    zpool destroy -f "$pool" 2> /dev/null || true
    rm -r "$place"
}

is() { # name, found, wanted
    if [ "$2" = "$3" ]; then
        echo "$1: kept"
    else
        echo "$1: lost"
        lost=1
    fi
}

trap end EXIT
mkdir "$place/live" "$place/cut"
truncate -s 256M "$place/live/disk"
zpool create -O sync=always -m "/$pool" "$pool" "$place/live/disk"
for file in written truncated punched extended; do
    dd if=/dev/urandom of="/$pool/$file" bs=64k count=1 2> /dev/null
done
zpool sync "$pool"
zpool freeze "$pool"

dd if=/dev/zero of="/$pool/written" bs=64k count=1 conv=notrunc 2> /dev/null
truncate -s 0 "/$pool/truncated"
# not fallocate(1): it calls fsync before it ends (util-linux, include/closestream.h)
python3 -S - "/$pool" << 'END'
import ctypes, os, sys

KEEP_SIZE, PUNCH_HOLE = 1, 2


def fallocate(file, mode, length):
    descriptor = os.open(f"{sys.argv[1]}/{file}", os.O_RDWR)
    size = ctypes.c_longlong
    assert ctypes.CDLL(None).fallocate(descriptor, mode, size(0), size(length)) == 0


fallocate("extended", 0, 128 * 1024)
fallocate("punched", PUNCH_HOLE | KEEP_SIZE, 64 * 1024)
END
cp --sparse=always "$place/live/disk" "$place/cut/disk"
zpool destroy -f "$pool"
zpool import -f -d "$place/cut" "$pool"

lost=0
zeros=$(head -c 64k /dev/zero | sha256sum)
is "zeros that were written" "$(sha256sum < "/$pool/written")" "$zeros"
is "a truncation" "$(stat -c %s "/$pool/truncated")" 0
is "a punched hole" "$(sha256sum < "/$pool/punched")" "$zeros"
is "an extension" "$(stat -c %s "/$pool/extended")" 131072
echo "$(zfs version | head -n 1), $(uname -r)"
exit "$lost"
