#!/bin/sh
# Runs in the root the packages were put in, where no ZFS is built; leaves /stage.tar: what the images take.
#   vmlinuz, busybox, release (of the kernel), usr/lib/modules/RELEASE. With ZFS `../zfs/stage.sh` does it.
set -eu
modules=$(echo /usr/lib/modules/*-cloud-amd64)
release=${modules##*/}

mkdir -p "/stage$modules"
cp "$modules"/modules.order "$modules"/modules.builtin* "/stage$modules/"
cp -r "$modules/kernel" "/stage$modules/"

# The guests read modules while they boot, under emulation: let the root's own fast compression do.
find "/stage$modules" -name '*.ko.xz' -exec xz --decompress {} +
find "/stage$modules" -name '*.ko' \
    -exec strip --strip-debug --remove-section=.BTF --remove-section=.BTF.base {} +
depmod --basedir /stage --moduledir /usr/lib/modules "$release"

cp "/boot/vmlinuz-$release" /stage/vmlinuz
cp /usr/bin/busybox /stage/busybox
echo "$release" > /stage/release
tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
    --pax-option=delete=atime,delete=ctime \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
