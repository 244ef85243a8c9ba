#include "coverage.h"

#include "disks.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char etext[];  /* end(3): the end of the program's code */
static uint8_t *kept, *volatile counting;

void coverage_keep(const char *path) {
  const size_t bytes = (size_t)(uintptr_t)etext;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) fail("%s: %m", path);
  kept = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (kept == MAP_FAILED) fail("%s: %m", path);
  close(file);
}

void coverage_count(bool counts) { counting = counts ? kept : NULL; }

/* The compiler's call at the begin of each block; the block is known by the address after the call. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
  uint8_t *const into = counting;
  const uintptr_t block = (uintptr_t)__builtin_return_address(0);
  if (into != NULL && into[block] == 0) into[block] = 1;
}
