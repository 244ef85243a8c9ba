/*
 * The disks of a NAS after a cut, in the memory of this process.
 *
 * A disk is a list of writes, in the order in which they apply. A state consists of the first so many of them, its
 * patches on top, and all that was written since: see torture/facts/recording/layers.py, which makes the lists.
 */
#ifndef TORTURE_DISKS_H
#define TORTURE_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISKS_MAX = 64, FILES_MAX = 64, NAME_MAX_BYTES = 64 };
#define NO_FILE UINT32_MAX

typedef struct disk disk_t;

/* All offsets and lengths are bytes, and multiples of 512. Each function ends the process where it cannot do its part. */

/* Another file with payloads; files and disks are numbered in the order of their calls. */
void disks_map(const char *path);
void disks_add(const char *name, uint64_t bytes, uint32_t sector_bytes);
/* The lists of all disks: records of disk and file (32 bits each), offset, length, place in the file (64 bits each). */
void disks_load(const char *path);

size_t disks_count(void);
disk_t *disk_at(size_t number);
const char *disk_name(const disk_t *disk);
uint64_t disk_bytes(const disk_t *disk);
uint32_t disk_sector_bytes(const disk_t *disk);

/* Become another state: the first `settled` writes of its list, without anything written since. */
void disk_turn(disk_t *disk, uint32_t settled);
/* A surviving write of the state, after `disk_turn`; the file `NO_FILE` has zeroes. */
void disk_patch(disk_t *disk, uint32_t file, uint64_t offset, uint64_t length, uint64_t place);

/* Safe from many threads. False: the disk does not have these bytes. */
bool disk_read(disk_t *disk, void *into, uint64_t offset, uint64_t length);
bool disk_write(disk_t *disk, const void *from, uint64_t offset, uint64_t length);

/* The pages of 4096 bytes that were read since `disk_turn`: pairs of disk and page (32 bits each), in any order. It
 * leaves a page out that was written as a whole before: that page had nothing of the state left. */
void disks_copy_reads(const char *path);

/* Say why on standard error, and end the process. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
