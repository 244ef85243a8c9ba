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
#	With sync=always fallocate(2) is in the intent log when it returns.
#
# STRATEGY:
#	1. Create a pool on a file, with sync=always, and two files in it
#	2. Freeze the pool: from now on the intent log alone is written
#	3. Punch a hole into the first file, and extend the second one
#	4. Take a copy of the pool's file for its state after a crash
#	5. Import the copy: the hole and the extension are there
#

verify_runnable "global"

POOL=fallocate_always
DIR=$TEST_BASE_DIR/fallocate_always

function cleanup
{
	poolexists $POOL && destroy_pool $POOL
	log_must rm -rf $DIR
}

# fallocate(1) calls fsync before it ends.
function fallocate_only # file mode bytes
{
	python3 -c "
import ctypes, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR)
length = ctypes.c_longlong(int(sys.argv[3]))
sys.exit(ctypes.CDLL(None).fallocate(descriptor, int(sys.argv[2]), ctypes.c_longlong(0), length) != 0)
" "$@"
}

log_assert "With sync=always fallocate(2) survives a crash"
log_onexit cleanup

log_must mkdir -p $DIR/crash
log_must truncate -s $MINVDEVSIZE $DIR/disk
log_must zpool create -O sync=always -O mountpoint=$DIR/mnt $POOL $DIR/disk
for file in punched extended; do
	log_must dd if=/dev/urandom of=$DIR/mnt/$file bs=64k count=1
done
sync_pool $POOL
log_must zpool freeze $POOL

log_must fallocate_only $DIR/mnt/punched 3 65536
log_must fallocate_only $DIR/mnt/extended 0 131072

log_must cp --sparse=always $DIR/disk $DIR/crash/disk
destroy_pool $POOL
log_must zpool import -f -d $DIR/crash $POOL

log_must eval "head -c 65536 /dev/zero | cmp - $DIR/mnt/punched"
log_must test $(stat_size $DIR/mnt/extended) -eq 131072

log_pass "With sync=always fallocate(2) survives a crash"
