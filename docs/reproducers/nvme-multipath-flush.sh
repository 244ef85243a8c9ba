#!/bin/sh
# NVMe over TCP with native multipath: a flush without an answer returns 0.
#
#   nvme-multipath-flush.sh     as root, on a spare machine: its loopback goes down for 20 s
#
# Eight writers call fdatasync on a disk behind nvmet on the same machine. Then the link goes down. The client
# can flush nothing before the link is back, so no fdatasync may return 0 before that. With native multipath
# (`nvme_core.multipath=Y`, the default) a flush under way returns 0 as soon as error recovery begins: the script
# exits with 1. With `nvme_core.multipath=N` on the kernel's command line it waits for the link: exits with 0.
set -eu

nqn=nqn.2014-08.org.nvmexpress:flush-under-way
target=/sys/kernel/config/nvmet
said=$(mktemp -d)

# shellcheck disable=SC2329  # the trap calls it
end() {
    touch "$said/stop"
    ip link set lo up
    for controller in /sys/class/nvme/nvme*; do
        [ "$(cat "$controller/subsysnqn")" != "$nqn" ] || echo 1 > "$controller/delete_controller"
    done
    rm -f "$target/ports/4420/subsystems/$nqn"
    rmdir "$target/ports/4420" "$target/subsystems/$nqn/namespaces/1" "$target/subsystems/$nqn" || true
    losetup --detach "$device"
    rm -r "$said"
}

modprobe -a nvmet nvmet-tcp nvme-tcp loop
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
truncate -s 256M "$said/disk"
device=$(losetup --find --show "$said/disk")
trap end EXIT
mkdir "$target/subsystems/$nqn" "$target/subsystems/$nqn/namespaces/1" "$target/ports/4420"
echo 1 > "$target/subsystems/$nqn/attr_allow_any_host"
echo "$device" > "$target/subsystems/$nqn/namespaces/1/device_path"
echo 1 > "$target/subsystems/$nqn/namespaces/1/enable"
echo tcp > "$target/ports/4420/addr_trtype"
echo ipv4 > "$target/ports/4420/addr_adrfam"
echo 127.0.0.1 > "$target/ports/4420/addr_traddr"
echo 4420 > "$target/ports/4420/addr_trsvcid"
ln -s "$target/subsystems/$nqn" "$target/ports/4420/subsystems/$nqn"
ip link set lo up
echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$nqn,ctrl_loss_tmo=-1,reconnect_delay=1,keep_alive_tmo=5" \
    > /dev/nvme-fabrics
sleep 2
disk=
for subsystem in /sys/class/nvme-subsystem/*; do
    [ "$(cat "$subsystem/subsysnqn")" = "$nqn" ] || continue
    for namespace in "$subsystem"/nvme*n1 "$subsystem"/nvme*/nvme*n1; do
        [ -b "/dev/${namespace##*/}" ] && disk=/dev/${namespace##*/}
    done
done
[ -b "${disk:?there is no disk}" ]

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# each writes a block, which the target keeps in memory, flushes it, and notes when the flush returned
writer() {
    while [ ! -e "$said/stop" ]; do
        dd if=/dev/zero of="$disk" bs=4096 count=1 seek=$(($1 * 1000)) oflag=direct conv=notrunc 2>/dev/null
        sync --data "$disk" && now_ms >> "$said/$1"
    done
}
for number in 1 2 3 4 5 6 7 8; do
    writer "$number" &
done
sleep 3
ip link set lo down
down_ms=$(now_ms)
sleep 20
up_ms=$(now_ms)
touch "$said/stop"
ip link set lo up
wait

unfounded=0
while read -r at_ms; do
    # what was answered before the link went down may take a moment to be noted
    if [ "$at_ms" -gt $((down_ms + 1000)) ] && [ "$at_ms" -lt "$up_ms" ]; then
        echo "fdatasync returned 0 after $((at_ms - down_ms)) ms without a link"
        unfounded=1
    fi
done << END
$(cat "$said"/[1-8])
END
echo "Linux $(uname -r), nvme_core.multipath=$(cat /sys/module/nvme_core/parameters/multipath)"
exit "$unfounded"
