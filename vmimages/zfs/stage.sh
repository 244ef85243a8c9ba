#!/bin/sh
# Runs in the root the packages were put in; leaves /stage.tar: what the images take from here.
#   vmlinuz, busybox, release (of the kernel), usr/lib/modules/RELEASE with ZFS's among them, and nas/:
#   what only the NAS takes
set -eu
modules=$(echo /usr/lib/modules/*-cloud-amd64)
release=${modules##*/}
source=$(echo /usr/src/zfs-*)

# The package's own script may have built it already, or for the kernel `uname` names: the host's.
dkms install "zfs/${source##*-}" -k "$release"

mkdir -p "/stage$modules"
cp /usr/lib/modules/"$release"/modules.order /usr/lib/modules/"$release"/modules.builtin* "/stage$modules/"
for tree in kernel updates; do cp -r "$modules/$tree" "/stage$modules/"; done

# The guests read modules while they boot, under emulation: let the root's own fast compression do.
find "/stage$modules" -name '*.ko.xz' -exec xz --decompress {} +
# Also drops the signatures, made with a key that DKMS invents for every build.
find "/stage$modules" -name '*.ko' \
    -exec strip --strip-debug --remove-section=.BTF --remove-section=.BTF.base {} +
depmod --basedir /stage --moduledir /usr/lib/modules "$release"

# What zdb does before it ends, and need not: see the NAS's own `zdb`.
mkdir -p /stage/nas/usr/lib/torture
echo 'void kernel_fini(void) {}' |
    gcc -x c -shared -nostdlib -fPIC -Wl,--build-id=none -s -o /stage/nas/usr/lib/torture/endless.so -

cp "/boot/vmlinuz-$release" /stage/vmlinuz
cp /usr/bin/busybox /stage/busybox
echo "$release" > /stage/release
tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
    --pax-option=delete=atime,delete=ctime \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
