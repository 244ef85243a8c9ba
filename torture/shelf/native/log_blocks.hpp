// The intent log's blocks as a cut would find them: which are not covered, and which of these stand where
// an older one stood.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "record.hpp"
#include "role.hpp"

namespace shelf {

/// Follows the events of all disks, in their order; failed completions are not for it.
class LogBlocks {
 public:
  /// `role` is a write's.
  void hear(const Record &record, Role role) {
    if (record.disk == kNoDisk) return;
    OfDisk &disk = disks_[record.disk];
    if (is_write_submit(record.kind)) disk.submit(record, role);
    if (is_write_complete(record.kind)) disk.complete(record);
    if (record.kind == Kind::flush_submit) disk.flushes[record.seq] = disk.completed;
    if (record.kind == Kind::flush_complete) disk.cover(record.reference);
  }

  /// Of the disk that has most of them: a mirror has each block twice.
  uint64_t uncovered() const {
    uint64_t most = 0;
    for (const auto &[_, disk] : disks_) most = std::max(most, uint64_t{disk.uncovered.size()});
    return most;
  }

  /// Whether one of these stands where an older one stood, and nothing else since.
  bool is_reused() const {
    for (const auto &[_, disk] : disks_) {
      for (const auto &[seq, is_reusing] : disk.uncovered) {
        if (is_reusing) return true;
      }
    }
    return false;
  }

 private:
  struct OfDisk {
    /// By its submission's number, whether it stands where an older one stood.
    std::unordered_map<uint64_t, bool> uncovered;
    std::unordered_set<uint64_t> completed;
    /// By a flush's number, what was completed when it began.
    std::unordered_map<uint64_t, std::unordered_set<uint64_t>> flushes;
    /// By sector, whether a block of the log was the last to be written there.
    std::vector<bool> holds_log;

    void submit(const Record &record, Role role) {
      const uint64_t begin = record.offset / kSector;
      const uint64_t end = (record.offset + record.length + kSector - 1) / kSector;
      if (role == Role::zil) {
        if (holds_log.size() < end) holds_log.resize(end);
        uncovered[record.seq] = std::find(at(begin), at(end), true) != at(end);
      }
      std::fill(at(begin), at(end), role == Role::zil);
    }

    void complete(const Record &record) {
      if (uncovered.count(record.reference) == 0) return;
      if ((record.flags & kFua) != 0) {
        uncovered.erase(record.reference);
      } else {
        completed.insert(record.reference);
      }
    }

    void cover(uint64_t flush) {
      for (const uint64_t seq : flushes[flush]) {
        uncovered.erase(seq);
        completed.erase(seq);
      }
      flushes.erase(flush);
    }

    std::vector<bool>::iterator at(uint64_t sector) {
      return holds_log.begin() + static_cast<std::ptrdiff_t>(std::min(sector, uint64_t{holds_log.size()}));
    }
  };

  std::unordered_map<uint16_t, OfDisk> disks_;
};

}  // namespace shelf
