/* The blocks of the library that recoveries run, where its files were compiled to tell (-fsanitize-coverage=trace-pc). */
#ifndef TORTURE_COVERAGE_H
#define TORTURE_COVERAGE_H

#include <stdbool.h>

/* Note them in a file from now on, which keeps what it has: the byte at a block's address becomes 1. */
void coverage_keep(const char *path);
/* Whether the blocks that run now count. */
void coverage_count(bool counts);

#endif
