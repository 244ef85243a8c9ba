#!/bin/sh
# Runs in a root with the headers of the NAS's kernel, SCST's source tree in /source.tar and maybe /planted.patch.
# Leaves /stage.tar: the modules of its iSCSI target, its daemon, and the kernel's release.
set -eu
headers=$(echo /usr/src/linux-headers-*-cloud-amd64)
release=${headers#/usr/src/linux-headers-}
mkdir /build
tar --extract --no-same-owner --file /source.tar --directory /build
cd /build
if [ -e /planted.patch ]; then patch -p1 --forward --input /planted.patch; fi

# Of TrueNAS's own kernel: EXTENDED COPY on a zvol. It is far from writes and flushes.
cat > /lacking.h << 'END'
#define bdev_max_copy_sectors(device) 0
#define blkdev_copy_offload(...) (-EOPNOTSUPP)
END

# The headers that the Makefiles above Kbuild generate. The cloud kernel has no DLM.
export KVER="$release" KDIR="$headers" CONFIG_SCST_NO_DLM=y
make -C scst 2release
make -C scst include/build_mode.h
make -C scst/src ../include/scst_itf_ver.h
make -C iscsi-scst include/iscsi_scst_itf_ver.h

build() { make -j "$(nproc)" -C "$headers" M="/build/$1" KCFLAGS="-include /lacking.h" modules; }
build scst/src
build scst/src/dev_handlers
make -C iscsi-scst/usr iscsi-scstd
build iscsi-scst/kernel

place=/stage/usr/lib/torture/scst
mkdir -p "$place" /stage/usr/sbin
for module in scst/src/scst.ko scst/src/dev_handlers/scst_vdisk.ko iscsi-scst/kernel/iscsi-scst.ko; do
    strip --strip-debug --remove-section=.BTF --remove-section=.BTF.base "$module"
    cp "$module" "$place/"
done
strip iscsi-scst/usr/iscsi-scstd
cp iscsi-scst/usr/iscsi-scstd /stage/usr/sbin/
echo "$release" > /stage/release
tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
    --pax-option=delete=atime,delete=ctime \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
