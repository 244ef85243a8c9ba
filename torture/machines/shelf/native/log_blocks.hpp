// The intent log's blocks at a cut: which are uncovered, and which of these overwrote an older
// block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "record.hpp"
#include "role.hpp"

namespace shelf {

// Follows the events of all disks, in their order, without failed completions.
//
// Its queries run under the recording's lock: each event takes constant time. Its memory grows with
// the requests in flight, however long no flush comes.
class LogBlocks {
 public:
  // `role` is the role of a write.
  void hear(const Record &record, Role role) {
    if (record.disk == kNoDisk) return;
    OfDisk &disk = disks_[record.disk];
    if (is_write_submit(record.kind)) disk.submit(record, role);
    if (is_write_complete(record.kind)) disk.complete(record);
    if (record.kind == Kind::flush_submit) disk.begin_group();
    if (record.kind == Kind::flush_complete) disk.cover(record.reference);
  }

  // The count of the disk with most of them: a mirror has each block twice.
  uint64_t uncovered() const {
    uint64_t most = 0;
    for (const auto &[_, disk] : disks_) most = std::max(most, disk.uncovered.blocks);
    return most;
  }

  // Whether one of these overwrote an older block, with no other write there since.
  bool is_reused() const {
    for (const auto &[_, disk] : disks_) {
      if (disk.uncovered.reusing > 0) return true;
    }
    return false;
  }

 private:
  // The number of blocks, and the number of those that overwrote an older block.
  struct Count {
    uint64_t blocks = 0;
    uint64_t reusing = 0;

    void add(bool is_reusing) {
      blocks += 1;
      reusing += is_reusing ? 1 : 0;
    }
    void take(const Count &other) {
      blocks -= other.blocks;
      reusing -= other.reusing;
    }
  };

  // Blocks completed without a flush submitted in between: a flush that covers one covers all.
  struct Group {
    uint64_t last_completion = 0;
    Count count;
  };

  struct OfDisk {
    Count uncovered;
    // Whether each block, by its submission's number, overwrote an older block.
    std::unordered_map<uint64_t, bool> in_flight;
    // The earlier groups, the oldest first.
    std::deque<Group> completed;
    // Whether each sector's last write was a block of the intent log.
    std::vector<bool> holds_log;

    void submit(const Record &record, Role role) {
      const uint64_t begin = record.offset / kSector;
      const uint64_t end = (record.offset + record.length + kSector - 1) / kSector;
      if (role == Role::zil) {
        if (holds_log.size() < end) holds_log.resize(end);
        const bool is_reusing = std::find(at(begin), at(end), true) != at(end);
        in_flight[record.seq] = is_reusing;
        uncovered.add(is_reusing);
      }
      std::fill(at(begin), at(end), role == Role::zil);
    }

    void complete(const Record &record) {
      const auto block = in_flight.find(record.reference);
      if (block == in_flight.end()) return;
      Count one;
      one.add(block->second);
      if ((record.flags & kFua) != 0) {
        uncovered.take(one);
      } else {
        if (completed.empty()) completed.emplace_back();
        completed.back().last_completion = record.seq;
        completed.back().count.add(block->second);
      }
      in_flight.erase(block);
    }

    // A flush that starts now does not cover later completions.
    void begin_group() {
      if (!completed.empty() && completed.back().count.blocks > 0) completed.emplace_back();
    }

    void cover(uint64_t flush) {
      while (!completed.empty() && completed.front().last_completion < flush) {
        uncovered.take(completed.front().count);
        completed.pop_front();
      }
    }

    std::vector<bool>::iterator at(uint64_t sector) {
      return holds_log.begin() + static_cast<std::ptrdiff_t>(std::min(sector, uint64_t{holds_log.size()}));
    }
  };

  std::unordered_map<uint16_t, OfDisk> disks_;
};

}  // namespace shelf
