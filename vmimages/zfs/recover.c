/*
 * Recovers one crash state after another in a NAS that stays up: imports the pool, reads the volume, exports.
 *
 *   recover config FILE FOLDER   write the pool's configuration, by the disks in that folder
 *   recover state FILE RANGES [COPY]   import by that configuration; read the ranges of the volume; export
 *
 * RANGES holds pairs of 64-bit numbers, offset and length in bytes. With COPY, a device, the ranges are written
 * there, too. Each command prints one JSON object. The export is a hard one: it writes nothing (libzfs.h,
 * zpool_export_force), so the disks stay as the recovery left them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libnvpair.h>
#include <libzfs.h>
#include <libzutil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONFIG_MAX = 1 << 20, CHUNK = 1 << 20, OPEN_TRIES = 20000, EXPORT_TRIES = 500 };
static const char POOL[] = "tank";
static const char VOLUME[] = "/dev/zd0";

static uint64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static int fail(const char *what, int code) {
  printf("{\"failed\": \"%s\", \"errno\": %d}\n", what, code);
  return 1;
}

/* The configuration with which `zpool import` would import the pool. */
static int write_config(const char *file, char *folder) {
  libzfs_handle_t *zfs = libzfs_init();
  if (zfs == NULL) return fail("start", errno);
  libpc_handle_t handle = {.lpc_ops = &libzfs_config_ops, .lpc_lib_handle = zfs};
  importargs_t wanted = {.path = &folder, .paths = 1, .poolname = POOL};
  nvlist_t *config = NULL;
  const int error = zpool_find_config(&handle, POOL, &config, &wanted);
  if (error != 0) return fail("config", error);
  size_t size;
  char *packed = fnvlist_pack(config, &size);
  FILE *out = fopen(file, "w");
  if (out == NULL || fwrite(packed, 1, size, out) != size || fclose(out) != 0) return fail("write", errno);
  printf("{\"bytes\": %zu}\n", size);
  return 0;
}

static nvlist_t *read_config(const char *file) {
  static char packed[CONFIG_MAX];
  FILE *in = fopen(file, "r");
  if (in == NULL) return NULL;
  const size_t size = fread(packed, 1, sizeof packed, in);
  fclose(in);
  nvlist_t *config = NULL;
  return nvlist_unpack(packed, size, &config, 0) == 0 ? config : NULL;
}

/* A 128-bit mark of the content: two lanes of multiply and fold, which depend on the order. */
typedef struct { uint64_t a, b; } mark_t;

static uint64_t folded(uint64_t x, uint64_t y) {
  const __uint128_t product = (__uint128_t)x * y;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void mark(mark_t *mark, const void *data, size_t bytes) {
  const uint64_t *word = data;
  for (size_t i = 0; i < bytes / 8; i += 2) {
    mark->a = folded(mark->a ^ word[i] ^ 0xa0761d6478bd642f, word[i + 1] ^ 0xe7037ed1a0b428db);
    mark->b = folded(mark->b ^ word[i + 1] ^ 0x8ebc6af09c88c6e3, word[i] ^ 0x589965cc75374cc3);
  }
}

/* Read the ranges; returns 0, or the errno of the first failed read or copy. */
static int read_ranges(int volume, int copy, FILE *ranges, mark_t *content, uint64_t *bytes) {
  static char buffer[CHUNK] __attribute__((aligned(4096)));
  uint64_t range[2];
  while (fread(range, sizeof range[0], 2, ranges) == 2) {
    for (uint64_t at = range[0], end = range[0] + range[1]; at < end;) {
      const size_t length = end - at < CHUNK ? end - at : CHUNK;
      if (pread(volume, buffer, length, at) != (ssize_t)length) return errno ? errno : EIO;
      if (copy >= 0 && pwrite(copy, buffer, length, at) != (ssize_t)length) return errno ? errno : EIO;
      mark(content, buffer, length);
      at += length;
      *bytes += length;
    }
  }
  return 0;
}

static int recover(const char *config_file, const char *ranges_file, const char *copy_file) {
  libzfs_handle_t *zfs = libzfs_init();
  nvlist_t *config = read_config(config_file), *properties = fnvlist_alloc();
  FILE *ranges = fopen(ranges_file, "r");
  const int copy = copy_file == NULL ? -1 : open(copy_file, O_RDWR | O_DIRECT);
  if (zfs == NULL || config == NULL || ranges == NULL) return fail("start", errno);
  if (copy_file != NULL && copy < 0) return fail("copy", errno);
  fnvlist_add_string(properties, "cachefile", "none");
  libzfs_print_on_error(zfs, B_FALSE);
  const uint64_t begun = now_us();
  if (zpool_import_props(zfs, config, NULL, properties, 0) != 0) {
    printf("{\"import\": %d, \"reason\": \"%s\"}\n", libzfs_errno(zfs), libzfs_error_action(zfs));
    return 0;
  }
  const uint64_t imported = now_us();
  /* the device appears once its log was replayed (module/os/linux/zfs/zvol_os.c, zvol_os_create_minor) */
  int volume = -1, error = 0;
  for (int tries = 0; tries < OPEN_TRIES && (volume = open(VOLUME, O_RDONLY | O_DIRECT)) < 0; tries++) usleep(500);
  if (volume < 0) error = errno;
  const uint64_t opened = now_us();
  mark_t content = {1, 2};
  uint64_t bytes = 0;
  if (volume >= 0) {
    error = read_ranges(volume, copy, ranges, &content, &bytes);
    close(volume);
  }
  const uint64_t read_out = now_us();
  zpool_handle_t *pool = zpool_open_canfail(zfs, POOL);
  int exported = -1;
  for (int tries = 0; pool != NULL && tries < EXPORT_TRIES; tries++) {
    if ((exported = zpool_export_force(pool, "replay")) == 0) break;
    usleep(2000);
  }
  printf("{\"import\": 0, \"volume\": %d, \"export\": %d, \"content\": \"%016" PRIx64 "%016" PRIx64 "\", \"bytes\": %" PRIu64
      ", \"import_us\": %" PRIu64 ", \"volume_us\": %" PRIu64 ", \"read_us\": %" PRIu64 ", \"export_us\": %" PRIu64 "}\n",
      error, exported, content.a, content.b, bytes, imported - begun, opened - imported, read_out - opened, now_us() - read_out);
  return 0;
}

int main(int count, char **words) {
  if (count == 4 && strcmp(words[1], "config") == 0) return write_config(words[2], words[3]);
  if (count > 3 && strcmp(words[1], "state") == 0) return recover(words[2], words[3], count > 4 ? words[4] : NULL);
  return fail("usage", EINVAL);
}
