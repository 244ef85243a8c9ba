/* The health of an imported pool, from its configuration with statistics (lib/libzfs/libzfs_status.c reads the same). */
#ifndef TORTURE_HEALTH_H
#define TORTURE_HEALTH_H

#include <libnvpair.h>
#include <stdint.h>
#include <sys/fs/zfs.h>

typedef struct {
  uint64_t state;   /* vdev_state_t of the root */
  uint64_t errors;  /* damaged blocks that the pool knows of */
} health_t;

static inline health_t health_of(nvlist_t *config) {
  health_t health = {.state = VDEV_STATE_UNKNOWN};
  nvlist_t *root;
  uint64_t *words;
  uint_t count;
  if (config == NULL || nvlist_lookup_nvlist(config, ZPOOL_CONFIG_VDEV_TREE, &root) != 0) return health;
  if (nvlist_lookup_uint64_array(root, ZPOOL_CONFIG_VDEV_STATS, &words, &count) != 0) return health;
  health.state = ((const vdev_stat_t *)words)->vs_state;
  /* it is absent where there are none */
  (void)nvlist_lookup_uint64(config, ZPOOL_CONFIG_ERRCOUNT, &health.errors);
  return health;
}

#endif
