// One disk: its own writes over its first content.
#pragma once

#include <atomic>
#include <memory>

#include "config.hpp"
#include "pace.hpp"
#include "recorder.hpp"
#include "sector_map.hpp"
#include "source.hpp"

namespace shelf {

class Disk {
 public:
  Disk(const DiskConfig &config, uint16_t number, Recorder &recorder,
       std::shared_ptr<const Source> source);

  const DiskConfig &config() const { return config_; }

  // All raise `Error`: EINVAL when not aligned to the disk's sector, else the host's errno.
  void read(char *out, uint64_t offset, uint64_t length);
  void write(const char *data, uint64_t offset, uint64_t length, bool fua);
  /// `submission` is `zero_submit` or `trim_submit`; both read as zeroes afterwards.
  void clear(Kind submission, uint64_t offset, uint64_t length, bool fua);
  void flush();

  /// Become another disk of the same size: this content, and no writes on it.
  void turn(std::shared_ptr<const Source> source);

  /// Its profile's times count so many times from now on.
  void slow(double times) { pace_.slow(times); }

  std::atomic<uint64_t> connections{0};

 private:
  void must_be_aligned(uint64_t offset, uint64_t length) const;
  Record record(Kind kind, uint64_t offset, uint64_t length, bool fua) const;

  void do_flush(Clock::time_point arrival);

  // Whether the fault of every n-th request of its role strikes now.
  bool strikes(std::atomic<uint64_t> &asked, uint64_t every, Role role) const {
    const bool is_of_it = !config_.fault.role || *config_.fault.role == role;
    return every > 0 && is_of_it && (asked += 1) % every == 0;
  }

  const DiskConfig config_;
  const uint16_t number_;
  Recorder &recorder_;
  // Only `std::atomic_load` and `std::atomic_store` touch it: reads go on during a turn.
  std::shared_ptr<const Source> source_;
  SectorMap map_;
  Pace pace_;
  // Requests that were completed into the cache, and how many of them a flush has covered: an empty
  // cache has nothing to write, so its flush takes no time.
  std::atomic<uint64_t> cached_{0};
  std::atomic<uint64_t> flushed_{0};
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> writes_{0};
  std::atomic<uint64_t> slow_writes_{0};
  // The role of the write that was completed last.
  std::atomic<Role> last_role_{Role::none};
};

}  // namespace shelf
