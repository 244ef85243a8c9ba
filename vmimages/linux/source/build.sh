#!/bin/sh
# Runs in the root the packages were put in, with a source tree in /linux.tar. Builds it with the configuration of
# Debian's kernel for clouds, without the modules that no guest loads, and installs it in the place of that one.
set -eu
mkdir -p /build/linux
tar --extract --no-same-owner --file /linux.tar --directory /build/linux
rm /linux.tar
cd /build/linux
cp /boot/config-*-cloud-amd64 .config
rm -r /usr/lib/modules/*-cloud-amd64

# As lsmod prints them. Modules that these need stay, too; so do all parts that are built in.
for module in \
    async_tx authenc blake2b_generic btrfs ccm cifs cifs_arc4 cifs_md4 cmac configfs crc32c_generic crct10dif_generic \
    dm_mod dm_snapshot ecb ext4 fuse gcm hmac iscsi_target_mod iscsi_tcp ksmbd loop md5 nbd netconsole netfs nfs nfsd \
    nfsv3 nfsv4 nls_ucs2_utils nls_utf8 null_blk nvme nvme_core nvme_tcp nvmet nvmet_tcp overlay raid6_pq rng_core \
    scsi_debug sd_mod sha256_generic sha512_generic squashfs sr_mod target_core_file target_core_iblock \
    target_core_mod tun veth virtio_balloon virtio_blk virtio_console virtio_net virtio_pci virtio_rng virtio_scsi \
    xfs xor xxhash_generic zstd
do
    echo "$module 1 0"
done > /lsmod
yes '' | make LSMOD=/lsmod localmodconfig

# No signatures, whose keys are Debian's, and which a lockdown demands. No debug information, which takes most of the
# time, and no hypervisors but QEMU.
scripts/config \
    --set-str LOCALVERSION -cloud-amd64 --disable LOCALVERSION_AUTO --set-str BUILD_SALT "" \
    --disable MODULE_SIG --disable SECURITY_LOCKDOWN_LSM --disable XEN --disable HYPERV \
    --set-str SYSTEM_TRUSTED_KEYS "" --set-str SYSTEM_REVOCATION_KEYS "" \
    --enable DEBUG_INFO_NONE --disable DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT --disable DEBUG_INFO_DWARF4 \
    --disable DEBUG_INFO_DWARF5 --disable DEBUG_INFO_BTF --disable RUST --disable WERROR --disable EXTENDED_MODVERSIONS
make olddefconfig
# A tree of git adds a plus sign to its release, unless the variable is there.
export LOCALVERSION=
make -j "$(nproc)" bzImage modules
make modules_install
release=$(make -s kernelrelease)
cp arch/x86/boot/bzImage "/boot/vmlinuz-$release"
