#include "index.hpp"

#include <algorithm>

namespace shelf {

namespace fs = std::filesystem;

namespace {
constexpr uint64_t kMagic = 0x3258444e49464c53;  // "SLFINDX2"

template <typename Visit>
void for_pages(const IndexedWrite &write, Visit visit) {
  if (write.length == 0) return;
  const uint64_t last = (write.offset + write.length - 1) / kPageBytes;
  for (uint64_t page = write.offset / kPageBytes; page <= last; ++page) visit(page);
}

// Check the numbers that size the tables, whoever wrote the recording.
void must_be_possible(const Record &submission, const Record &completion, uint64_t disk_bytes) {
  const bool belongs = is_write_submit(submission.kind) && submission.disk == completion.disk &&
                       completion_of(submission.kind) == completion.kind;
  const bool aligned = submission.offset % kSector == 0 && submission.length % kSector == 0;
  const bool inside =
      submission.offset <= disk_bytes && submission.length <= disk_bytes - submission.offset;
  if (belongs && aligned && inside) return;
  throw Error(EINVAL, "the log is wrong: event " + std::to_string(completion.seq) +
                          (belongs ? " completes a write that does not fit on its disk"
                                   : " completes no write of its disk"));
}
}  // namespace

struct Index::Header {
  uint64_t magic;
  uint64_t events;
  uint64_t disks;
  uint64_t bytes;
  uint64_t last_crc;
};

// The completions of a disk, in the order of the recording.
struct Index::Ended {
  std::vector<IndexedWrite> writes;
  std::vector<IndexedFlush> flushes;
};

// Offset from the file's start, and length in bytes.
struct Index::DiskTable {
  uint64_t writes, writes_count;
  uint64_t flushes, flushes_count;
  uint64_t page_ends, pages;
  uint64_t touching;
};

Index::Index(const fs::path &recording, const std::vector<uint64_t> &disk_bytes) {
  const File log(recording / "log", O_RDONLY);
  slots_ = log.size() / sizeof(Record);
  log_ = Mapping(log, 0, slots_ * sizeof(Record), PROT_READ);
  const fs::path file = recording / "index";
  if (load(file, disk_bytes.size())) return;
  try {
    build(file, disk_bytes);
  } catch (const Error &error) {
    throw Error(error.code, recording.string() + ": " + error.what());
  }
}

bool Index::load(const fs::path &path, size_t disks) {
  if (!fs::exists(path)) return false;
  const File file(path, O_RDONLY);
  if (file.size() < sizeof(Header)) return false;
  Mapping mapping(file, 0, file.size(), PROT_READ);
  const Header &header = *mapping.as<Header>();
  const bool fits = header.magic == kMagic && header.disks == disks && header.bytes == file.size() &&
                    header.events > 0 && header.events <= slots_ &&
                    header.last_crc == event(header.events - 1).crc;
  if (!fits) return false;
  const bool has_grown = header.events < slots_ && is_valid(event(header.events), header.events);
  if (has_grown) return false;
  events_ = header.events;
  index_ = std::move(mapping);
  return true;
}

void Index::build(const fs::path &path, const std::vector<uint64_t> &disk_bytes) {
  while (events_ < slots_ && is_valid(event(events_), events_)) events_ += 1;
  const std::vector<Ended> ended = ended_by_disk(disk_bytes);
  uint64_t end = sizeof(Header) + ended.size() * sizeof(DiskTable);
  std::vector<DiskTable> tables;
  for (size_t disk = 0; disk < ended.size(); ++disk) {
    tables.push_back(laid_out(ended[disk], disk_bytes[disk], end));
  }
  const fs::path unfinished = path.string() + "." + std::to_string(::getpid());
  const File file(unfinished, O_RDWR | O_CREAT | O_TRUNC);
  // allocated first: a write to a mapping without room on the disk would be a bus error
  const int error = ::posix_fallocate(file.fd(), 0, static_cast<off_t>(end));
  if (error != 0) {
    fs::remove(unfinished);
    throw Error(error, std::string("no room for the index: ") + std::strerror(error));
  }
  Mapping out(file, 0, end, PROT_READ | PROT_WRITE);
  const uint64_t last_crc = events_ == 0 ? 0 : event(events_ - 1).crc;
  *out.as<Header>() = {kMagic, events_, ended.size(), end, last_crc};
  std::copy(tables.begin(), tables.end(), out.as<DiskTable>(sizeof(Header)));
  for (size_t disk = 0; disk < ended.size(); ++disk) fill(out, tables[disk], ended[disk]);
  index_ = std::move(out);
  fs::rename(unfinished, path);
}

std::vector<Index::Ended> Index::ended_by_disk(const std::vector<uint64_t> &disk_bytes) const {
  const size_t disks = disk_bytes.size();
  std::vector<Ended> ended(disks);
  for (uint64_t seq = 0; seq < events_; ++seq) {
    const Record &completion = event(seq);
    if (completion.error != 0 || completion.disk >= disks || completion.reference >= seq) continue;
    Ended &of_disk = ended[completion.disk];
    if (is_write_complete(completion.kind)) {
      const Record &submission = event(completion.reference);
      must_be_possible(submission, completion, disk_bytes[completion.disk]);
      const bool has_data = submission.kind == Kind::write_submit;
      of_disk.writes.push_back({submission.seq, seq, submission.offset, submission.length,
                                has_data ? submission.reference : 0, has_data,
                                submission.flags & uint32_t{kFua}});
    } else if (completion.kind == Kind::flush_complete) {
      const uint64_t before = of_disk.flushes.empty() ? 0 : of_disk.flushes.back().covers_before;
      of_disk.flushes.push_back({seq, std::max(before, completion.reference)});
    }
  }
  return ended;
}

Index::DiskTable Index::laid_out(const Ended &ended, uint64_t disk_bytes, uint64_t &end) {
  const auto reserve = [&end](uint64_t bytes) { return std::exchange(end, end + (bytes + 7) / 8 * 8); };
  DiskTable table{};
  table.writes_count = ended.writes.size();
  table.writes = reserve(table.writes_count * sizeof(IndexedWrite));
  table.flushes_count = ended.flushes.size();
  table.flushes = reserve(table.flushes_count * sizeof(IndexedFlush));
  table.pages = (disk_bytes + kPageBytes - 1) / kPageBytes;
  table.page_ends = reserve(table.pages * sizeof(uint64_t));
  uint64_t touches = 0;
  for (const IndexedWrite &write : ended.writes) for_pages(write, [&](uint64_t) { touches += 1; });
  table.touching = reserve(touches * sizeof(uint32_t));
  return table;
}

void Index::fill(const Mapping &out, const DiskTable &table, const Ended &ended) {
  std::copy(ended.writes.begin(), ended.writes.end(), out.as<IndexedWrite>(table.writes));
  std::copy(ended.flushes.begin(), ended.flushes.end(), out.as<IndexedFlush>(table.flushes));
  uint64_t *const page_ends = out.as<uint64_t>(table.page_ends);
  for (const IndexedWrite &write : ended.writes) {
    for_pages(write, [&](uint64_t page) { page_ends[page] += 1; });
  }
  // from counts to the start of each page's part; filling moves the start to the part's end
  uint64_t sum = 0;
  for (uint64_t page = 0; page < table.pages; ++page) sum += std::exchange(page_ends[page], sum);
  uint32_t *const touching = out.as<uint32_t>(table.touching);
  uint32_t number = 0;
  for (const IndexedWrite &write : ended.writes) {
    for_pages(write, [&](uint64_t page) { touching[page_ends[page]++] = number; });
    number += 1;
  }
}

const Index::DiskTable &Index::table(uint16_t disk) const {
  return index_.as<DiskTable>(sizeof(Header))[disk];
}

Span<IndexedWrite> Index::writes(uint16_t disk) const {
  const auto *first = index_.as<IndexedWrite>(table(disk).writes);
  return {first, first + table(disk).writes_count};
}

Span<IndexedFlush> Index::flushes(uint16_t disk) const {
  const auto *first = index_.as<IndexedFlush>(table(disk).flushes);
  return {first, first + table(disk).flushes_count};
}

Span<uint32_t> Index::touching(uint16_t disk, uint64_t page) const {
  const uint64_t *page_ends = index_.as<uint64_t>(table(disk).page_ends);
  const auto *touching = index_.as<uint32_t>(table(disk).touching);
  if (page >= table(disk).pages) return {touching, touching};  // the disk is now served larger
  return {touching + (page == 0 ? 0 : page_ends[page - 1]), touching + page_ends[page]};
}

}  // namespace shelf
