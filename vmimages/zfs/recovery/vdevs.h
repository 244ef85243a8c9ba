/* The vdevs of a pool on the disks in memory: their partitions, their labels, and ZFS's requests to them. */
#ifndef TORTURE_VDEVS_H
#define TORTURE_VDEVS_H

#include <libnvpair.h>

/*
 * Find the pool's partition and label on each disk, as the disks are now. Returns the configuration with which
 * `zpool import` would import the pool. Returns NULL where the labels do not name a whole pool.
 */
nvlist_t *vdevs_find(const char *pool);

#endif
