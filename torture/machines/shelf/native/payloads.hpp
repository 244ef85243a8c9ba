// The payloads in a recording's `data`: one that changed since it was stored is not served.
#pragma once

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "file.hpp"

namespace shelf {

/// Safe to use from many threads. The file outlives it.
class Payloads {
 public:
  explicit Payloads(const File &data) : data_(data) {}

  void add(uint64_t byte, uint64_t length, uint32_t crc) {
    const std::unique_lock lock(mutex_);
    // places are taken in order, and few payloads are stored at once: this is near the end
    payloads_.insert(after(byte), {byte, length, crc});
  }

  void clear() {
    const std::unique_lock lock(mutex_);
    payloads_.clear();
  }

  // Read bytes, having checked each payload that has some of them. Raises `Error`.
  void read(char *out, uint64_t length, uint64_t byte) const {
    thread_local std::vector<char> whole;
    while (length > 0) {
      const Payload payload = at(byte);
      const uint64_t skipped = byte - payload.byte;
      const uint64_t part = std::min(length, payload.length - skipped);
      const bool takes_all = part == payload.length;
      if (!takes_all) whole.resize(payload.length);
      char *const into = takes_all ? out : whole.data();
      data_.read(into, payload.length, payload.byte);
      if (checksum(into, payload.length) != payload.crc) {
        throw Error(EIO, "the payload at byte " + std::to_string(payload.byte) +
                             " of data changed after it was stored");
      }
      if (!takes_all) std::memcpy(out, into + skipped, part);
      out += part;
      byte += part;
      length -= part;
    }
  }

 private:
  struct Payload {
    uint64_t byte;
    uint64_t length;
    uint32_t crc;
  };

  std::vector<Payload>::const_iterator after(uint64_t byte) const {
    return std::upper_bound(payloads_.begin(), payloads_.end(), byte,
                            [](uint64_t at, const Payload &payload) { return at < payload.byte; });
  }

  Payload at(uint64_t byte) const {
    const std::shared_lock lock(mutex_);
    const auto next = after(byte);
    if (next == payloads_.begin() || byte - (next - 1)->byte >= (next - 1)->length) {
      throw Error(EIO, "no payload is at byte " + std::to_string(byte) + " of data");
    }
    return *(next - 1);
  }

  const File &data_;
  mutable std::shared_mutex mutex_;
  std::vector<Payload> payloads_;
};

}  // namespace shelf
