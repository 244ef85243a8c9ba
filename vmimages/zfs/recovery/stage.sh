#!/bin/sh
# Runs in the root the packages were put in; leaves /stage.tar: the programs of a walk. The NAS runs `recover`, with its
# own libraries. The host runs `native-recover`, which has all its libraries in it: the host's may be older.
set -eu
mkdir /stage
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -isystem /usr/include/libspl -isystem /usr/include/libzfs \
    -Wl,--build-id=none -s -o /stage/recover /programs/recover.c -lzfs -lnvpair
rm /programs/recover.c

# Our vdevs stand in for the library's, which open files. The library is always built with its debugging
# (lib/libzpool/Makefile.am), which changes the layout of its structures.
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -UNDEBUG -DDEBUG -DZFS_DEBUG \
    -isystem /usr/include/libspl -isystem /usr/include/libzfs \
    -static -Wl,--build-id=none -Wl,--wrap=vdev_disk_ops -s -o /stage/native-recover /programs/*.c \
    -lzpool -lnvpair -ltirpc -lz -lm -lpthread
tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
    --pax-option=delete=atime,delete=ctime \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
