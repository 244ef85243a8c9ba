/*
 * Recovers one crash state after another in a NAS that stays up, at the word of a virtio-serial port.
 *
 *   recover PORT FOLDER VOLUME RANGES COPY CONFIG   the pool's disks lie in FOLDER
 *
 * VOLUME is the zvol's device, an image in the mounted dataset, or the mount point of a dataset with files. RANGES holds
 * pairs of 64-bit numbers, offset and length in bytes; each state reads it anew. CONFIG is `anew` where the pool's disks
 * change: each state is then searched for the pool's configuration. Otherwise it is `kept` from the first state, as a NAS
 * has it from its cache file. The host sends a line for each step, and gets one JSON object for each:
 *
 *   state    find the pool, import it, and read the ranges of the volume
 *   copy     write the ranges of the volume to the device COPY
 *   export   export the pool
 *
 * The export is a hard one: it writes nothing (libzfs.h, zpool_export_force), so the disks stay as the
 * recovery left them.
 */
#define _GNU_SOURCE
#include "health.h"
#include "mark.h"
#include "tree.h"
#include "versions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libnvpair.h>
#include <libzfs.h>
#include <libzutil.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONFIG_MAX = 1 << 20, CHUNK = 1 << 20, OPEN_TRIES = 20000, QUICK_TRIES = 500, EXPORT_TRIES = 2000 };
static const char POOL[] = "tank", DATASET[] = "tank/vm";
static char MOUNT_POINT[] = "/tank/vm";
static const char *volume_file;
static bool has_files, in_dataset, keeps_config;
static nvlist_t *kept_config;
static libzfs_handle_t *zfs;
static zpool_handle_t *pool;
static FILE *host;

static uint64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void fail(const char *step, int code) {
  fprintf(host, "{\"failed\": \"%s\", \"errno\": %d}\n", step, code);
}

/* Find the pool as `zpool import` does, which loads it once to look; 0 or an errno. */
static int find_config(char *folder, nvlist_t **config) {
  importargs_t wanted = {.path = &folder, .paths = 1, .poolname = POOL};
  const int missing = kept_config == NULL ? FIND_CONFIG(zfs, POOL, config, &wanted) : 0;
  if (kept_config != NULL) *config = fnvlist_dup(kept_config);
  else if (keeps_config && missing == 0) kept_config = fnvlist_dup(*config);
  return missing;
}

/* Read the ranges, and copy or mark them; returns 0, or the errno of the first failure. */
static int read_ranges(const char *ranges_file, int volume, int copy, mark_t *content) {
  static char buffer[CHUNK] __attribute__((aligned(4096)));
  uint64_t range[2];
  int error = 0;
  FILE *ranges = fopen(ranges_file, "r");
  if (ranges == NULL) return errno;
  while (error == 0 && fread(range, sizeof range[0], 2, ranges) == 2) {
    for (uint64_t at = range[0], end = range[0] + range[1]; error == 0 && at < end;) {
      const size_t length = end - at < CHUNK ? end - at : CHUNK;
      errno = 0;
      if (pread(volume, buffer, length, at) != (ssize_t)length) error = errno ? errno : EIO;
      else if (copy >= 0 && pwrite(copy, buffer, length, at) != (ssize_t)length) error = errno ? errno : EIO;
      if (copy < 0) mark(content, buffer, length, at);
      at += length;
    }
  }
  fclose(ranges);
  return error;
}

/* The volume, to read. A zvol appears once its log was replayed (module/os/linux/zfs/zvol_os.c,
 * zvol_os_create_minor); a dataset replays its log when it is mounted (zfs_vfsops.c, zfsvfs_setup). */
static int open_volume(void) {
  if (in_dataset) return open(volume_file, O_RDONLY);
  int volume = -1;
  for (int tries = 0; tries < OPEN_TRIES && (volume = open(volume_file, O_RDONLY | O_DIRECT)) < 0; tries++) usleep(500);
  return volume;
}

static void recover(char *folder, const char *ranges_file) {
  nvlist_t *config = NULL;
  const int missing = find_config(folder, &config);
  if (missing != 0) {
    fprintf(host, "{\"import\": %d, \"reason\": \"no such pool available\"}\n", missing);
    return;
  }
  nvlist_t *properties = fnvlist_alloc();
  fnvlist_add_string(properties, "cachefile", "none");
  const uint64_t begun = now_us();
  int refused = zpool_import_props(zfs, config, NULL, properties, 0);
  /* as `zpool import -m`, an operator's next try: without its log device a pool comes back only so */
  if (refused) refused = zpool_import_props(zfs, config, NULL, properties, ZFS_IMPORT_MISSING_LOG);
  fnvlist_free(properties);
  nvlist_free(config);
  if (refused) {
    fprintf(host, "{\"import\": %d, \"reason\": \"%s\"}\n", libzfs_errno(zfs), libzfs_error_action(zfs));
    return;
  }
  const uint64_t imported = now_us();
  in_dataset = strncmp(volume_file, "/dev/", 5) != 0;
  const int volume = !in_dataset || mount(DATASET, MOUNT_POINT, "zfs", 0, "") == 0 ? open_volume() : -1;
  int error = volume < 0 ? errno : 0;
  const uint64_t opened = now_us();
  mark_t content = MARK_OF_NOTHING;
  if (volume >= 0) {
    error = has_files ? mark_tree(MOUNT_POINT, &content) : read_ranges(ranges_file, volume, -1, &content);
    close(volume);
  }
  const uint64_t read_out = now_us();
  pool = zpool_open_canfail(zfs, POOL);
  const health_t health = health_of(pool == NULL ? NULL : zpool_get_config(pool, NULL));
  fprintf(host, "{\"import\": 0, \"volume\": %d, \"content\": \"%016" PRIx64 "%016" PRIx64 "\", \"state\": %" PRIu64
      ", \"errors\": %" PRIu64 ", \"import_us\": %" PRIu64 ", \"volume_us\": %" PRIu64 ", \"read_us\": %" PRIu64 "}\n",
      error, content.a, content.b, health.state, health.errors, imported - begun, opened - imported, read_out - opened);
}

static void copy_volume(const char *ranges_file, const char *copy_file) {
  const int volume = open_volume(), copy = open(copy_file, O_WRONLY | O_DIRECT);
  const int error = volume < 0 || copy < 0 ? errno : read_ranges(ranges_file, volume, copy, NULL);
  if (volume >= 0) close(volume);
  if (copy >= 0) close(copy);
  fprintf(host, "{\"copy\": %d}\n", error);
}

static void export_pool(void) {
  const uint64_t begun = now_us();
  int exported = -1;
  for (int tries = 0; pool != NULL && exported != 0 && tries < EXPORT_TRIES; tries++) {
    if (in_dataset) umount2(MOUNT_POINT, 0);  /* a server may need a moment to let go of the files */
    exported = zpool_export_force(pool, "replay");
    if (exported != 0) usleep(tries < QUICK_TRIES ? 2000 : 20000);
  }
  if (pool != NULL) zpool_close(pool);
  pool = NULL;
  fprintf(host, "{\"export\": %d, \"export_us\": %" PRIu64 "}\n", exported, now_us() - begun);
}

int main(int count, char **words) {
  char line[32];
  const int port = count == 7 ? open(words[1], O_RDWR) : -1;
  FILE *in = fdopen(port, "r");
  if (in == NULL || (host = fdopen(dup(port), "w")) == NULL || (zfs = libzfs_init()) == NULL) return 1;
  setlinebuf(host);
  libzfs_print_on_error(zfs, B_FALSE);
  volume_file = words[3];
  has_files = strcmp(volume_file, MOUNT_POINT) == 0;
  keeps_config = strcmp(words[6], "kept") == 0;
  if (mkdir("/tank", 0755) == 0) mkdir(MOUNT_POINT, 0755);
  fprintf(host, "{\"ready\": true}\n");
  while (fgets(line, sizeof line, in) != NULL) {
    if (strcmp(line, "state\n") == 0) recover(words[2], words[4]);
    else if (strcmp(line, "copy\n") == 0) copy_volume(words[4], words[5]);
    else if (strcmp(line, "export\n") == 0) export_pool();
    else fail("line", EINVAL);
  }
  return 0;
}
