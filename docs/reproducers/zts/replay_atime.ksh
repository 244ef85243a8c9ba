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
#	The replay of the intent log restores an access time.
#
# STRATEGY:
#	1. Create a pool on a file, and a file in it
#	2. Freeze the pool: from now on the intent log alone is written
#	3. Set both times of the file, and fsync it
#	4. Take a copy of the pool's file for its state after a crash
#	5. Import the copy: both times are as they were set
#

verify_runnable "global"

POOL=replay_atime
DIR=$TEST_BASE_DIR/replay_atime
FILE=$DIR/mnt/file

function cleanup
{
	poolexists $POOL && destroy_pool $POOL
	log_must rm -rf $DIR
}

log_assert "The replay of the intent log restores an access time"
log_onexit cleanup

log_must mkdir -p $DIR/crash
log_must truncate -s $MINVDEVSIZE $DIR/disk
log_must zpool create -O mountpoint=$DIR/mnt $POOL $DIR/disk
log_must touch $FILE
log_must sync $FILE
sync_pool $POOL
log_must zpool freeze $POOL

log_must touch -d @1000000000 $FILE
log_must sync $FILE
log_must cp --sparse=always $DIR/disk $DIR/crash/disk
destroy_pool $POOL
log_must zpool import -f -d $DIR/crash $POOL

log_must test "$(stat -c %Y $FILE)" = 1000000000
log_must test "$(stat -c %X $FILE)" = 1000000000

log_pass "The replay of the intent log restores an access time"
