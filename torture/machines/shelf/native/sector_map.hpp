// The place of each sector's last write: 4 bytes a sector, only for written ranges.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "source.hpp"

namespace shelf {

class SectorMap {
 public:
  explicit SectorMap(uint64_t bytes) : chunks_((bytes + kChunkBytes - 1) / kChunkBytes) {}

  /// Data at `data_byte`, or zeroes when `has_data` is false.
  void set(uint64_t offset, uint64_t length, bool has_data, uint64_t data_byte) {
    const std::unique_lock lock(mutex_);
    uint64_t place = has_data ? place_in_data(data_byte) : kZeroes;
    const uint64_t end = (offset + length) / kSector;
    for (uint64_t sector = offset / kSector; sector < end; ++sector) {
      chunk(sector)[sector % kChunkSectors] = static_cast<uint32_t>(place);
      place += has_data;
    }
  }

  /// Forget every write.
  void clear() {
    const std::unique_lock lock(mutex_);
    for (auto &chunk : chunks_) chunk.reset();
  }

  void look_up(uint64_t offset, uint64_t length, std::vector<Place> &places) const {
    const std::shared_lock lock(mutex_);
    places.resize(length / kSector);
    uint64_t sector = offset / kSector;
    for (Place &place : places) {
      const auto &chunk = chunks_[sector / kChunkSectors];
      place = chunk ? chunk[sector % kChunkSectors] : kBelow;
      sector += 1;
    }
  }

 private:
  static constexpr uint64_t kChunkSectors = 2048;
  static constexpr uint64_t kChunkBytes = kChunkSectors * kSector;

  uint32_t *chunk(uint64_t sector) {
    auto &chunk = chunks_[sector / kChunkSectors];
    if (!chunk) chunk = std::make_unique<uint32_t[]>(kChunkSectors);
    return chunk.get();
  }

  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<uint32_t[]>> chunks_;
};

}  // namespace shelf
