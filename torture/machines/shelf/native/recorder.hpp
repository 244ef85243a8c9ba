// The one recording of all disks: numbers every event, and stops at the freeze.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "file.hpp"
#include "halt.hpp"
#include "log_blocks.hpp"
#include "payloads.hpp"
#include "record.hpp"
#include "role.hpp"

namespace shelf {

using Clock = std::chrono::steady_clock;

// When to freeze: the trigger armed last counts.
struct Trigger {
  std::optional<uint64_t> at_seq;
  std::optional<Kind> event;
  std::optional<uint16_t> disk;
  std::optional<Role> role;
  uint64_t zil_uncovered = 0;
  bool zil_reused = false;
  uint64_t count = 1;
};

class Recorder {
 public:
  // Record into a new `folder`; raises `Error` when it already holds a recording.
  explicit Recorder(const std::filesystem::path &folder);
  // Record into nameless files beside the other files of `folder`.
  static std::unique_ptr<Recorder> throw_away(const std::filesystem::path &folder);
  ~Recorder();

  /// Keep a payload; returns its place in `data`. Raises `Error`, having logged `failed`.
  uint64_t store(uint16_t disk, const void *payload, uint64_t length, uint32_t crc);

  /// Log a submission or a mark; returns its number. Parks for ever once frozen.
  uint64_t submit(Record record, Role role = Role::none);

  /// Log the completion of `submission`, having called `apply` at the same instant.
  void complete(const Record &submission, uint64_t seq, Role role, const std::function<void()> &apply);

  // Return at once, or never once frozen.
  void wait_if_frozen();

  // Begin again, as if nothing had been recorded; raises `Error` with writes in flight.
  void forget();

  // Count a request that the host failed; parks when the shelf is frozen.
  void fail(uint16_t disk, const Error &error);
  void freeze();
  void freeze_after(std::chrono::duration<double, std::milli> delay);
  void freeze_on(const Trigger &trigger);

  // Processes that stop with the freeze, replacing those named before.
  void halt_with_freeze(Halt halt);

  struct Status {
    bool frozen;
    uint64_t seq;
    uint64_t errors;
    std::string last_error;
  };
  Status status();

  const Payloads &payloads() const { return payloads_; }

 private:
  Recorder(File log, File data);
  using Lock = std::unique_lock<std::mutex>;
  Lock running();
  [[noreturn]] void park();
  uint64_t append(Record &record, Role role = Role::none);
  Role role_of_event(const Record &record, Role role);
  bool has_the_log_so() const;
  void turn_page();
  bool has_room();
  void freeze_locked();
  void fail_locked(uint16_t disk, const Error &error);
  void watch_clock();

  File log_;
  File data_;
  Payloads payloads_{data_};
  std::mutex mutex_;
  Mapping page_;
  uint64_t page_index_ = 0;
  uint64_t next_seq_ = 0;
  uint32_t in_flight_ = 0;
  Clock::time_point begun_ = Clock::now();
  std::atomic<bool> frozen_{false};
  std::optional<uint64_t> cut_;
  std::optional<Trigger> trigger_;
  Halt halt_;
  // By disk, the role of its last completed write.
  std::unordered_map<uint16_t, Role> last_roles_;
  LogBlocks log_blocks_;
  uint64_t errors_ = 0;
  std::string last_error_;
  std::atomic<uint64_t> data_end_{0};

  std::optional<Clock::time_point> deadline_;
  std::condition_variable deadline_changed_;
  bool closing_ = false;
  std::thread clock_watcher_;
};

}  // namespace shelf
