#include "pool.h"

#include "disks.h"
#include "versions.h"

#include <sys/zfs_context.h>
#include <sys/dmu.h>
#include <sys/fs/zfs.h>
#include <sys/spa.h>
#include <sys/zil.h>
#include <sys/stat.h>
#if __has_include(<libzpool.h>)
#include <libzpool.h>  /* since 2.4.99 kernel_init is here */
#endif

enum { CHUNK = 1 << 20, ARC_MIN_BYTES = 64 << 20, ARC_MAX_BYTES = 256 << 20 };
/* The object of a volume's data (include/sys/zvol_impl.h), which no header of the library has. */
static const uint64_t VOLUME_DATA = 1;
/* The memory of the library's cache (module/zfs/arc.c); the header of these needs others that are not packaged. */
extern uint64_t zfs_arc_min, zfs_arc_max;
static char POOL[] = "tank";
static const char VOLUME[] = "tank/vm";
static char VOLUME_TAG[] = "recovery";

typedef struct {
  uint64_t offset, length;
} range_t;

static range_t *ranges;
static size_t ranges_count;
static char *volume_content;
static uint64_t volume_size;

/* Referenced by the library for crash dumps; its own would bring udev and blkid along. */
const char *zfs_basename(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static uint64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

void pool_begin(void) {
  zfs_arc_min = ARC_MIN_BYTES;
  zfs_arc_max = ARC_MAX_BYTES;
  zfs_flags = 0;  /* as in the NAS: the library's own default checks each block once more */
  kernel_init(SPA_MODE_READ | SPA_MODE_WRITE);
}

void pool_take_ranges(const char *path, uint64_t volume_bytes) {
  struct stat status;
  FILE *file = fopen(path, "re");
  if (file == NULL || fstat(fileno(file), &status) != 0) fail("%s: %m", path);
  ranges_count = (size_t)status.st_size / sizeof ranges[0];
  ranges = realloc(ranges, (ranges_count + 1) * sizeof ranges[0]);
  if (ranges == NULL || fread(ranges, sizeof ranges[0], ranges_count, file) != ranges_count) fail("%s: %m", path);
  fclose(file);
  for (size_t i = 0; i < ranges_count; i++)
    if (ranges[i].offset > volume_bytes || ranges[i].length > volume_bytes - ranges[i].offset)
      fail("the volume has no bytes %llu + %llu", (u_longlong_t)ranges[i].offset, (u_longlong_t)ranges[i].length);
  if (volume_content != NULL) munmap(volume_content, volume_size);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  volume_content = mmap(NULL, volume_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (volume_content == MAP_FAILED) fail("no room for the volume: %m");
  volume_size = volume_bytes;
}

/* The volume while its log is replayed. */
typedef struct {
  objset_t *objects;
  zilog_t *log;
} volume_t;

/* As module/zfs/zvol.c, zvol_replay_write. */
static int replay_write(void *arg, void *record, boolean_t byteswap) {
  volume_t *volume = arg;
  lr_write_t *write = record;
  if (byteswap) byteswap_uint64_array(write, sizeof *write);
  uint64_t offset = write->lr_offset, length = write->lr_length;
  /* a block that dmu_sync() wrote is written as a whole */
  if (write->lr_common.lrc_reclen == sizeof *write) {
    const uint64_t block = BP_GET_LSIZE(&write->lr_blkptr);
    if (length < block) {
      offset -= offset % block;
      length = block;
    }
  }
  dmu_tx_t *tx = dmu_tx_create(volume->objects);
  dmu_tx_hold_write(tx, VOLUME_DATA, offset, (int)length);
  const int error = dmu_tx_assign(tx, DMU_TX_WAIT);
  if (error != 0) {
    dmu_tx_abort(tx);
    return error;
  }
  /* the data follow the record */
  WRITE_OBJECT(volume->objects, VOLUME_DATA, offset, length, write + 1, tx);
  (void)zil_replaying(volume->log, tx);
  dmu_tx_commit(tx);
  return 0;
}

/* As module/zfs/zvol.c, zvol_replay_truncate. */
static int replay_truncate(void *arg, void *record, boolean_t byteswap) {
  volume_t *volume = arg;
  lr_truncate_t *truncate = record;
  if (byteswap) byteswap_uint64_array(truncate, sizeof *truncate);
  dmu_tx_t *tx = dmu_tx_create(volume->objects);
  dmu_tx_mark_netfree(tx);
  const int error = dmu_tx_assign(tx, DMU_TX_WAIT);
  if (error != 0) {
    dmu_tx_abort(tx);
    return error;
  }
  (void)zil_replaying(volume->log, tx);
  dmu_tx_commit(tx);
  return dmu_free_long_range(volume->objects, VOLUME_DATA, truncate->lr_offset, truncate->lr_length);
}

#ifdef TX_CLONE_RANGE
/* A clone needs the kernel's volume. No load clones; the process ends, and the kernel's ZFS recovers the state. */
static int replay_clone(void *arg, void *record, boolean_t byteswap) {
  (void)arg, (void)record, (void)byteswap;
  fail("the log has a clone");
}
#endif

static int replay_nothing(void *arg, void *record, boolean_t byteswap) {
  (void)arg, (void)record, (void)byteswap;
  return ENOTSUP;
}

/* As module/zfs/zvol.c, zvol_replay_vector. */
static zil_replay_func_t *const replay[TX_MAX_TYPE] = {
  [0 ... TX_WRITE - 1] = replay_nothing,
  [TX_WRITE] = replay_write,
  [TX_TRUNCATE] = replay_truncate,
#ifdef TX_CLONE_RANGE
  [TX_TRUNCATE + 1 ... TX_CLONE_RANGE - 1] = replay_nothing,
  [TX_CLONE_RANGE] = replay_clone,
#else
  [TX_TRUNCATE + 1 ... TX_MAX_TYPE - 1] = replay_nothing,
#endif
};

/* As module/os/linux/zfs/zvol_os.c, zvol_os_create_minor. Returns 0 or an errno. */
static int open_volume(volume_t *volume) {
  const int error = dmu_objset_own(VOLUME, DMU_OST_ZVOL, B_TRUE, B_TRUE, VOLUME_TAG, &volume->objects);
  if (error != 0) return error;
  volume->log = OPEN_LOG(volume->objects);
  if (REPLAY_LOG(volume->objects, volume, replay)) zil_close(volume->log);
  volume->log = NULL;
  return 0;
}

static bool is_zeroes(const char *bytes, size_t length) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Read the ranges; returns 0, or the errno of the first failed read. */
static int read_ranges(objset_t *objects, recovery_t *recovery) {
  for (size_t i = 0; i < ranges_count; i++) {
    for (uint64_t at = ranges[i].offset, end = at + ranges[i].length; at < end;) {
      const size_t length = end - at < CHUNK ? end - at : CHUNK;
      char *const into = volume_content + at;
      const int error = dmu_read(objects, VOLUME_DATA, at, length, into, DMU_READ_NO_PREFETCH);
      if (error != 0) return error;
      mark(&recovery->content, into, length, at);
      /* the pages of a hole need no memory */
      if (length == CHUNK && is_zeroes(into, length)) (void)madvise(into, length, MADV_DONTNEED);
      at += length;
      recovery->bytes += length;
    }
  }
  return 0;
}

static int import(nvlist_t *config, uint64_t flags) {
  nvlist_t *own_config = fnvlist_dup(config), *properties = fnvlist_alloc();
  fnvlist_add_string(properties, "cachefile", "none");
  const int error = spa_import(POOL, own_config, properties, flags);
  fnvlist_free(own_config);
  fnvlist_free(properties);
  return error;
}

static health_t pool_health(void) {
  nvlist_t *config = NULL;
  /* with an error it still gives what it knows */
  (void)spa_get_stats(POOL, &config, NULL, 0);
  const health_t health = health_of(config);
  nvlist_free(config);
  return health;
}

recovery_t pool_recover(nvlist_t *config) {
  recovery_t recovery = {.content = MARK_OF_NOTHING};
  volume_t volume = {0};
  const uint64_t begun = now_us();
  recovery.import_errno = import(config, ZFS_IMPORT_NORMAL);
  /* as `zpool import -m`, an operator's next try: without its log device a pool comes back only so */
  if (recovery.import_errno != 0) recovery.import_errno = import(config, ZFS_IMPORT_MISSING_LOG);
  const uint64_t imported = now_us();
  recovery.import_us = imported - begun;
  if (recovery.import_errno == 0) recovery.volume_errno = open_volume(&volume);
  if (recovery.import_errno != 0) return recovery;
  const uint64_t opened = now_us();
  recovery.volume_us = opened - imported;
  if (recovery.volume_errno == 0) {
    recovery.volume_errno = read_ranges(volume.objects, &recovery);
    dmu_objset_disown(volume.objects, B_TRUE, VOLUME_TAG);
  }
  const uint64_t read_out = now_us();
  recovery.read_us = read_out - opened;
  recovery.health = pool_health();
  const int error = spa_export(POOL, NULL, B_TRUE, B_TRUE);
  if (error != 0) fail("the export failed: %s", strerror(error));
  recovery.export_us = now_us() - read_out;
  return recovery;
}

void pool_copy(const char *path) {
  const int image = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (image < 0 || ftruncate(image, (off_t)volume_size) != 0) fail("%s: %m", path);
  for (size_t i = 0; i < ranges_count; i++) {
    for (uint64_t at = ranges[i].offset, end = at + ranges[i].length; at < end;) {
      const size_t length = end - at < CHUNK ? end - at : CHUNK;
      const char *const from = volume_content + at;
      if (!is_zeroes(from, length) && pwrite(image, from, length, (off_t)at) != (ssize_t)length) fail("%s: %m", path);
      at += length;
    }
  }
  if (close(image) != 0) fail("%s: %m", path);
}
