#include "view.hpp"

#include <algorithm>
#include <unordered_set>

namespace shelf {

namespace fs = std::filesystem;

namespace {

constexpr int kDepthMax = 64;
constexpr unsigned kWritesAtOnceMax = 256;
// The completion of a write without one.
constexpr uint64_t kInFlight = UINT64_MAX;

std::vector<uint64_t> sizes_of(const ShelfConfig &config) {
  std::vector<uint64_t> sizes;
  for (const DiskConfig &disk : config.disks) sizes.push_back(disk.size);
  return sizes;
}

// The number of events up to this time before the cut.
uint64_t events_until(const Index &index, uint64_t cut, double before_cut_ms) {
  const uint64_t cut_ns = index.event(cut).time_ns;
  if (before_cut_ms * 1e6 > static_cast<double>(cut_ns)) return 0;
  const auto before_cut_ns = static_cast<uint64_t>(before_cut_ms * 1e6);
  const Record *const first = &index.event(0);
  const Record *const end = std::upper_bound(
      first, first + cut + 1, cut_ns - before_cut_ns,
      [](uint64_t time_ns, const Record &record) { return time_ns < record.time_ns; });
  return static_cast<uint64_t>(end - first);
}

// The necessary length of `data`. Places in it are assigned in order, and few writes are in flight
// at once: the last of them suffice.
uint64_t bytes_needed(const Index &index) {
  uint64_t needed = 0;
  unsigned left = kWritesAtOnceMax;
  for (uint64_t seq = index.events(); left > 0 && seq-- > 0;) {
    const Record &event = index.event(seq);
    if (event.kind != Kind::write_submit) continue;
    needed = std::max(needed, event.reference + event.length);
    left -= 1;
  }
  return needed;
}

}  // namespace

uint64_t word(uint64_t seed, uint64_t submission, uint64_t sector) {
  uint64_t z = seed + submission * 0x9e3779b97f4a7c15 + sector * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

bool coin(uint64_t seed, uint64_t submission, uint64_t sector) {
  return word(seed, submission, sector) >> 63 != 0;
}

OpenRecording::OpenRecording(const fs::path &folder)
    : config(read_shelf(folder / "shelf.json")),
      index(folder, sizes_of(config)),
      data(folder / "data", O_RDONLY) {
  if (index.events() == 0 || index.event(0).kind != Kind::begin ||
      index.event(0).reference != kFormatVersion) {
    throw Error(EINVAL, (folder / "log").string() + " is no log of this version");
  }
  if (const uint64_t needed = bytes_needed(index); data.size() < needed) {
    throw Error(EINVAL, (folder / "data").string() + " has " + std::to_string(data.size()) +
                            " bytes, and its log needs " + std::to_string(needed));
  }
  for (uint64_t seq = 0; seq < index.events(); ++seq) {
    const Record &event = index.event(seq);
    if (event.kind == Kind::write_submit) {
      payloads.add(event.reference, event.length, event.payload_crc);
    }
  }
}

std::shared_ptr<const OpenRecording> Opener::recording(const fs::path &folder) {
  auto &opened = recordings_[fs::weakly_canonical(folder).string()];
  if (!opened) opened = std::make_shared<const OpenRecording>(folder);
  return opened;
}

std::shared_ptr<const Source> Opener::open(const SourceConfig &config, int depth) {
  if (depth > kDepthMax) throw Error(ELOOP, "views of views of views: " + config.view.string());
  if (!config.image.empty()) return std::make_shared<Image>(config.image);
  if (config.view.empty()) return std::make_shared<Zeroes>();
  const ViewConfig view = read_view(config.view);
  const auto policy = view.disks.find(config.disk);
  if (policy == view.disks.end()) {
    throw Error(ENOENT, config.view.string() + ": disk '" + config.disk + "' is gone in this view");
  }
  const auto opened = recording(view.recording);
  if (view.cut >= opened->index.events()) {
    throw Error(EINVAL, config.view.string() + ": the cut is not in the log, which has " +
                            std::to_string(opened->index.events()) + " events");
  }
  const auto disk = opened->config.find(config.disk);
  if (!disk) throw Error(ENOENT, config.view.string() + ": no disk '" + config.disk + "' was recorded");
  return std::make_shared<ViewOfDisk>(opened, *disk, view, policy->second,
                                      open(opened->config.disks[*disk].source, depth + 1));
}

ViewOfDisk::ViewOfDisk(std::shared_ptr<const OpenRecording> recording, uint16_t disk,
                       const ViewConfig &view, DiskViewConfig policy,
                       std::shared_ptr<const Source> below)
    : recording_(std::move(recording)),
      disk_(disk),
      cut_(view.cut),
      seed_(view.seed),
      sector_(recording_->config.disks[disk].physical_sector),
      policy_(std::move(policy)),
      below_(std::move(below)) {
  const Index &index = recording_->index;
  durable_before_ = policy_.lying_ms ? events_until(index, cut_, *policy_.lying_ms) : cut_ + 1;
  const auto flushes = index.flushes(disk_);
  const IndexedFlush *after = std::lower_bound(
      flushes.begin(), flushes.end(), durable_before_,
      [](const IndexedFlush &flush, uint64_t seq) { return flush.completion < seq; });
  flushed_before_ = after == flushes.begin() ? 0 : (after - 1)->covers_before;
  settled_before_ = settled_before();
  const bool takes_in_flight = policy_.policy == Policy::explicit_list || policy_.policy == Policy::prefix;
  if (policy_.in_flight != InFlight::gone || takes_in_flight) find_in_flight();
  if (policy_.policy == Policy::oldest || policy_.policy == Policy::but_few) draw_lost();
}

uint64_t ViewOfDisk::settled_before() const {
  const Index &index = recording_->index;
  uint64_t settled = policy_.held_ms ? events_until(index, cut_, *policy_.held_ms) : 0;
  if (!policy_.held_bytes) return settled;
  uint64_t held = 0;
  const auto writes = index.writes(disk_);
  for (const IndexedWrite *next = writes.end(); next-- != writes.begin();) {
    if (next->completion > cut_) continue;
    if (next->completion < settled) break;
    held += next->has_data != 0 ? next->length : 0;
    if (held > *policy_.held_bytes) settled = next->completion + 1;
  }
  return settled;
}

void ViewOfDisk::draw_lost() {
  std::vector<uint64_t> open;
  for (const IndexedWrite &write : recording_->index.writes(disk_)) {
    if (write.completion <= cut_ && !is_covered(write)) open.push_back(write.submission);
  }
  const auto drawn = [&](uint64_t number) { return word(seed_, 0, 8 * uint64_t{disk_} + number); };
  if (policy_.policy == Policy::oldest) {
    lost_.insert(open.begin() + static_cast<ptrdiff_t>(drawn(0) % (open.size() + 1)), open.end());
  } else if (!open.empty()) {
    lost_.insert(open[drawn(1) % open.size()]);
    if (drawn(0) >> 63 != 0) lost_.insert(open[drawn(2) % open.size()]);
  }
}

void ViewOfDisk::find_in_flight() {
  const Index &index = recording_->index;
  std::unordered_set<uint64_t> ended;
  uint64_t wanted = index.event(cut_).in_flight;
  for (uint64_t seq = cut_ + 1; wanted > 0 && seq-- > 0;) {
    const Record &event = index.event(seq);
    if (is_write_complete(event.kind)) ended.insert(event.reference);
    if (!is_write_submit(event.kind) || ended.count(seq) > 0) continue;
    wanted -= 1;
    if (event.disk != disk_) continue;
    const bool has_data = event.kind == Kind::write_submit;
    in_flight_.push_back({seq, kInFlight, event.offset, event.length, has_data ? event.reference : 0,
                          has_data, event.flags & uint32_t{kFua}});
  }
}

bool ViewOfDisk::is_covered(const IndexedWrite &write) const {
  return write.completion < flushed_before_ || write.completion < settled_before_ ||
         (write.fua != 0 && write.completion < durable_before_);
}

bool ViewOfDisk::survives(const IndexedWrite &write, uint64_t byte_in_write) const {
  const uint64_t sector = (write.offset + byte_in_write) / sector_ - write.offset / sector_;
  const bool is_judged_alike = policy_.policy == Policy::explicit_list || policy_.policy == Policy::prefix;
  if (write.completion == kInFlight && !is_judged_alike) {
    return coin(seed_, write.submission, policy_.in_flight == InFlight::whole ? 0 : 1 + sector);
  }
  switch (policy_.policy) {
    case Policy::all:
      return true;
    case Policy::flushed:
    case Policy::lying:
      return false;
    case Policy::subset:
      return coin(seed_, write.submission, 0);
    case Policy::torn:
      return coin(seed_, write.submission, 1 + sector);
    case Policy::prefix: {
      const uint64_t last = (write.offset + write.length - 1) / sector_ - write.offset / sector_;
      if (last == 0) return coin(seed_, write.submission, 0);
      return sector <= word(seed_, write.submission, 0) % last;
    }
    case Policy::oldest:
    case Policy::but_few:
      return lost_.count(write.submission) == 0;
    case Policy::explicit_list:
      break;
  }
  const auto listed = policy_.survivors.find(write.submission);
  if (listed == policy_.survivors.end()) return false;
  if (!listed->second) return true;
  return std::find(listed->second->begin(), listed->second->end(), sector) != listed->second->end();
}

bool ViewOfDisk::apply(const IndexedWrite &write, uint64_t from, uint64_t to, uint64_t offset,
                       Sectors &places) const {
  const bool covered = is_covered(write);
  bool unresolved = false;
  for (uint64_t byte = from; byte < to; byte += kSector) {
    Place &place = places[(byte - offset) / kSector];
    if (place != kBelow) continue;
    const bool touches = byte >= write.offset && byte < write.offset + write.length;
    if (touches && (covered || survives(write, byte - write.offset))) {
      place = write.has_data != 0 ? place_in_data(write.data_byte + byte - write.offset) : kZeroes;
    } else {
      unresolved = true;
    }
  }
  return unresolved;
}

void ViewOfDisk::resolve_page(uint64_t page, uint64_t offset, Sectors &places) const {
  const uint64_t from = std::max(page * kPageBytes, offset);
  const uint64_t to = std::min((page + 1) * kPageBytes, offset + places.size() * kSector);
  // the newest first: a sector holds the first write that survives
  for (const IndexedWrite &write : in_flight_) {
    if (!apply(write, from, to, offset, places)) return;
  }
  const Index &index = recording_->index;
  const auto touching = index.touching(disk_, page);
  const IndexedWrite *const writes = index.writes(disk_).begin();
  const uint32_t *next = std::upper_bound(
      touching.begin(), touching.end(), cut_,
      [&](uint64_t cut, uint32_t number) { return cut < writes[number].completion; });
  while (next != touching.begin()) {
    if (!apply(writes[*--next], from, to, offset, places)) return;
  }
}

void ViewOfDisk::read(char *out, uint64_t offset, uint64_t length) const {
  Sectors places(length / kSector, kBelow);
  if (length == 0) return;
  const uint64_t last = (offset + length - 1) / kPageBytes;
  for (uint64_t page = offset / kPageBytes; page <= last; ++page) resolve_page(page, offset, places);
  gather(out, offset, places, recording_->payloads, *below_);
}

}  // namespace shelf
