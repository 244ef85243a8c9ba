#!/bin/sh
# Over NVMe/TCP from a zvol every read or write of more than 4 MiB fails.
#
#   nvme-tcp-zvol-large.sh     as root, on a spare machine with OpenZFS
#
# Linux's target exports a zvol as a namespace, and the same machine is its client. A zvol names 32 MiB as its
# best size. The target passes that on and names no limit of its own, so the client asks for as much, and the
# target refuses it ("failed to map data"). The script tries sizes around 4 MiB, and 14 MiB through the page cache
# with an fsync. It exits with 1 where any fails, and with 0 where none does. No power is cut.
set -eu

place=$(mktemp -d)
pool=large$$
name=zvol-large
target=/sys/kernel/config/nvmet

# shellcheck disable=SC2329  # the trap calls it
end() {
    for controller in /sys/class/nvme/*; do
        [ "$(cat "$controller/subsysnqn")" != "$name" ] || echo 1 > "$controller/delete_controller"
    done
    rm -f "$target/ports/9/subsystems/$name"
    rmdir "$target/ports/9" "$target/subsystems/$name/namespaces/1" "$target/subsystems/$name" || true
    zpool destroy -f "$pool" || true
    rm -r "$place"
}

failures=0
tries() { # tries WHAT COMMAND...: says whether it succeeds
    what=$1
    shift
    if "$@" 2> /dev/null; then
        echo "$what: done"
    else
        echo "$what: failed"
        failures=$((failures + 1))
    fi
}

modprobe -a nvmet-tcp nvme-tcp
trap end EXIT
truncate -s 128M "$place/disk"
zpool create "$pool" "$place/disk"
zfs create -V 32M "$pool/v"
for _ in $(seq 120); do
    [ ! -b "/dev/zvol/$pool/v" ] || break
    sleep 0.5
done
mkdir "$target/subsystems/$name" "$target/subsystems/$name/namespaces/1" "$target/ports/9"
echo 1 > "$target/subsystems/$name/attr_allow_any_host"
printf %s "$(readlink -f "/dev/zvol/$pool/v")" > "$target/subsystems/$name/namespaces/1/device_path"
echo 1 > "$target/subsystems/$name/namespaces/1/enable"
for setting in trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid=4421; do
    echo "${setting#*=}" > "$target/ports/9/addr_${setting%%=*}"
done
ln -s "$target/subsystems/$name" "$target/ports/9/subsystems/$name"
ip link set lo up
echo "transport=tcp,traddr=127.0.0.1,trsvcid=4421,nqn=$name" > /dev/nvme-fabrics
sleep 3

disk=
for node in /sys/class/nvme-subsystem/*/nvme*n*; do
    [ "$(cat "${node%/*}/subsysnqn")" != "$name" ] || disk=/dev/${node##*/}
done
case $disk in *c*n*) disk=$(echo "$disk" | sed 's/c[0-9]*n/n/') ;; esac
queue=/sys/block/${disk##*/}/queue
echo "$(uname -r): $disk, at most $(cat "$queue/max_sectors_kb") KiB at once"
for kib in 4096 4100 8192; do
    tries "read of $kib KiB" dd if="$disk" of=/dev/null bs="${kib}k" count=1 iflag=direct
    tries "write of $kib KiB" dd if=/dev/zero of="$disk" bs="${kib}k" count=1 oflag=direct
done
tries "14 MiB written and synced" dd if=/dev/zero of="$disk" bs=1M count=14 conv=fsync
found=$failures
echo 4096 > "$queue/max_sectors_kb"
tries "write of 8192 KiB once max_sectors_kb is 4096" dd if=/dev/zero of="$disk" bs=8M count=1 oflag=direct
[ "$failures" -eq "$found" ] || { echo "it fails in smaller pieces, too: this shows something else" >&2; exit 2; }
[ "$found" -eq 0 ]
