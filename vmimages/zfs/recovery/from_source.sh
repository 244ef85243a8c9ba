#!/bin/sh
# Runs before stage.sh in the root the packages were put in, with a source tree in /source.tar. Builds its libraries.
set -eu
mkdir -p /usr/src/zfs-tree
tar --extract --no-same-owner --file /source.tar --directory /usr/src/zfs-tree
rm /source.tar
cd /usr/src/zfs-tree
./autogen.sh
./configure --with-config=user --disable-pyzfs --disable-systemd --disable-sysvinit --disable-nls --without-python
make gitrev
make CFLAGS=-O2 "-j$(nproc)" libnvpair.la libzpool.la libzfs.la libzfs_core.la
