// The JSON files and commands of README.md, read and checked.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pace.hpp"
#include "recorder.hpp"

namespace shelf {

struct SourceConfig {
  std::filesystem::path image;
  std::filesystem::path view;
  std::string disk;
};

// Which requests are acknowledged and not done: every n-th, none with 0.
struct Fault {
  uint64_t drop_flush_every = 0;
  uint64_t lose_write_every = 0;
  // Only writes and flushes of this role.
  std::optional<Role> role;
  // How long before its end a flush is acknowledged.
  double flush_early_ms = 0;
  /// Every so-manieth write takes so much longer; it is done all the same.
  uint64_t slow_write_every = 0;
  double slow_write_ms = 0;
};

struct DiskConfig {
  std::string name;
  uint64_t size;
  uint32_t sector;
  // The units into which a write is torn.
  uint32_t physical_sector;
  SourceConfig source;
  Profile profile;
  Fault fault;
};

struct ShelfConfig {
  std::filesystem::path folder;
  std::filesystem::path recording;
  std::vector<DiskConfig> disks;

  // The place of the disk with this name, if there is one.
  std::optional<uint16_t> find(const std::string &name) const;
};

enum class Policy { all, flushed, subset, torn, lying, prefix, oldest, but_few, explicit_list };

// Which of the writes in flight survive.
enum class InFlight { gone, whole, torn };

struct DiskViewConfig {
  Policy policy;
  InFlight in_flight = InFlight::gone;
  std::optional<double> lying_ms;
  // The limit of a cache's content: older and earlier writes are durable.
  std::optional<double> held_ms;
  std::optional<uint64_t> held_bytes;
  // A submission to its surviving sectors; no list: all of them.
  std::unordered_map<uint64_t, std::optional<std::vector<uint64_t>>> survivors;
};

struct ViewConfig {
  std::filesystem::path recording;
  uint64_t cut;
  uint64_t seed = 0;
  std::map<std::string, DiskViewConfig> disks;
};

// All raise `Error` that names the file and the mistake.
ShelfConfig read_shelf(const std::filesystem::path &file);
ViewConfig read_view(const std::filesystem::path &file);

/// Keep a shelf's configuration in its recording, with paths as seen from there.
void write_shelf(const ShelfConfig &config);

// The new content of some disks, by their names.
using Turn = std::map<std::string, SourceConfig>;

/// A command for `control`; raises `Error` (EINVAL) when it makes no sense.
void obey(const std::string &command, const ShelfConfig &config, Recorder &recorder,
          const std::function<void(const Turn &)> &turn, const std::function<void(double)> &slow);

// The answer to a read of `control`.
std::string status_text(const Recorder::Status &status,
                        const std::vector<std::pair<std::string, uint64_t>> &connections);

}  // namespace shelf
