#include "vdevs.h"

#include "disks.h"
#include "versions.h"

#include <sys/zfs_context.h>
#include <sys/fs/zfs.h>
#include <sys/spa.h>
#include <sys/vdev_impl.h>
#include <sys/zio.h>

enum { GPT_HEADER_BYTES = 512, FIRST_LBA = 32, LAST_LBA = 40, LABEL_BYTES = 256 << 10, NVLIST_AT = 16 << 10 };
enum { NVLIST_BYTES = VDEV_PHYS_SIZE - sizeof (zio_eck_t) };

/* The part of a disk that is a vdev. */
typedef struct {
  disk_t *disk;
  uint64_t start, bytes, guid;
} part_t;

static part_t parts[DISKS_MAX];

static uint64_t word_at(const char *bytes, size_t offset) {
  uint64_t word;
  memcpy(&word, bytes + offset, sizeof word);
  return word;
}

/* The first partition (UEFI specification 5.3), where ZFS has its vdev on a whole disk; without a table, all of it. */
static part_t part_of(disk_t *disk) {
  const uint64_t sector = disk_sector_bytes(disk);
  char header[GPT_HEADER_BYTES], entry[GPT_HEADER_BYTES];
  part_t part = {.disk = disk, .start = 0, .bytes = disk_bytes(disk)};
  if (!disk_read(disk, header, sector, sizeof header) || memcmp(header, "EFI PART", 8) != 0) return part;
  if (!disk_read(disk, entry, word_at(header, 72) * sector, sizeof entry)) return part;
  part.start = word_at(entry, FIRST_LBA) * sector;
  part.bytes = (word_at(entry, LAST_LBA) + 1) * sector - part.start;
  return part;
}

/* The first label that unpacks, as `zpool import` takes it (lib/libzutil/zutil_import.c); NULL where there is none. A
 * label of group 0 does not count: its disk is about to join the pool. */
static nvlist_t *label_of(const part_t *part, const char *pool) {
  static char packed[VDEV_PHYS_SIZE];
  /* a vdev has a multiple of the label's size (vdev_open, P2ALIGN) */
  const uint64_t end = part->bytes / LABEL_BYTES * LABEL_BYTES;
  const uint64_t places[] = {0, LABEL_BYTES, end - 2 * LABEL_BYTES, end - LABEL_BYTES};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    nvlist_t *label = NULL;
    const char *name;
    uint64_t txg;
    if (!disk_read(part->disk, packed, part->start + places[i] + NVLIST_AT, sizeof packed)) continue;
    if (nvlist_unpack(packed, NVLIST_BYTES, &label, 0) != 0) continue;
    const bool is_ours = LOOKUP_STRING(label, ZPOOL_CONFIG_POOL_NAME, &name) == 0 && strcmp(name, pool) == 0;
    if (is_ours && nvlist_lookup_uint64(label, ZPOOL_CONFIG_POOL_TXG, &txg) == 0 && txg != 0) return label;
    nvlist_free(label);
  }
  return NULL;
}

static nvlist_t *config_of(const char *pool, nvlist_t *label, nvlist_t *const *children, uint_t count) {
  const uint64_t guid = fnvlist_lookup_uint64(label, ZPOOL_CONFIG_POOL_GUID);
  nvlist_t *root = fnvlist_alloc(), *config = fnvlist_alloc();
  fnvlist_add_string(root, ZPOOL_CONFIG_TYPE, VDEV_TYPE_ROOT);
  fnvlist_add_uint64(root, ZPOOL_CONFIG_ID, 0);
  fnvlist_add_uint64(root, ZPOOL_CONFIG_GUID, guid);
  ADD_LISTS(root, ZPOOL_CONFIG_CHILDREN, children, count);
  fnvlist_add_uint64(config, ZPOOL_CONFIG_VERSION, fnvlist_lookup_uint64(label, ZPOOL_CONFIG_VERSION));
  fnvlist_add_string(config, ZPOOL_CONFIG_POOL_NAME, pool);
  fnvlist_add_uint64(config, ZPOOL_CONFIG_POOL_STATE, fnvlist_lookup_uint64(label, ZPOOL_CONFIG_POOL_STATE));
  fnvlist_add_uint64(config, ZPOOL_CONFIG_POOL_GUID, guid);
  fnvlist_add_uint64(config, ZPOOL_CONFIG_VDEV_CHILDREN, count);
  fnvlist_add_nvlist(config, ZPOOL_CONFIG_VDEV_TREE, root);
  return config;
}

/* The configuration by these labels, one for each disk; NULL where they do not name a whole pool. */
static nvlist_t *config_by(const char *pool, nvlist_t *const *labels) {
  nvlist_t *children[DISKS_MAX] = {NULL}, *newest = NULL;
  uint64_t newest_txg = 0, txgs[DISKS_MAX] = {0};
  for (size_t i = 0; i < disks_count(); i++) {
    if (labels[i] == NULL) continue;
    const uint64_t txg = fnvlist_lookup_uint64(labels[i], ZPOOL_CONFIG_POOL_TXG);
    if (newest == NULL || txg > newest_txg) newest = labels[i], newest_txg = txg;
    nvlist_t *tree = fnvlist_lookup_nvlist(labels[i], ZPOOL_CONFIG_VDEV_TREE);
    const uint64_t id = fnvlist_lookup_uint64(tree, ZPOOL_CONFIG_ID);
    if (id < DISKS_MAX && (children[id] == NULL || txg > txgs[id])) children[id] = tree, txgs[id] = txg;
  }
  if (newest == NULL) return NULL;
  const uint64_t count = fnvlist_lookup_uint64(newest, ZPOOL_CONFIG_VDEV_CHILDREN);
  for (uint64_t id = 0; id < count; id++)
    if (id >= DISKS_MAX || children[id] == NULL) return NULL;
  return config_of(pool, newest, children, (uint_t)count);
}

nvlist_t *vdevs_find(const char *pool) {
  nvlist_t *labels[DISKS_MAX] = {NULL};
  for (size_t i = 0; i < disks_count(); i++) {
    parts[i] = part_of(disk_at(i));
    labels[i] = label_of(&parts[i], pool);
    if (labels[i] != NULL) parts[i].guid = fnvlist_lookup_uint64(labels[i], ZPOOL_CONFIG_GUID);
  }
  nvlist_t *config = config_by(pool, labels);
  for (size_t i = 0; i < disks_count(); i++) nvlist_free(labels[i]);
  return config;
}

/* As for the NAS's kernel (module/os/linux/zfs/vdev_disk.c, vdev_disk_open), but a vdev is known by its GUID. */
static int open_vdev(vdev_t *vdev, uint64_t *bytes, uint64_t *max_bytes, uint64_t *logical, uint64_t *physical) {
  vdev->vdev_nonrot = B_TRUE;
  vdev->vdev_has_trim = B_FALSE;
  for (size_t i = 0; i < disks_count(); i++) {
    if (parts[i].guid != vdev->vdev_guid) continue;
    vdev->vdev_tsd = &parts[i];
    *bytes = *max_bytes = parts[i].bytes;
    *logical = *physical = highbit64(disk_sector_bytes(parts[i].disk)) - 1;
    return 0;
  }
  vdev->vdev_stat.vs_aux = VDEV_AUX_OPEN_FAILED;
  return ENOENT;
}

static void close_vdev(vdev_t *vdev) {
  if (!vdev->vdev_reopening) vdev->vdev_tsd = NULL;
}

/* A piece of a request, and the place on the disk of the next one. */
typedef struct {
  const part_t *part;
  uint64_t offset;
} cursor_t;

static int read_piece(void *into, size_t bytes, void *arg) {
  cursor_t *at = arg;
  if (!disk_read(at->part->disk, into, at->offset, bytes)) return EIO;
  at->offset += bytes;
  return 0;
}

static int write_piece(void *from, size_t bytes, void *arg) {
  cursor_t *at = arg;
  if (!disk_write(at->part->disk, from, at->offset, bytes)) return EIO;
  at->offset += bytes;
  return 0;
}

static void start_request(zio_t *zio) {
  const part_t *part = zio->io_vd->vdev_tsd;
  if (part == NULL) {
    zio->io_error = ENXIO;
  } else if (zio->io_type == ZIO_TYPE_READ || zio->io_type == ZIO_TYPE_WRITE) {
    cursor_t at = {.part = part, .offset = part->start + zio->io_offset};
    abd_iter_func_t *piece = zio->io_type == ZIO_TYPE_READ ? read_piece : write_piece;
    zio->io_error = abd_iterate_func(zio->io_abd, 0, zio->io_size, piece, &at);
  } else if (zio->io_type != ZIO_TYPE_FLUSH) {
    zio->io_error = ENOTSUP;
  }
  zio_interrupt(zio);
}

static void end_request(zio_t *zio) { (void)zio; }
static void keep_path(vdev_t *vdev) { (void)vdev; }

/*
 * Stands in for the library's own, which opens a file by the vdev's path: see `--wrap` in stage.sh.
 */
vdev_ops_t __wrap_vdev_disk_ops = {
  /* with credentials for a last argument in some versions (2.3.9, 2.4.4), which it can do without */
  .vdev_op_open = (vdev_open_func_t *)(uintptr_t)open_vdev,
  .vdev_op_close = close_vdev,
  SIZES_OF_VDEV,
  .vdev_op_min_asize = vdev_default_min_asize,
  .vdev_op_io_start = start_request,
  .vdev_op_io_done = end_request,
  .vdev_op_hold = keep_path,
  .vdev_op_rele = keep_path,
  .vdev_op_xlate = vdev_default_xlate,
  .vdev_op_type = VDEV_TYPE_DISK,
  .vdev_op_leaf = B_TRUE,
};
