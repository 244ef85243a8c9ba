/* One recovery of a pool after the other, and the content of its volume. */
#ifndef TORTURE_POOL_H
#define TORTURE_POOL_H

#include "health.h"
#include "mark.h"

#include <libnvpair.h>
#include <stdint.h>

typedef struct {
  int import_errno, volume_errno;
  mark_t content;
  health_t health;
  uint64_t bytes, import_us, volume_us, read_us, export_us;
} recovery_t;

/* Start ZFS in this process. */
void pool_begin(void);
/* The parts of the volume to read from now on: pairs of 64-bit numbers, offset and length in bytes. */
void pool_take_ranges(const char *path, uint64_t volume_bytes);
/* Import, claim, replay the intent log, read the volume, and export without a write. */
recovery_t pool_recover(nvlist_t *config);
/* The content that was read last, as a sparse file. */
void pool_copy(const char *path);

#endif
