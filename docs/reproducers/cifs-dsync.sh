#!/bin/sh
# Over SMB a small O_DSYNC write sends other memory of the client to the file.
#
#   cifs-dsync.sh     as root, on a spare machine; with ksmbd-tools
#
# ksmbd shares a folder, and the same machine mounts it. The test file has three pages, none of which is in the
# client's page cache. The script overwrites 1,536 bytes amid the first page and compares the server's file.
# With O_DSYNC the rest of that page has other content: the script exits with 1, and with 0 where the page is
# intact. No power is cut. Without O_DSYNC the page stays intact.
set -eu

place=$(mktemp -d)

# shellcheck disable=SC2329  # the trap calls it
end() {
    umount "$place/client" || true
    ksmbd.control --shutdown || true
    rm -r "$place"
}

of() { head -c "$2" /dev/zero | tr '\0' "$1"; }

rounds() { # rounds [FLAG]: how many files of ten are wrong
    wrong=0
    for n in 0 1 2 3 4 5 6 7 8 9; do
        dd if="$place/whole" of="$place/client/$n" bs=12288 conv=fsync 2>/dev/null
        echo 3 > /proc/sys/vm/drop_caches
        dd if="$place/part" of="$place/client/$n" bs=1536 seek=1 conv=notrunc ${1:+oflag="$1"} 2>/dev/null
        sync -f "$place/client/$n"
        cmp -s "$place/wanted" "$place/server/$n" || wrong=$((wrong + 1))
    done
    echo "$wrong"
}

mkdir "$place/server" "$place/client" "$place/settings"
modprobe -a ksmbd cifs
cat > "$place/settings/ksmbd.conf" << END
[global]
    map to guest = bad user
[share]
    path = $place/server
    read only = no
    guest ok = yes
    force user = root
    force group = root
END
touch "$place/settings/ksmbdpwd.db"
trap end EXIT
ksmbd.mountd --config="$place/settings/ksmbd.conf" --pwddb="$place/settings/ksmbdpwd.db"
sleep 2
mount -i -t cifs -o guest,vers=3.1.1,ip=127.0.0.1 //127.0.0.1/share "$place/client"

{ of A 4096; of B 4096; of C 4096; } > "$place/whole"
of D 1536 > "$place/part"
{ of A 1536; of D 1536; of A 1024; of B 4096; of C 4096; } > "$place/wanted"

plain=$(rounds "")
synchronous=$(rounds dsync)
echo "$(uname -r): wrong after a write: $plain of 10; after one with O_DSYNC: $synchronous of 10"
[ "$plain" -eq 0 ] || { echo "it goes wrong without O_DSYNC, too: this shows something else" >&2; exit 2; }
[ "$synchronous" -eq 0 ]
