/*
 * Recovers one crash state after another in a process of the host, with OpenZFS's own code (libzpool).
 *
 *   native-recover OWNER    it ends with the process OWNER, its parent, or with the end of its standard input
 *
 * Commands, a line each, on standard input; all numbers are decimal:
 *
 *   map FILE                              a file with payloads, numbered from 0
 *   disk NAME BYTES SECTOR                a disk, numbered from 0
 *   load FILE                             the lists of writes of all disks; answers
 *   ranges BYTES FILE                     read these parts of a volume of so many bytes
 *   turn DISK SETTLED                     give a disk its content of the next state
 *   patch DISK FILE OFFSET LENGTH PLACE   and one more surviving write; FILE 4294967295 has zeroes
 *   recover                               find the pool on the disks, import, read, export; answers
 *   reads FILE                            write the pages that the disks were read at since they turned; answers
 *   copy FILE                             write the volume that was read last; answers
 *
 * An answer is a line with a JSON object, as recover.c prints it. If the process ends without an answer, standard
 * error has the reason.
 */
#include "disks.h"
#include "pool.h"
#include "vdevs.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8192 };
static const char POOL[] = "tank";
static FILE *answers;

static void end_with(const char *owner) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail("prctl: %m");
  /* it may have ended before the call */
  if (getppid() != (pid_t)strtol(owner, NULL, 10)) _exit(0);
}

/* What the library prints to standard output is no answer. */
static void keep_answers_apart(void) {
  const int own = dup(STDOUT_FILENO);
  answers = own < 0 ? NULL : fdopen(own, "w");
  if (answers == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail("standard output: %m");
}

static void answer_recovery(const recovery_t *recovery) {
  if (recovery->import_errno != 0) {
    fprintf(answers, "{\"import\": %d, \"reason\": \"%s\"}\n", recovery->import_errno, strerror(recovery->import_errno));
    return;
  }
  fprintf(answers, "{\"import\": 0, \"volume\": %d, \"export\": 0, \"content\": \"%016" PRIx64 "%016" PRIx64 "\", ",
      recovery->volume_errno, recovery->content.a, recovery->content.b);
  fprintf(answers, "\"state\": %" PRIu64 ", \"errors\": %" PRIu64 ", ", recovery->health.state, recovery->health.errors);
  fprintf(answers, "\"bytes\": %" PRIu64 ", \"import_us\": %" PRIu64 ", \"volume_us\": %" PRIu64, recovery->bytes,
      recovery->import_us, recovery->volume_us);
  fprintf(answers, ", \"read_us\": %" PRIu64 ", \"export_us\": %" PRIu64 "}\n", recovery->read_us, recovery->export_us);
}

static disk_t *named(uint64_t number) {
  if (number >= disks_count()) fail("there is no disk %" PRIu64, number);
  return disk_at(number);
}

/* Obey a command that names a file or a disk; false: it is none of these. */
static bool set_up(const char *line) {
  static char path[LINE_MAX_BYTES];
  uint64_t bytes;
  uint32_t sector_bytes;
  if (sscanf(line, "map %8000[^\n]", path) == 1) {
    disks_map(path);
  } else if (sscanf(line, "disk %63s %" SCNu64 " %" SCNu32, path, &bytes, &sector_bytes) == 3) {
    disks_add(path, bytes, sector_bytes);
  } else if (sscanf(line, "load %8000[^\n]", path) == 1) {
    disks_load(path);
    fprintf(answers, "{}\n");
  } else if (sscanf(line, "ranges %" SCNu64 " %8000[^\n]", &bytes, path) == 2) {
    pool_take_ranges(path, bytes);
  } else if (sscanf(line, "reads %8000[^\n]", path) == 1) {
    disks_copy_reads(path);
    fprintf(answers, "{}\n");
  } else if (sscanf(line, "copy %8000[^\n]", path) == 1) {
    pool_copy(path);
    fprintf(answers, "{}\n");
  } else {
    return false;
  }
  return true;
}

static void obey(const char *line) {
  uint64_t disk, offset, length, place;
  uint32_t number;
  if (sscanf(line, "turn %" SCNu64 " %" SCNu32, &disk, &number) == 2) {
    disk_turn(named(disk), number);
  } else if (sscanf(line, "patch %" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64, &disk, &number, &offset,
                 &length, &place) == 5) {
    disk_patch(named(disk), number, offset, length, place);
  } else if (strcmp(line, "recover\n") == 0) {
    nvlist_t *config = vdevs_find(POOL);
    const recovery_t recovery = config == NULL ? (recovery_t){.import_errno = ENOENT} : pool_recover(config);
    answer_recovery(&recovery);
    nvlist_free(config);
  } else if (!set_up(line)) {
    fail("no command is %s", line);
  }
  if (fflush(answers) != 0) fail("standard output: %m");
}

int main(int count, char **words) {
  static char line[LINE_MAX_BYTES];
  if (count != 2) fail("usage: native-recover OWNER");
  end_with(words[1]);
  keep_answers_apart();
  pool_begin();
  while (fgets(line, sizeof line, stdin) != NULL) obey(line);
  /* the library's threads and locks end with the process */
  fflush(stderr);
  _exit(0);
}
