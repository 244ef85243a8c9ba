#!/bin/sh
# Runs in the root the packages were put in, with a source tree in /source.tar. Leaves its modules' source where
# DKMS finds it, and in /stage/nas what the NAS takes from its packages: the tools and their libraries.
set -eu
mkdir -p /build/zfs /stage/nas
tar --extract --no-same-owner --file /source.tar --directory /build/zfs
rm /source.tar
cd /build/zfs

# Packages that were made in the tree before are no part of it, and would be in the way.
rm -rf debian
./autogen.sh
# Only what knows how to make packages: they configure the rest themselves.
./configure --with-config=srpm
DEB_BUILD_OPTIONS="nodoc nocheck noautodbgsym parallel=$(nproc)" make native-deb-utils

dpkg-deb --extract /build/openzfs-zfs-dkms_*.deb /
for package in /build/openzfs-zfsutils_*.deb /build/openzfs-lib*[a-z][0-9]_*.deb; do
    dpkg-deb --extract "$package" /stage/nas
done
# A root of Debian's has these as links, and nothing can lie below a link.
for folder in bin sbin lib; do
    [ -d "/stage/nas/$folder" ] || continue
    mkdir -p "/stage/nas/usr/$folder"
    cp -a "/stage/nas/$folder/." "/stage/nas/usr/$folder/"
    rm -r "/stage/nas/$folder"
done
rm -rf /stage/nas/usr/share/doc /stage/nas/usr/share/man

# The next stage installs them. Its own build would say no more than the name of a log, which goes with this root.
source=$(echo /usr/src/zfs-*)
release=$(basename /usr/lib/modules/*-cloud-amd64)
if ! dkms build "zfs/${source##*-}" -k "$release"; then
    cat "/var/lib/dkms/zfs/${source##*-}/build/make.log"
    exit 1
fi
