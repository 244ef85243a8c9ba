/* A 128-bit mark of a content: two lanes of multiply and fold, by the places of all words but zeroes. Both programs use
 * it, so that equal contents have equal marks in the NAS and on the host, whatever zeroes were read of them. */
#ifndef TORTURE_MARK_H
#define TORTURE_MARK_H

#include <stddef.h>
#include <stdint.h>

typedef struct { uint64_t a, b; } mark_t;

#define MARK_OF_NOTHING {1, 2}

static inline uint64_t folded(uint64_t x, uint64_t y) {
  const __uint128_t product = (__uint128_t)x * y;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* `at` is the place of the data, in bytes, a multiple of 16 as their number is. */
static inline void mark(mark_t *mark, const void *data, size_t bytes, uint64_t at) {
  const uint64_t *word = data;
  for (size_t i = 0; i < bytes / 8; i += 2) {
    if ((word[i] | word[i + 1]) == 0) continue;
    const uint64_t place = (at + i * 8) * 0x9e3779b97f4a7c15;
    mark->a = folded(mark->a ^ word[i] ^ 0xa0761d6478bd642f, word[i + 1] ^ place ^ 0xe7037ed1a0b428db);
    mark->b = folded(mark->b ^ word[i + 1] ^ 0x8ebc6af09c88c6e3, word[i] ^ place ^ 0x589965cc75374cc3);
  }
}

#endif
