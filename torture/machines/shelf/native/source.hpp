// The content below a disk's own writes, and reads through several layers.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "payloads.hpp"

namespace shelf {

// Read-only bytes; safe to read from many threads.
class Source {
 public:
  virtual ~Source() = default;
  /// Offset and length are multiples of `kSector`. Raises `Error`.
  virtual void read(char *out, uint64_t offset, uint64_t length) const = 0;
};

class Zeroes : public Source {
 public:
  void read(char *out, uint64_t, uint64_t length) const override { std::memset(out, 0, length); }
};

// A raw image; bytes beyond its end read as zeroes.
class Image : public Source {
 public:
  explicit Image(const std::filesystem::path &path) : file_(path, O_RDONLY) {}
  void read(char *out, uint64_t offset, uint64_t length) const override {
    file_.read(out, length, offset);
  }

 private:
  File file_;
};

// The place of a sector's bytes: below, nowhere (zeroes), or a place in `data`.
using Place = uint64_t;
constexpr Place kBelow = 0;
constexpr Place kZeroes = 1;
inline Place place_in_data(uint64_t byte) { return byte / kSector + 2; }
inline uint64_t byte_in_data(Place place) { return (place - 2) * kSector; }

// Read sectors from their places, adjacent ones in one call.
inline void gather(char *out, uint64_t offset, const std::vector<Place> &places, const Payloads &data,
                   const Source &below) {
  for (size_t first = 0; first < places.size();) {
    const Place place = places[first];
    size_t end = first + 1;
    while (end < places.size() &&
           (place < 2 ? places[end] == place : places[end] == place + (end - first))) {
      end += 1;
    }
    char *const into = out + first * kSector;
    const uint64_t length = (end - first) * kSector;
    if (place == kBelow) {
      below.read(into, offset + first * kSector, length);
    } else if (place == kZeroes) {
      std::memset(into, 0, length);
    } else {
      data.read(into, length, byte_in_data(place));
    }
    first = end;
  }
}

}  // namespace shelf
