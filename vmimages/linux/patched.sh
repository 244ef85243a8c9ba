#!/bin/sh
# Runs in a root with a kernel's headers and its source package, and patches in /patches. Leaves /stage.tar: the
# modules whose sources the patches change, where the kernel has them, and the kernel's release.
set -eu
headers=$(echo /usr/src/linux-headers-*-cloud-amd64)
release=${headers#/usr/src/linux-headers-}
source=$(echo /usr/src/linux-source-*.tar.xz)
package=$(basename "$source" .tar.xz)
version() { dpkg-query --show --showformat '${Version}' "$1"; }
if [ "$(version "linux-headers-$release")" != "$(version "$package")" ]; then
    echo "the headers are of $(version "linux-headers-$release"), the source is $(version "$package")" >&2
    exit 1
fi

# The folder at the top, e.g. fs: sources of modules include headers of their neighbours.
mkdir /build
cut -d / -f 1 /patches/touched | sort -u | sed "s|^|$package/|" |
    xargs tar --extract --strip-components 1 --directory /build --file "$source"
cd /build
for patch in /patches/*.patch; do patch -p1 --forward --input "$patch"; done

# The folder with a Makefile from which a changed file is built. One build for all: modules use each other.
while read -r name; do
    folder=${name%/*}
    while [ ! -e "$folder/Makefile" ] && [ ! -e "$folder/Kbuild" ]; do folder=${folder%/*}; done
    echo "$folder"
done < /patches/touched | sort -u > /folders
sed 's|.*|obj-y += &/|' /folders > Kbuild
make -j "$(nproc)" -C "$headers" M=/build modules

# A changed file that is part of no module would be left out in silence: it is part of vmlinuz.
grep '\.c$' /patches/touched | while read -r name; do
    object=${name%.c}.o
    find . -name '*.mod' -exec cat {} + | tr ' ' '\n' | grep -q -x -e "/build/$object" -e "$object" || {
        echo "$name is part of no module of this kernel" >&2
        exit 1
    }
done

find . -name '*.ko' | while read -r module; do
    mkdir -p "/stage/usr/lib/modules/$release/kernel/${module%/*}"
    strip --strip-debug --remove-section=.BTF --remove-section=.BTF.base "$module"
    cp "$module" "/stage/usr/lib/modules/$release/kernel/${module#./}"
done
echo "$release" > /stage/release
tar --create --file /stage.tar --directory /stage --sort=name --format=pax \
    --pax-option=delete=atime,delete=ctime \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
