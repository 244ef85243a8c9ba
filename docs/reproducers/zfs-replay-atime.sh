#!/bin/sh
# On ZFS a power cut loses a file's access time although it was set and fsynced.
#
#   zfs-replay-atime.sh     as root, on a spare machine with OpenZFS
#
# The script freezes a pool on a file, as OpenZFS's own tests of its intent log do: later changes are in the
# intent log alone. It sets both times of a file, and fsyncs the file. The pool's file then is the state after a
# power cut, and the script imports it. It exits with 1 where the modification time is back and the access time
# is not, and with 0 where both are. NFS servers keep the verifier of an exclusive create in these two times.
set -eu

place=$(mktemp -d)
pool=atime$$
want="1000000000 1000000000"

# shellcheck disable=SC2329  # the trap calls it
end() {
    zpool destroy -f "$pool" 2> /dev/null || true
    rm -r "$place"
}

trap end EXIT
mkdir "$place/live" "$place/cut"
truncate -s 256M "$place/live/disk"
zpool create -m "/$pool" "$pool" "$place/live/disk"
: > "/$pool/file"
sync "/$pool/file" # the log begins before the freeze
zpool sync "$pool"
zpool freeze "$pool"
touch -d @1000000000 "/$pool/file"
sync "/$pool/file"
cp "$place/live/disk" "$place/cut/disk"
zpool export "$pool"
zpool import -d "$place/cut" "$pool"
found=$(stat -c '%X %Y' "/$pool/file")
echo "$(zfs version | head -n 1), $(uname -r): atime and mtime were fsynced as $want, and are $found"
[ "${found#* }" = "${want#* }" ] || { echo "the modification time is lost as well: this shows nothing" >&2; exit 2; }
[ "$found" = "$want" ]
