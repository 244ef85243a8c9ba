#define _GNU_SOURCE
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { PIECE = 1 << 20, GRAIN = 16 };
/* One piece after the other is marked here, at the sum of the lengths of those before it. */
static char piece[PIECE] __attribute__((aligned(4096)));

typedef struct {
  mark_t *content;
  uint64_t at;
} sum_t;

static void add_piece(sum_t *sum, size_t length) {
  const size_t rounded = (length + GRAIN - 1) / GRAIN * GRAIN;
  memset(piece + length, 0, rounded - length);
  mark(sum->content, piece, rounded, sum->at);
  sum->at += rounded;
}

static void add(sum_t *sum, const void *data, size_t length) {
  memcpy(piece, data, length);
  add_piece(sum, length);
}

static int add_data(sum_t *sum, const char *path) {
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : 0;
  while (file >= 0 && (length = read(file, piece, PIECE)) > 0) add_piece(sum, (size_t)length);
  const int error = length < 0 ? errno : 0;
  if (file >= 0) close(file);
  return error;
}

static int add_attributes(sum_t *sum, const char *path) {
  static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
  const ssize_t listed = llistxattr(path, names, sizeof names);
  if (listed < 0) return errno == ENOTSUP ? 0 : errno;
  for (const char *name = names; name < names + listed; name += strlen(name) + 1) {
    const ssize_t length = lgetxattr(path, name, value, sizeof value);
    if (length < 0) return errno;
    add(sum, name, strlen(name) + 1);
    add(sum, value, (size_t)length);
  }
  return 0;
}

static int add_file(sum_t *sum, const FTSENT *entry) {
  const struct stat *status = entry->fts_statp;
  const bool is_regular = S_ISREG(status->st_mode);
  /* A load sets whole seconds. Other times are of writes, and the log's replay writes at its own time. */
  const bool is_set = is_regular && status->st_mtim.tv_nsec == 0;
  const uint64_t facts[] = {status->st_ino, status->st_mode, status->st_uid, status->st_gid,
      is_regular ? status->st_nlink : 0, is_regular ? (uint64_t)status->st_size : 0,
      is_set ? (uint64_t)status->st_mtim.tv_sec : 0, 0};
  add(sum, entry->fts_path, entry->fts_pathlen);
  add(sum, facts, sizeof facts);
  if (S_ISLNK(status->st_mode)) {
    const ssize_t length = readlink(entry->fts_path, piece, PATH_MAX);
    if (length < 0) return errno;
    add_piece(sum, (size_t)length);
  }
  const int error = add_attributes(sum, entry->fts_path);
  return error == 0 && is_regular ? add_data(sum, entry->fts_path) : error;
}

static int by_name(const FTSENT **one, const FTSENT **other) { return strcmp((*one)->fts_name, (*other)->fts_name); }

int mark_tree(char *root, mark_t *content) {
  sum_t sum = {.content = content};
  char *const roots[] = {root, NULL};
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
  if (tree == NULL) return errno;
  int error = 0;
  for (FTSENT *entry; error == 0 && (errno = 0, entry = fts_read(tree)) != NULL;) {
    const bool failed = entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS;
    if (failed) error = entry->fts_errno;
    else if (entry->fts_info != FTS_DP) error = add_file(&sum, entry);
  }
  if (error == 0) error = errno;
  fts_close(tree);
  return error;
}
