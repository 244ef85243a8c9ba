// Makes views open quickly: for every 4 KiB of a disk, the writes that touched it.
#pragma once

#include <filesystem>
#include <vector>

#include "file.hpp"

namespace shelf {

constexpr uint64_t kPageBytes = 4096;

/// A completed write, zero or trim.
struct IndexedWrite {
  uint64_t submission;
  uint64_t completion;
  uint64_t offset;
  uint64_t length;
  uint64_t data_byte;
  uint32_t has_data;
  uint32_t fua;
};

// A completed flush: it or an earlier one covers every write completed before event
// `covers_before`.
struct IndexedFlush {
  uint64_t completion;
  uint64_t covers_before;
};

/// Some consecutive entries of a mapped array.
template <typename T>
struct Span {
  const T *first = nullptr;
  const T *last = nullptr;
  const T *begin() const { return first; }
  const T *end() const { return last; }
  uint64_t size() const { return static_cast<uint64_t>(last - first); }
};

// A recording's `log` and its `index`, which is built when it is missing or the log has grown.
class Index {
 public:
  Index(const std::filesystem::path &recording, const std::vector<uint64_t> &disk_bytes);

  // The number of readable events.
  uint64_t events() const { return events_; }
  const Record &event(uint64_t seq) const { return log_.as<Record>()[seq]; }

  // Sorted by their completions.
  Span<IndexedWrite> writes(uint16_t disk) const;
  Span<IndexedFlush> flushes(uint16_t disk) const;
  // Places in `writes`, ascending, of the writes that touch a page; pages count from 0.
  Span<uint32_t> touching(uint16_t disk, uint64_t page) const;

 private:
  struct Header;
  struct DiskTable;
  struct Ended;
  bool load(const std::filesystem::path &file, size_t disks);
  void build(const std::filesystem::path &file, const std::vector<uint64_t> &disk_bytes);
  std::vector<Ended> ended_by_disk(const std::vector<uint64_t> &disk_bytes) const;
  static DiskTable laid_out(const Ended &ended, uint64_t disk_bytes, uint64_t &end);
  static void fill(const Mapping &out, const DiskTable &table, const Ended &ended);
  const DiskTable &table(uint16_t disk) const;

  Mapping log_;
  Mapping index_;
  uint64_t slots_ = 0;
  uint64_t events_ = 0;
};

}  // namespace shelf
