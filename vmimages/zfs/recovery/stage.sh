#!/bin/sh
# Runs in the root the packages were put in; leaves /stage.tar: the programs of a walk. The NAS runs `recover`, with its
# own libraries. The host runs `native-recover`, OpenZFS as a library. It has all libraries in it: the host's may be older.
set -eu
tree=$(echo /usr/src/zfs-*)
version=$(sed -n 's/^Version: *//p' "$tree/META" | awk -F. '{ printf "%d%02d%02d", $1, $2, $3 }')
mkdir -p /stage /objects /absent/sys
if [ -d "$tree/lib" ]; then  # a whole tree, which from_source.sh has built
    headers="-I$tree/lib/libspl/include -I$tree/lib/libspl/include/os/linux -I$tree/lib/libzpool/include -I$tree/include"
    libraries=$tree/.libs
    rest=
else
    headers="-I/usr/include/libspl -I/usr/include/libzfs"
    libraries=/usr/lib/x86_64-linux-gnu
    rest=$libraries/libuutil.a  # 2.1 has libspl in it
fi
system=$(echo "$headers" | sed 's/-I/-isystem /g')
# Debian's package of 2.3.2 lacks this header. Nothing here touches these structures.
cat > /absent/sys/abd_os.h <<'END'
struct abd_scatter { uint_t abd_offset, abd_iovcnt; struct iovec abd_iov[1]; };
struct abd_linear { void *abd_buf; };
END
ours="-std=gnu17 -O2 -Wall -Wextra -Werror -DVERSION=$version $system"
# The library is always built with its debugging (lib/libzpool/Makefile.am), which changes the layout of its structures.
library="-D_GNU_SOURCE -D_LARGEFILE64_SOURCE -UNDEBUG -DDEBUG -DZFS_DEBUG -idirafter /absent"

# shellcheck disable=SC2086 # these are lists of words
gcc $ours -Wl,--build-id=none -s -o /stage/recover /programs/recover.c /programs/tree.c \
    -L"$libraries" -lzfs -lzfs_core -lnvpair
rm /programs/recover.c /programs/tree.c

is_of_library() { ar t "$libraries/libzpool.a" | grep -qE "^(libzpool_la-)?$(basename "$1" .c)\.o$"; }

# A file of the kernel's modules, as the library has it (config/Rules.am): the file, its object.
compile() {
    # shellcheck disable=SC2086
    gcc -O2 -std=gnu99 -fno-strict-aliasing $library -I"$tree/include" -I"$tree/module/icp/include" $headers \
        -idirafter "$tree/include/os/linux/zfs" -c "$tree/$1" -o "$2"
}

pack() {
    tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
        --pax-option=delete=atime,delete=ctime \
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
}

# The files with a planted bug, where there is one: see planted.sh. The library has not all of the modules.
for file in $(cat /planted 2> /dev/null || true); do
    if ! is_of_library "$file"; then
        pack
        exit
    fi
    compile "$file" "/objects/$(basename "$file" .c).o"
done
# These objects stand in for the library's, and our vdevs for those of the library, which open files.
# shellcheck disable=SC2046,SC2086
gcc $ours $library -static -s -Wl,--build-id=none -Wl,--wrap=vdev_disk_ops -o /stage/native-recover \
    $(find /objects -name '*.o' | sort) /programs/*.c \
    "$libraries/libzpool.a" "$libraries/libnvpair.a" $rest -ltirpc -lz -lm -lpthread
pack
