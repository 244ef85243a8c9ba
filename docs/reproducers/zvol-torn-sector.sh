#!/bin/sh
# After a power cut a sector of a zvol is half new and half old.
#
#   zvol-torn-sector.sh     as root, on a spare machine with OpenZFS
#
# A pool on a file has a zvol full of A. The script freezes the pool, as OpenZFS's own tests of its intent log do:
# later changes are in the intent log alone. Then it writes 18 times 28 KiB of B, and flushes. The file is the
# state after a cut once all blocks are on the disk. With one block of the log wiped, it is the state after a cut
# amid the flush, when that block and those behind it were not on the disk. The script imports each state and
# looks for sectors with both letters. It exits with 1 where it finds any, and with 0 where all sectors are whole.
set -eu

place=$(mktemp -d)
pool=torn$$
node=/dev/zvol/$pool/v
mib=1048576

# shellcheck disable=SC2329  # the trap calls it
end() {
    zpool destroy -f "$pool" 2> /dev/null || true
    rm -r "$place"
}

of() { head -c "$2" /dev/zero | tr '\0' "$1"; }

wait_for_node() {
    for _ in $(seq 120); do
        [ ! -b "$node" ] || return 0
        sleep 0.5
    done
    echo "there is no $node" >&2
    return 2
}

blocks_of_log() { # where each begins in the file, in order; a vdev begins behind labels and boot block
    zdb -e -p "$place/whole" -iiiii "$pool/v" |
        sed -n 's/.*Block seqno.*DVA\[0\]=<0:\([0-9a-f]*\):.*/\1/p' |
        while read -r offset; do echo $((0x$offset + 4 * mib)); done
}

trap end EXIT
mkdir "$place/live" "$place/whole" "$place/cut"
truncate -s 256M "$place/live/disk"
zpool create "$pool" "$place/live/disk"
zfs create -V 16M -o volblocksize=64k "$pool/v"
wait_for_node
of A $((8 * mib)) | dd of="$node" bs=1M iflag=fullblock oflag=direct conv=fsync 2> /dev/null
zpool sync "$pool"
zpool freeze "$pool"
of B $((18 * 28 * 1024)) | dd of="$node" bs=28k iflag=fullblock oflag=direct conv=fsync,notrunc 2> /dev/null
cp "$place/live/disk" "$place/whole/disk"
zpool export "$pool"

torn=0
for at in $(blocks_of_log) none; do
    cp "$place/whole/disk" "$place/cut/disk"
    if [ "$at" != none ]; then
        dd if=/dev/zero of="$place/cut/disk" bs=512 seek=$((at / 512)) count=8 conv=notrunc 2> /dev/null
    fi
    zpool import -f -d "$place/cut" "$pool"
    wait_for_node
    dd if="$node" bs=1M count=8 2> /dev/null | fold -b -w 512 > "$place/sectors"
    zpool export "$pool"
    whole=$(grep -c '^B*$' "$place/sectors" || true)
    halves=$(grep 'A.*B\|B.*A' "$place/sectors" | tr -d 'A\n' || true)
    echo "log block missing at $at: $whole sectors are new, of one more ${#halves} bytes"
    [ -z "$halves" ] || torn=$((torn + 1))
done
echo "$(zfs version | head -n 1): $torn of these cuts leave a sector half new"
[ "$torn" -eq 0 ]
