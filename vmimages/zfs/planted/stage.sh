#!/bin/sh
# Runs before `../stage.sh`, with the patch in /planted.patch: plants its bug in the sources that DKMS builds.
set -eu
cd /usr/src/zfs-*
busybox patch -p1 -i /planted.patch
rm /planted.patch
