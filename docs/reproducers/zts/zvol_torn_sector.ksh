#!/bin/ksh -p
# SPDX-License-Identifier: CDDL-1.0

#
# This file and its contents are supplied under the terms of the
# Common Development and Distribution License ("CDDL"), version 1.0.
# You may only use this file in accordance with the terms of version
# 1.0 of the CDDL.
#
# A full copy of the text of the CDDL should have accompanied this
# source.  A copy of the CDDL is also available via the Internet at
# http://www.illumos.org/license/CDDL.
#
. $STF_SUITE/include/libtest.shlib

#
# DESCRIPTION:
#	A replayed intent log leaves every sector of a zvol old or new.
#
# STRATEGY:
#	1. Create a pool on a file, and a zvol full of A
#	2. Freeze the pool: from now on the intent log alone is written
#	3. Write 18 times 28 KiB of B to the zvol, and flush it
#	4. For each block of the log take a copy of the pool's file without it,
#	   which is a crash before that block was written
#	5. Import the copy: no sector of the zvol has both letters
#

verify_runnable "global"

POOL=torn_sector
DIR=$TEST_BASE_DIR/torn_sector
NODE=$ZVOL_DEVDIR/$POOL/vol

function cleanup
{
	poolexists $POOL && destroy_pool $POOL
	log_must rm -rf $DIR
}

function letters # letter bytes
{
	head -c $2 /dev/zero | tr '\0' $1
}

# Offsets in the file: a vdev begins behind two labels and the boot block.
function log_blocks
{
	zdb -e -p $DIR/whole -iiiii $POOL/vol |
	    sed -n 's/.*Block seqno.*DVA\[0\]=<0:\([0-9a-f]*\):.*/\1/p' |
	    while read offset; do echo $((0x$offset + 4194304)); done
}

log_assert "A replayed intent log leaves every sector of a zvol old or new"
log_onexit cleanup

log_must mkdir -p $DIR/live $DIR/whole $DIR/cut
log_must truncate -s $MINVDEVSIZE $DIR/live/disk
log_must zpool create $POOL $DIR/live/disk
log_must zfs create -V 16M -o volblocksize=64k $POOL/vol
block_device_wait $NODE
log_must eval "letters A 8388608 |
    dd of=$NODE bs=1M iflag=fullblock oflag=direct conv=fsync"
sync_pool $POOL
log_must zpool freeze $POOL
log_must eval "letters B $((18 * 28 * 1024)) |
    dd of=$NODE bs=28k iflag=fullblock oflag=direct conv=fsync,notrunc"
log_must cp $DIR/live/disk $DIR/whole/disk
log_must zpool export $POOL

for offset in $(log_blocks); do
	log_must cp $DIR/whole/disk $DIR/cut/disk
	log_must dd if=/dev/zero of=$DIR/cut/disk bs=512 count=8 \
	    seek=$((offset / 512)) conv=notrunc
	log_must zpool import -f -d $DIR/cut $POOL
	block_device_wait $NODE
	log_must eval "dd if=$NODE bs=1M count=8 |
	    dd cbs=512 conv=unblock > $DIR/sectors"
	log_must zpool export $POOL
	log_mustnot grep -q 'A.*B\|B.*A' $DIR/sectors
done

log_pass "A replayed intent log leaves every sector of a zvol old or new"
