#include "disk.hpp"

#include <thread>

namespace shelf {

Disk::Disk(const DiskConfig &config, uint16_t number, Recorder &recorder,
           std::shared_ptr<const Source> source)
    : config_(config),
      number_(number),
      recorder_(recorder),
      source_(std::move(source)),
      map_(config.size),
      pace_(config.profile) {}

void Disk::must_be_aligned(uint64_t offset, uint64_t length) const {
  if (offset % config_.sector != 0 || length % config_.sector != 0) {
    throw Error(EINVAL, config_.name + ": a request is not aligned to " +
                            std::to_string(config_.sector) + " bytes");
  }
}

Record Disk::record(Kind kind, uint64_t offset, uint64_t length, bool fua) const {
  Record record;
  record.kind = kind;
  record.disk = number_;
  record.offset = offset;
  record.length = length;
  record.flags = fua ? kFua : 0;
  return record;
}

void Disk::read(char *out, uint64_t offset, uint64_t length) {
  const auto arrival = Clock::now();
  must_be_aligned(offset, length);
  recorder_.wait_if_frozen();
  thread_local std::vector<Place> places;
  map_.look_up(offset, length, places);
  try {
    gather(out, offset, places, recorder_.payloads(), *std::atomic_load(&source_));
  } catch (const Error &error) {
    recorder_.fail(number_, error);  // otherwise the guest would take the host's failure for its disk's
    throw;
  }
  pace_.wait_for_read(arrival, offset, length);
  recorder_.wait_if_frozen();
}

void Disk::write(const char *data, uint64_t offset, uint64_t length, bool fua) {
  const auto arrival = Clock::now();
  must_be_aligned(offset, length);
  recorder_.wait_if_frozen();
  const Role role = role_of(data, length);
  if (strikes(writes_, config_.fault.lose_write_every, role)) {
    pace_.wait(arrival, config_.profile.write_us, length);
    recorder_.wait_if_frozen();
    return;
  }
  Record submission = record(Kind::write_submit, offset, length, fua);
  submission.payload_crc = checksum(data, length);
  submission.reference = recorder_.store(number_, data, length, submission.payload_crc);
  const uint64_t seq = recorder_.submit(submission, role);
  pace_.wait(arrival, config_.profile.write_us + (fua ? config_.profile.flush_us : 0), length);
  if (strikes(slow_writes_, config_.fault.slow_write_every, role)) {
    // a wait beside the pace: a disk that repeats one write continues with others meanwhile
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(config_.fault.slow_write_ms));
  }
  recorder_.complete(submission, seq, role,
                     [&] { map_.set(offset, length, true, submission.reference); });
  if (!fua) cached_ += 1;
  last_role_ = role;
}

void Disk::clear(Kind kind, uint64_t offset, uint64_t length, bool fua) {
  const auto arrival = Clock::now();
  must_be_aligned(offset, length);
  const Record submission = record(kind, offset, length, fua);
  const uint64_t seq = recorder_.submit(submission);
  pace_.wait(arrival, config_.profile.write_us + (fua ? config_.profile.flush_us : 0), 0);
  recorder_.complete(submission, seq, Role::none, [&] { map_.set(offset, length, false, 0); });
  if (!fua) cached_ += 1;
}

void Disk::flush() {
  const auto arrival = Clock::now();
  if (strikes(flushes_, config_.fault.drop_flush_every, last_role_)) {
    pace_.wait(arrival, config_.profile.flush_us, 0);
    recorder_.wait_if_frozen();
    return;
  }
  if (config_.fault.flush_early_ms > 0) {
    // never joined: a shelf with a fault ends by SIGKILL
    std::thread([this] {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(config_.fault.flush_early_ms));
      do_flush(Clock::now());
    }).detach();
    return;
  }
  do_flush(arrival);
}

void Disk::turn(std::shared_ptr<const Source> source) {
  std::atomic_store(&source_, std::move(source));
  map_.clear();
}

void Disk::do_flush(Clock::time_point arrival) {
  const Record submission = record(Kind::flush_submit, 0, 0, false);
  const uint64_t seq = recorder_.submit(submission);
  const uint64_t cached = cached_;
  pace_.wait(arrival, cached > flushed_ ? config_.profile.flush_us : 0, 0);
  recorder_.complete(submission, seq, Role::none, [] {});
  uint64_t flushed = flushed_;
  while (flushed < cached && !flushed_.compare_exchange_weak(flushed, cached)) {
  }
}

}  // namespace shelf
