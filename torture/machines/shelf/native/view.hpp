// The content of a disk after a cut (README.md, "What a cut leaves").
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_set>

#include "config.hpp"
#include "index.hpp"
#include "source.hpp"

namespace shelf {

// The seed's draw for a write (`sector` 0) or a sector of it (1 + its place).
uint64_t word(uint64_t seed, uint64_t submission, uint64_t sector);

/// Whether a write (`sector` 0) or a sector of it (1 + its place) survives, by the seed.
bool coin(uint64_t seed, uint64_t submission, uint64_t sector);

/// A recording that views are taken of.
struct OpenRecording {
  explicit OpenRecording(const std::filesystem::path &folder);
  ShelfConfig config;
  Index index;
  File data;
  Payloads payloads{data};
};

// Opens the first contents of disks; a recording that several disks need is opened once.
class Opener {
 public:
  // Raises `Error` when a file is missing or makes no sense, or views form a circle.
  std::shared_ptr<const Source> open(const SourceConfig &config, int depth = 0);

 private:
  std::shared_ptr<const OpenRecording> recording(const std::filesystem::path &folder);
  std::map<std::string, std::shared_ptr<const OpenRecording>> recordings_;
};

class ViewOfDisk : public Source {
 public:
  ViewOfDisk(std::shared_ptr<const OpenRecording> recording, uint16_t disk, const ViewConfig &view,
             DiskViewConfig policy, std::shared_ptr<const Source> below);

  void read(char *out, uint64_t offset, uint64_t length) const override;

 private:
  using Sectors = std::vector<Place>;
  void find_in_flight();
  uint64_t settled_before() const;
  void draw_lost();
  bool is_covered(const IndexedWrite &write) const;
  bool survives(const IndexedWrite &write, uint64_t byte_in_write) const;
  void resolve_page(uint64_t page, uint64_t offset, Sectors &places) const;
  bool apply(const IndexedWrite &write, uint64_t from, uint64_t to, uint64_t offset,
             Sectors &places) const;

  const std::shared_ptr<const OpenRecording> recording_;
  const uint16_t disk_;
  const uint64_t cut_;
  const uint64_t seed_;
  // The size of a physical sector.
  const uint32_t sector_;
  const DiskViewConfig policy_;
  const std::shared_ptr<const Source> below_;
  // A flush covers the writes completed before this event.
  uint64_t flushed_before_ = 0;
  // Only FUA and flushes completed before this event count.
  uint64_t durable_before_ = 0;
  // Writes completed before this event have left the cache.
  uint64_t settled_before_ = 0;
  // Submissions, where the policy draws among all of them.
  std::unordered_set<uint64_t> lost_;
  /// The last submitted first.
  std::vector<IndexedWrite> in_flight_;
};

}  // namespace shelf
