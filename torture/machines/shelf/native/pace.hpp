// The speed of a disk.
#pragma once

#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace shelf {

struct Profile {
  double read_us = 0;
  double seek_us = 0;
  double write_us = 0;
  double flush_us = 0;
  double mib_per_s = 0;
  bool serial = false;
};

class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Pace(const Profile &profile) : profile_(profile) {}

  // Return when a read may end. One that does not begin where the last one ended moves the arm,
  // which does one thing at a time.
  void wait_for_read(Clock::time_point arrival, uint64_t offset, uint64_t bytes) {
    const bool is_next = next_.exchange(offset + bytes) == offset;
    wait(arrival, profile_.read_us, bytes, is_next ? 0 : profile_.seek_us);
  }

  // Return when a request that arrived at `arrival` may end. The shelf's own work counts towards
  // it.
  void wait(Clock::time_point arrival, double latency_us, uint64_t bytes, double seek_us = 0) {
    const double slow = slow_;
    const auto latency = microseconds(latency_us * slow);
    const auto transfer = profile_.mib_per_s > 0
                              ? microseconds(static_cast<double>(bytes) / 1.048576 / profile_.mib_per_s * slow)
                              : Clock::duration::zero();
    const auto busy = transfer + microseconds(seek_us * slow);
    auto end = arrival + latency;
    if (profile_.serial || busy > Clock::duration::zero()) {
      const std::lock_guard lock(mutex_);
      const auto start = std::max(arrival, free_from_);
      free_from_ = start + busy + (profile_.serial ? latency : Clock::duration::zero());
      end = start + busy + latency;
    }
    if (end <= Clock::now()) return;
    // by default the kernel may wake a thread 50 us late, longer than an NVMe disk takes
    thread_local const int exact = ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    static_cast<void>(exact);
    std::this_thread::sleep_until(end);
  }

  // All requests from now on take so many times as long; 0: they do not wait.
  void slow(double times) { slow_ = times; }

 private:
  static Clock::duration microseconds(double us) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(us));
  }

  const Profile profile_;
  std::atomic<double> slow_{1};
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  Clock::time_point free_from_{};
};

}  // namespace shelf
