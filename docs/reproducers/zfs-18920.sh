#!/bin/sh
# A RAIDZ expansion that is cut at its start loses the pool: OpenZFS without pull request 18920 (7026d33350e4).
#
#   zfs-18920.sh DIR    as root; DIR is where an ext4 or XFS of its own is mounted, with 1 GiB free
#
# `zpool attach` commits the raidz with its new disk, waits for 12 transaction groups, and only then commits the
# start of the expansion. The script freezes DIR before, in between and after, and copies its disks: each copy is
# the state that a power cut would leave on disks without a cache. Exits with 1 where a copy does not import.
set -eu

dir=${1:?usage: $0 DIR}
pool=zfs18920
copies=$(mktemp -d)

# shellcheck disable=SC2329  # the trap calls it
end() {
    zpool destroy "$pool" 2>/dev/null || true
    rm -rf "$copies" "$dir"/disk[1234]
}
trap end EXIT

copy() {
    mkdir "$copies/$1"
    fsfreeze --freeze "$dir"
    cp --sparse=always "$dir"/disk[1234] "$copies/$1" || true
    fsfreeze --unfreeze "$dir"
}

# the second label of a disk is written after the uberblocks (vdev_config_sync): the group is committed
attach_is_committed() {
    dd if="$dir/disk1" bs=256k skip=1 count=1 2>/dev/null | grep -aq disk4
}

for number in 1 2 3 4; do
    truncate -s 256M "$dir/disk$number"
done
zpool create -O mountpoint=none -o cachefile=none "$pool" raidz1 "$dir/disk1" "$dir/disk2" "$dir/disk3"
zpool sync "$pool"
copy before

zpool attach "$pool" raidz1-0 "$dir/disk4" &
polls=0
until attach_is_committed || [ "$polls" -eq 20000 ]; do
    polls=$((polls + 1))
done
copy between
wait
zpool wait -t raidz_expand "$pool"
copy after
zpool destroy "$pool"

lost=0
for when in before between after; do
    if zpool import -d "$copies/$when" -o cachefile=none -N "$pool"; then
        echo "$when: imported, $(zpool list -H -o health "$pool")"
        zpool export "$pool"
    else
        echo "$when: lost"
        lost=1
    fi
done
echo "OpenZFS $(cat /sys/module/zfs/version), Linux $(uname -r)"
exit "$lost"
