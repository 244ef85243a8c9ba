// Feeds `LogBlocks` events from standard input: pairs of a record and its role's number, 4 bytes. Prints
// the state behind each; with an argument, only the most bytes of memory that it held at once.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "log_blocks.hpp"

namespace {
size_t held = 0, most = 0;
}

void *operator new(size_t bytes) {
  auto *const block = static_cast<size_t *>(std::malloc(bytes + sizeof(std::max_align_t)));
  if (block == nullptr) throw std::bad_alloc();
  *block = bytes;
  held += bytes;
  most = std::max(most, held);
  return reinterpret_cast<char *>(block) + sizeof(std::max_align_t);
}

void operator delete(void *place) noexcept {
  if (place == nullptr) return;
  auto *const block = reinterpret_cast<size_t *>(static_cast<char *>(place) - sizeof(std::max_align_t));
  held -= *block;
  std::free(block);
}

void operator delete(void *place, size_t) noexcept { operator delete(place); }

int main(int count, char **) {
  shelf::LogBlocks blocks;
  shelf::Record record;
  uint32_t role = 0;
  while (std::fread(&record, sizeof record, 1, stdin) == 1 && std::fread(&role, sizeof role, 1, stdin) == 1) {
    blocks.hear(record, static_cast<shelf::Role>(role));
    const bool is_reused = blocks.is_reused();
    if (count == 1) std::printf("%llu %d\n", static_cast<unsigned long long>(blocks.uncovered()), is_reused);
  }
  if (count > 1) std::printf("%zu\n", most);
}
