#!/bin/sh
# Over NFSv4.2 an extended attribute is not on the server's disk although it was fsynced.
#
#   nfsd-xattr.sh     as root, on a spare machine; with nfs-kernel-server, e2fsprogs and attr
#
# The machine exports an ext4 on a loop device, and mounts it. The script changes a file's mode, then sets an
# attribute of it, and fsyncs the file after each. Between the call and the fsync's return the server writes the
# mode to the device, but not the attribute: the script exits with 1, and with 0 where it writes both.
# A server that loses its power then loses an attribute that the application had fsynced.
set -eu

place=$(mktemp -d)

# shellcheck disable=SC2329  # the trap calls it
end() {
    umount "$place/client" || true
    exportfs -u "127.0.0.1:$place/server" || true
    umount "$place/server" || true
    losetup --detach "$device"
    rm -r "$place"
}

writes() {
    awk '{ print $5 }' "/sys/block/${device#/dev/}/stat" # completed: Documentation/block/stat.rst
}

mkdir "$place/server" "$place/client"
modprobe -a loop nfsd
truncate -s 256M "$place/disk"
device=$(losetup --find --show "$place/disk")
trap end EXIT
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$device"
mount "$device" "$place/server"
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
exportfs -o rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0 "127.0.0.1:$place/server"
[ "$(cat /proc/fs/nfsd/threads)" -gt 0 ] || { rpc.mountd -N 3 && rpc.nfsd -N 3 -G 10 -L 10 4; }
mount -t nfs -o vers=4.2 127.0.0.1:/ "$place/client"
echo 1 > "$place/client/file"
sync
sleep 6 # the journal's own commits are behind us

before=$(writes)
chmod 600 "$place/client/file"
sync "$place/client/file"
mode=$(($(writes) - before))
sleep 6
before=$(writes)
setfattr -n user.test -v 1 "$place/client/file"
sync "$place/client/file"
attribute=$(($(writes) - before))

echo "$(uname -r): chmod and fsync: $mode writes; setfattr and fsync: $attribute writes"
[ "$mode" -gt 0 ] || { echo "the mode was not written either: this shows nothing" >&2; exit 2; }
[ "$attribute" -gt 0 ]
