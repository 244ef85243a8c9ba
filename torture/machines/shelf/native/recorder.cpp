#include "recorder.hpp"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

namespace shelf {

namespace {

constexpr uint64_t kPageRecords = 16384;
constexpr uint64_t kPageBytes = kPageRecords * sizeof(Record);
constexpr unsigned kParkSeconds = 3600;
// The number of places that a disk's map of sectors can hold, in 4 bytes each.
constexpr uint64_t kDataBytesMax = (uint64_t{UINT32_MAX} - 2) * kSector;

uint64_t rounded_up(uint64_t length) { return (length + kSector - 1) / kSector * kSector; }

File new_file(const std::filesystem::path &path) { return File(path, O_RDWR | O_CREAT | O_EXCL); }

}  // namespace

Recorder::Recorder(const std::filesystem::path &folder)
    : Recorder(new_file(folder / "log"), new_file(folder / "data")) {}

std::unique_ptr<Recorder> Recorder::throw_away(const std::filesystem::path &folder) {
  return std::unique_ptr<Recorder>(new Recorder(File::nameless(folder), File::nameless(folder)));
}

Recorder::Recorder(File log, File data) : log_(std::move(log)), data_(std::move(data)) {
  Record begin;
  begin.reference = kFormatVersion;
  const Lock lock(mutex_);
  append(begin);
}

Recorder::~Recorder() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  deadline_changed_.notify_all();
  if (clock_watcher_.joinable()) clock_watcher_.join();
  // preallocated bytes are not part of the log; readers would stop there as well
  if (::ftruncate(log_.fd(), static_cast<off_t>(next_seq_ * sizeof(Record))) < 0) {
    nbdkit_debug("shelf: the log keeps its zeroes at the end");
  }
}

Recorder::Lock Recorder::running() {
  Lock lock(mutex_);
  if (frozen_) {
    lock.unlock();
    park();
  }
  return lock;
}

void Recorder::park() {
  // only the end of the connection or the process wakes the thread, and neither acknowledges
  // anything
  while (nbdkit_nanosleep(kParkSeconds, 0) == 0) {
  }
  throw Error(ESHUTDOWN, "the shelf is frozen");
}

void Recorder::wait_if_frozen() {
  if (frozen_) park();
}

uint64_t Recorder::store(uint16_t disk, const void *payload, uint64_t length, uint32_t crc) {
  const uint64_t place = data_end_.fetch_add(rounded_up(length));
  try {
    if (place + length > kDataBytesMax) throw Error(EFBIG, "a recording holds at most 2 TiB");
    data_.write(static_cast<const char *>(payload), length, place);
    payloads_.add(place, length, crc);
  } catch (const Error &error) {
    const Lock lock = running();
    fail_locked(disk, error);
    throw;
  }
  return place;
}

uint64_t Recorder::submit(Record record, Role role) {
  const Lock lock = running();
  if (is_write_submit(record.kind)) in_flight_ += 1;
  try {
    return append(record, role);
  } catch (const Error &error) {
    if (is_write_submit(record.kind)) in_flight_ -= 1;
    fail_locked(record.disk, error);
    throw;
  }
}

void Recorder::complete(const Record &submission, uint64_t seq, Role role,
                        const std::function<void()> &apply) {
  Record record = submission;
  record.kind = completion_of(submission.kind);
  record.reference = seq;
  record.payload_crc = 0;
  const Lock lock = running();
  // the page first: once applied, the event must be logged
  if (next_seq_ == page_index_ * kPageRecords) {
    try {
      turn_page();
    } catch (const Error &error) {
      fail_locked(record.disk, error);
      throw;
    }
  }
  apply();
  if (is_write_complete(record.kind)) in_flight_ -= 1;
  append(record, role);
}

Role Recorder::role_of_event(const Record &record, Role role) {
  if (is_write_complete(record.kind)) last_roles_[record.disk] = role;
  const bool is_flush = record.kind == Kind::flush_submit || record.kind == Kind::flush_complete;
  return is_flush ? last_roles_[record.disk] : role;
}

bool Recorder::has_the_log_so() const {
  if (log_blocks_.uncovered() < trigger_->zil_uncovered) return false;
  return log_blocks_.is_reused() || !trigger_->zil_reused;
}

uint64_t Recorder::append(Record &record, Role role) {
  if (next_seq_ == page_index_ * kPageRecords) turn_page();
  record.seq = next_seq_;
  record.time_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun_).count());
  record.in_flight = in_flight_;
  record.crc = checksum(&record, offsetof(Record, crc));
  *page_.as<Record>(record.seq % kPageRecords * sizeof(Record)) = record;
  next_seq_ += 1;
  const Role role_here = role_of_event(record, role);
  log_blocks_.hear(record, role);
  if (trigger_ && !frozen_) {
    const bool right_role = !trigger_->role || *trigger_->role == role_here;
    const bool right_disk = !trigger_->disk || *trigger_->disk == record.disk;
    const bool right_event =
        trigger_->event == record.kind && right_disk && right_role && has_the_log_so();
    const bool right_number = trigger_->at_seq && record.seq >= *trigger_->at_seq;
    if (right_number || (right_event && --trigger_->count == 0)) freeze_locked();
  }
  return record.seq;
}

void Recorder::turn_page() {
  // allocated first: a write to a mapping without room on the disk would be a bus error
  const int error = ::posix_fallocate(log_.fd(), static_cast<off_t>(page_index_ * kPageBytes), kPageBytes);
  if (error != 0) throw Error(error, std::string("no room for the log: ") + std::strerror(error));
  page_ = Mapping(log_, page_index_ * kPageBytes, kPageBytes, PROT_READ | PROT_WRITE);
  page_index_ += 1;
}

bool Recorder::has_room() {
  try {
    if (next_seq_ == page_index_ * kPageRecords) turn_page();
    return true;
  } catch (const Error &) {
    return false;  // then the log ends here: it has no room to record the failure
  }
}

void Recorder::fail_locked(uint16_t disk, const Error &error) {
  errors_ += 1;
  last_error_ = error.what();
  if (!has_room()) return;
  Record record;
  record.kind = Kind::failed;
  record.disk = disk;
  record.error = error.code;
  append(record);
}

void Recorder::fail(uint16_t disk, const Error &error) {
  const Lock lock = running();
  fail_locked(disk, error);
}

void Recorder::forget() {
  const Lock lock = running();
  if (in_flight_ > 0) throw Error(EBUSY, "writes are in flight");
  for (const int fd : {log_.fd(), data_.fd()}) {
    if (::ftruncate(fd, 0) < 0) throw system_error("ftruncate");
  }
  payloads_.clear();
  data_end_ = 0;
  next_seq_ = page_index_ = 0;
  last_roles_.clear();
  log_blocks_ = LogBlocks();
  Record begin;
  begin.reference = kFormatVersion;
  append(begin);
}

void Recorder::freeze() {
  const Lock lock(mutex_);
  freeze_locked();
}

void Recorder::freeze_locked() {
  if (frozen_) return;
  frozen_ = true;
  halt_.now();
  cut_ = next_seq_ - 1;
  if (!has_room()) return;
  Record record;
  record.kind = Kind::freeze;
  append(record);
}

void Recorder::freeze_after(std::chrono::duration<double, std::milli> delay) {
  const Lock lock(mutex_);
  trigger_.reset();
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(delay);
  if (!clock_watcher_.joinable()) clock_watcher_ = std::thread([this] { watch_clock(); });
  deadline_changed_.notify_all();
}

void Recorder::watch_clock() {
  Lock lock(mutex_);
  while (!closing_) {
    if (!deadline_) {
      deadline_changed_.wait(lock);
    } else if (Clock::now() >= *deadline_) {
      deadline_.reset();
      freeze_locked();
    } else {
      deadline_changed_.wait_until(lock, *deadline_);
    }
  }
}

void Recorder::freeze_on(const Trigger &trigger) {
  const Lock lock(mutex_);
  deadline_.reset();
  trigger_ = trigger;
  if (trigger.at_seq && next_seq_ > *trigger.at_seq) freeze_locked();
}

void Recorder::halt_with_freeze(Halt halt) {
  const Lock lock(mutex_);
  halt_ = std::move(halt);
  if (frozen_) halt_.now();
}

Recorder::Status Recorder::status() {
  const Lock lock(mutex_);
  return {frozen_, cut_.value_or(next_seq_ - 1), errors_, last_error_};
}

}  // namespace shelf
