#include "disks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, PAGE = 4096, SECTORS = PAGE / SECTOR, ALL_SECTORS = (1 << SECTORS) - 1 };
/* With more pages in memory, a disk gives all of them back before the next state. */
enum { RESIDENT_MAX = 64 << 20 >> 12 };

typedef struct {
  uint32_t disk, file;
  uint64_t offset, length, place;
} write_t;

typedef struct {
  const char *bytes;
  uint64_t length;
} file_t;

/* Whether a page is in memory, and whether its bytes are those of this state: unread, read, or replaced as a whole. */
enum { ABSENT, STALE, UNREAD, READ, REPLACED };

struct disk {
  char name[NAME_MAX_BYTES];
  uint64_t bytes, pages;
  uint32_t sector_bytes;
  write_t *writes;
  uint32_t count, settled;
  /* Of page P the writes that touch it are `touching[first[P]]` to `touching[first[P + 1]]`, ascending. */
  uint32_t *first, *touching;
  char *content;
  uint8_t *page_is;
  uint32_t *resident, residents;
  pthread_mutex_t lock;
};

static file_t files[FILES_MAX];
static uint32_t files_count;
static disk_t disks[DISKS_MAX];
static size_t count_of_disks;

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  fflush(stderr);
  _exit(2);  /* without the ends of the library's threads */
}

static void *reserved(uint64_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) fail("no room for %llu bytes: %m", (unsigned long long)bytes);
  return memory;
}

static file_t mapped(const char *path) {
  struct stat status;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || fstat(descriptor, &status) != 0) fail("%s: %m", path);
  file_t file = {.bytes = "", .length = (uint64_t)status.st_size};
  if (file.length > 0) file.bytes = mmap(NULL, file.length, PROT_READ, MAP_SHARED, descriptor, 0);
  if (file.bytes == MAP_FAILED) fail("%s: %m", path);
  close(descriptor);
  return file;
}

void disks_map(const char *path) {
  if (files_count == FILES_MAX) fail("more than %d files", FILES_MAX);
  files[files_count++] = mapped(path);
}

void disks_add(const char *name, uint64_t bytes, uint32_t sector_bytes) {
  if (count_of_disks == DISKS_MAX) fail("more than %d disks", DISKS_MAX);
  if (bytes == 0 || bytes % PAGE != 0 || strlen(name) >= NAME_MAX_BYTES) fail("no disk is %s", name);
  disk_t *disk = &disks[count_of_disks++];
  strcpy(disk->name, name);
  disk->bytes = bytes;
  disk->pages = bytes / PAGE;
  disk->sector_bytes = sector_bytes;
  disk->content = reserved(bytes);
  disk->page_is = reserved(disk->pages);
  disk->resident = reserved(disk->pages * sizeof disk->resident[0]);
  pthread_mutex_init(&disk->lock, NULL);
}

static bool has(const disk_t *disk, uint64_t offset, uint64_t length) {
  return offset <= disk->bytes && length <= disk->bytes - offset;
}

static void check(const disk_t *disk, const write_t *write) {
  if (write->offset % SECTOR != 0 || write->length % SECTOR != 0 || !has(disk, write->offset, write->length))
    fail("%s has no bytes %llu + %llu", disk->name, (unsigned long long)write->offset, (unsigned long long)write->length);
  if (write->file == NO_FILE) return;
  if (write->file >= files_count) fail("there is no file %u", write->file);
  const uint64_t length = files[write->file].length;
  if (write->place > length || write->length > length - write->place) fail("file %u is too short", write->file);
}

/* For each page the numbers of the writes that touch it. */
static void index_writes(disk_t *disk) {
  disk->first = calloc(disk->pages + 2, sizeof disk->first[0]);
  if (disk->first == NULL) fail("no memory for %s", disk->name);
  for (uint32_t number = 0; number < disk->count; number++) {
    const write_t *write = &disk->writes[number];
    for (uint64_t page = write->offset / PAGE; page * PAGE < write->offset + write->length; page++)
      disk->first[page + 2]++;
  }
  for (uint64_t page = 2; page < disk->pages + 2; page++) disk->first[page] += disk->first[page - 1];
  disk->touching = malloc((disk->first[disk->pages + 1] + 1) * sizeof disk->touching[0]);
  if (disk->touching == NULL) fail("no memory for %s", disk->name);
  for (uint32_t number = 0; number < disk->count; number++) {
    const write_t *write = &disk->writes[number];
    for (uint64_t page = write->offset / PAGE; page * PAGE < write->offset + write->length; page++)
      disk->touching[disk->first[page + 1]++] = number;
  }
}

void disks_load(const char *path) {
  const file_t file = mapped(path);
  const write_t *all = (const write_t *)file.bytes;
  const uint64_t total = file.length / sizeof all[0];
  if (total >= UINT32_MAX) fail("%s has too many writes", path);
  for (uint64_t i = 0; i < total; i++) {
    if (all[i].disk >= count_of_disks) fail("there is no disk %u", all[i].disk);
    disks[all[i].disk].count++;
  }
  for (size_t place = 0; place < count_of_disks; place++) {
    disk_t *disk = &disks[place];
    disk->writes = malloc((disk->count + 1) * sizeof disk->writes[0]);
    if (disk->writes == NULL) fail("no memory for %s", disk->name);
    disk->count = 0;
  }
  for (uint64_t i = 0; i < total; i++) {
    disk_t *disk = &disks[all[i].disk];
    check(disk, &all[i]);
    disk->writes[disk->count++] = all[i];
  }
  for (size_t place = 0; place < count_of_disks; place++) index_writes(&disks[place]);
  munmap((void *)file.bytes, file.length);
}

size_t disks_count(void) { return count_of_disks; }
disk_t *disk_at(size_t number) { return &disks[number]; }
const char *disk_name(const disk_t *disk) { return disk->name; }
uint64_t disk_bytes(const disk_t *disk) { return disk->bytes; }
uint32_t disk_sector_bytes(const disk_t *disk) { return disk->sector_bytes; }

void disk_turn(disk_t *disk, uint32_t settled) {
  if (settled > disk->count) fail("%s has no %u writes", disk->name, settled);
  disk->settled = settled;
  const bool gives_back = disk->residents > RESIDENT_MAX;
  for (uint32_t i = 0; i < disk->residents; i++) disk->page_is[disk->resident[i]] = gives_back ? ABSENT : STALE;
  if (!gives_back) return;
  if (madvise(disk->content, disk->bytes, MADV_DONTNEED) != 0) fail("%s: %m", disk->name);
  disk->residents = 0;
}

static void mark(disk_t *disk, uint64_t page, uint8_t as) {
  if (disk->page_is[page] == ABSENT) disk->resident[disk->residents++] = (uint32_t)page;
  disk->page_is[page] = as;
}

/* Copy the sectors of a page that a write has, and that no later write has. Returns those still without content. */
static unsigned copy_sectors(const write_t *write, uint64_t page_begin, char *into, unsigned left) {
  for (unsigned sector = 0; sector < SECTORS; sector++) {
    const uint64_t at = page_begin + sector * SECTOR;
    if (!(left >> sector & 1) || at < write->offset || at >= write->offset + write->length) continue;
    char *const here = into + sector * SECTOR;
    if (write->file == NO_FILE) memset(here, 0, SECTOR);
    else memcpy(here, files[write->file].bytes + write->place + (at - write->offset), SECTOR);
    left &= ~(1U << sector);
  }
  return left;
}

/* Bring a page to this state, with the disk's lock held. */
static void bring(disk_t *disk, uint64_t page) {
  if (disk->page_is[page] >= UNREAD) return;
  char *const into = disk->content + page * PAGE;
  const uint32_t *const begin = disk->touching + disk->first[page];
  unsigned left = ALL_SECTORS;
  /* the newest first: a sector has the content of its last write */
  for (const uint32_t *next = disk->touching + disk->first[page + 1]; left != 0 && next != begin;) {
    const uint32_t number = *--next;
    if (number < disk->settled) left = copy_sectors(&disk->writes[number], page * PAGE, into, left);
  }
  for (unsigned sector = 0; sector < SECTORS; sector++)
    if (left >> sector & 1) memset(into + sector * SECTOR, 0, SECTOR);
  mark(disk, page, UNREAD);
}

/* Bring a page whose bytes the recovery depends on. */
static void use(disk_t *disk, uint64_t page) {
  bring(disk, page);
  if (disk->page_is[page] == UNREAD) mark(disk, page, READ);
}

bool disk_read(disk_t *disk, void *into, uint64_t offset, uint64_t length) {
  if (!has(disk, offset, length)) return false;
  pthread_mutex_lock(&disk->lock);
  for (uint64_t page = offset / PAGE; page * PAGE < offset + length; page++) use(disk, page);
  memcpy(into, disk->content + offset, length);
  pthread_mutex_unlock(&disk->lock);
  return true;
}

static bool is_whole(uint64_t page, uint64_t offset, uint64_t length) {
  return offset <= page * PAGE && (page + 1) * PAGE <= offset + length;
}

bool disk_write(disk_t *disk, const void *from, uint64_t offset, uint64_t length) {
  if (!has(disk, offset, length)) return false;
  pthread_mutex_lock(&disk->lock);
  for (uint64_t page = offset / PAGE; page * PAGE < offset + length; page++) {
    if (!is_whole(page, offset, length)) use(disk, page);
    else if (disk->page_is[page] != READ) mark(disk, page, REPLACED);
  }
  memcpy(disk->content + offset, from, length);
  pthread_mutex_unlock(&disk->lock);
  return true;
}

void disk_patch(disk_t *disk, uint32_t file, uint64_t offset, uint64_t length, uint64_t place) {
  const write_t write = {.file = file, .offset = offset, .length = length, .place = place};
  check(disk, &write);
  for (uint64_t page = offset / PAGE; page * PAGE < offset + length; page++) {
    if (is_whole(page, offset, length)) mark(disk, page, UNREAD);
    else bring(disk, page);
  }
  if (file == NO_FILE) memset(disk->content + offset, 0, length);
  else memcpy(disk->content + offset, files[file].bytes + place, length);
}

void disks_copy_reads(const char *path) {
  FILE *file = fopen(path, "we");
  if (file == NULL) fail("%s: %m", path);
  for (uint32_t place = 0; place < count_of_disks; place++) {
    const disk_t *disk = &disks[place];
    for (uint32_t i = 0; i < disk->residents; i++) {
      const uint32_t read[] = {place, disk->resident[i]};
      if (disk->page_is[read[1]] == READ) fwrite(read, sizeof read, 1, file);
    }
  }
  if (ferror(file) || fclose(file) != 0) fail("%s: %m", path);
}
