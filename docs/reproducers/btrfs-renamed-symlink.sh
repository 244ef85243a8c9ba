#!/bin/sh
# On btrfs a renamed symbolic link has its old name after a crash although its directory was fsynced.
#
#   btrfs-renamed-symlink.sh     as root, on a spare machine; with btrfs-progs
#
# The script makes a symbolic link in a directory of a new btrfs, fsyncs the directory, renames the link, and
# fsyncs the directory again. It copies the device, which stands for the loss of power, and mounts the copy. It exits
# with 1 where the link has its old name there, and with 0 where it has its new one.
set -eu

place=$(mktemp -d)

# shellcheck disable=SC2329  # the trap calls it
end() {
    umount "$place/before" "$place/after" 2> /dev/null || true
    rm -r "$place"
}
trap end EXIT

mkdir "$place/before" "$place/after"
truncate -s 512M "$place/disk"
mkfs.btrfs -q "$place/disk"
mount -o loop "$place/disk" "$place/before"
mkdir "$place/before/d"
sync
ln -s target "$place/before/d/old"
sync "$place/before/d"
mv "$place/before/d/old" "$place/before/d/new"
sync "$place/before/d"
cp --sparse=always "$place/disk" "$place/copy"
umount "$place/before" # or the kernel would see the same filesystem twice
mount -o loop "$place/copy" "$place/after"
echo "$(uname -r): after the crash: $(ls "$place/after/d")"
[ "$(ls "$place/after/d")" = new ]
