#!/bin/sh
# Runs in the root the packages were put in; leaves /stage.tar with the program of the walk's native engine. The host
# runs it, whose libraries may be older: so it has its own in it.
set -eu
mkdir /stage
# Our vdevs stand in for the library's, which open files. The library is always built with its debugging
# (lib/libzpool/Makefile.am), which changes the layout of its structures.
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -UNDEBUG -DDEBUG -DZFS_DEBUG \
    -isystem /usr/include/libspl -isystem /usr/include/libzfs \
    -static -Wl,--build-id=none -Wl,--wrap=vdev_disk_ops -s -o /stage/native-recover /programs/*.c \
    -lzpool -lnvpair -ltirpc -lz -lm -lpthread
tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
    --pax-option=delete=atime,delete=ctime \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
