#include "config.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace shelf {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr double kAfterMsMax = 1e12;
constexpr double kSlowMax = 1e6;

json parse_file(const fs::path &file) {
  std::ifstream stream(file);
  if (!stream) throw Error(ENOENT, "cannot read " + file.string());
  return json::parse(stream);
}

// Call `read` with the file's content; every error names the file.
template <typename Read>
auto reading(const fs::path &file, Read read) {
  try {
    const json content = parse_file(file);
    if (content.at("schema") != 1) throw Error(EINVAL, "schema is not 1");
    return read(content);
  } catch (const json::exception &error) {
    throw Error(EINVAL, file.string() + ": " + error.what());
  } catch (const Error &error) {
    throw Error(error.code, file.string() + ": " + error.what());
  }
}

// Without this check JSON's -1 and 1.5 would be converted silently.
uint64_t number_of(const json &content) {
  if (!content.is_number_unsigned()) {
    throw Error(EINVAL, content.dump() + " is no whole number from 0 to 2**64 - 1");
  }
  return content.get<uint64_t>();
}

Profile profile_of(const json &content) {
  Profile profile;
  profile.read_us = content.value("read_us", 0.0);
  profile.seek_us = content.value("seek_us", 0.0);
  profile.write_us = content.value("write_us", 0.0);
  profile.flush_us = content.value("flush_us", 0.0);
  profile.mib_per_s = content.value("mib_per_s", 0.0);
  profile.serial = content.value("serial", false);
  return profile;
}

Fault fault_of(const json &content) {
  Fault fault;
  if (content.contains("drop_flush_every")) fault.drop_flush_every = number_of(content.at("drop_flush_every"));
  if (content.contains("lose_write_every")) fault.lose_write_every = number_of(content.at("lose_write_every"));
  if (content.contains("role")) {
    fault.role = role_named(content.at("role").get<std::string>());
    if (!fault.role) throw Error(EINVAL, "there is no such role");
  }
  fault.flush_early_ms = content.value("flush_early_ms", 0.0);
  if (content.contains("slow_write_every")) fault.slow_write_every = number_of(content.at("slow_write_every"));
  fault.slow_write_ms = content.value("slow_write_ms", 0.0);
  return fault;
}

SourceConfig source_of(const json &content, const fs::path &folder) {
  SourceConfig source;
  if (content.contains("image")) source.image = folder / content.at("image").get<std::string>();
  if (content.contains("view")) {
    source.view = folder / content.at("view").get<std::string>();
    source.disk = content.at("disk").get<std::string>();
  }
  return source;
}

DiskConfig disk_of(const json &content, const fs::path &folder) {
  DiskConfig disk;
  disk.name = content.at("name").get<std::string>();
  disk.size = number_of(content.at("size"));
  disk.sector = content.value("sector", 512U);
  disk.physical_sector = content.value("physical_sector", disk.sector);
  for (const uint32_t bytes : {disk.sector, disk.physical_sector}) {
    if (bytes != 512 && bytes != 4096) throw Error(EINVAL, disk.name + ": a sector is 512 or 4096 bytes");
  }
  if (disk.physical_sector < disk.sector) {
    throw Error(EINVAL, disk.name + ": its physical sector is smaller than its logical one");
  }
  if (disk.size == 0 || disk.size % disk.sector != 0) {
    throw Error(EINVAL, disk.name + ": its size is no multiple of its sector");
  }
  if (disk.name.empty() || disk.name == "marks" || disk.name == "control") {
    throw Error(EINVAL, "a disk cannot be called '" + disk.name + "'");
  }
  if (content.contains("source")) disk.source = source_of(content.at("source"), folder);
  if (content.contains("fault")) disk.fault = fault_of(content.at("fault"));
  if (content.contains("profile")) disk.profile = profile_of(content.at("profile"));
  return disk;
}

Policy policy_of(const std::string &name) {
  static const std::map<std::string, Policy> policies = {
      {"all", Policy::all},       {"flushed", Policy::flushed},
      {"subset", Policy::subset}, {"torn", Policy::torn},
      {"lying", Policy::lying},   {"prefix", Policy::prefix},
      {"oldest", Policy::oldest}, {"but-few", Policy::but_few},
      {"explicit", Policy::explicit_list}};
  const auto found = policies.find(name);
  if (found == policies.end()) throw Error(EINVAL, "no policy is called '" + name + "'");
  return found->second;
}

InFlight in_flight_of(const json &content) {
  static const std::map<std::string, InFlight> fates = {
      {"gone", InFlight::gone}, {"whole", InFlight::whole}, {"torn", InFlight::torn}};
  const std::string name = content.value("in_flight", "gone");
  const auto found = fates.find(name);
  if (found == fates.end()) throw Error(EINVAL, "in_flight cannot be '" + name + "'");
  return found->second;
}

DiskViewConfig disk_view_of(const json &content) {
  DiskViewConfig disk;
  disk.policy = policy_of(content.at("policy").get<std::string>());
  disk.in_flight = in_flight_of(content);
  if (disk.policy == Policy::torn) disk.in_flight = InFlight::torn;
  if (content.contains("held_ms")) disk.held_ms = content.at("held_ms").get<double>();
  if (disk.held_ms && *disk.held_ms < 0) throw Error(EINVAL, "held_ms is negative");
  if (content.contains("held_bytes")) disk.held_bytes = number_of(content.at("held_bytes"));
  if (disk.policy == Policy::lying || content.contains("lying_ms")) {
    disk.lying_ms = content.at("lying_ms").get<double>();
    if (*disk.lying_ms < 0) throw Error(EINVAL, "lying_ms is negative");
  }
  if (disk.policy != Policy::explicit_list) return disk;
  for (const json &survivor : content.at("survivors")) {
    if (survivor.is_array()) {
      std::vector<uint64_t> sectors;
      for (const json &sector : survivor.at(1)) sectors.push_back(number_of(sector));
      disk.survivors[number_of(survivor.at(0))] = sectors;
    } else {
      disk.survivors[number_of(survivor)] = std::nullopt;
    }
  }
  return disk;
}

Kind kind_of(const std::string &name) {
  for (size_t kind = 0; kind < std::size(kKindNames); ++kind) {
    if (name == kKindNames[kind]) return static_cast<Kind>(kind);
  }
  throw Error(EINVAL, "no event is called '" + name + "'");
}

Trigger trigger_of(const json &content, const ShelfConfig &config) {
  Trigger trigger;
  if (content.contains("at_seq")) {
    trigger.at_seq = number_of(content.at("at_seq"));
    return trigger;
  }
  trigger.event = kind_of(content.at("event").get<std::string>());
  if (content.contains("count")) trigger.count = number_of(content.at("count"));
  if (trigger.count == 0) throw Error(EINVAL, "count is 0");
  if (content.contains("disk")) {
    trigger.disk = config.find(content.at("disk").get<std::string>());
    if (!trigger.disk) throw Error(EINVAL, "there is no such disk");
  }
  if (content.contains("zil_uncovered")) trigger.zil_uncovered = number_of(content.at("zil_uncovered"));
  if (content.contains("zil_reused")) trigger.zil_reused = content.at("zil_reused").get<bool>();
  if (content.contains("role")) {
    trigger.role = role_named(content.at("role").get<std::string>());
    if (!trigger.role) throw Error(EINVAL, "there is no such role");
  }
  return trigger;
}

Turn turn_of(const json &content, const ShelfConfig &config) {
  Turn turn;
  for (const auto &[name, source] : content.items()) {
    if (!config.find(name)) throw Error(EINVAL, "there is no disk '" + name + "'");
    turn[name] = source_of(source, config.folder);
  }
  return turn;
}

Halt halt_of(const json &content) {
  if (!content.is_array()) throw Error(EINVAL, "halt is no list");
  std::vector<pid_t> pids;
  for (const json &pid : content) pids.push_back(static_cast<pid_t>(number_of(pid)));
  return Halt(pids);
}

}  // namespace

std::optional<uint16_t> ShelfConfig::find(const std::string &name) const {
  for (size_t place = 0; place < disks.size(); ++place) {
    if (disks[place].name == name) return static_cast<uint16_t>(place);
  }
  return std::nullopt;
}

ShelfConfig read_shelf(const fs::path &file) {
  return reading(file, [&](const json &content) {
    ShelfConfig config;
    config.folder = file.parent_path();
    if (content.contains("recording")) {
      config.recording = config.folder / content.at("recording").get<std::string>();
    }
    for (const json &disk : content.at("disks")) {
      config.disks.push_back(disk_of(disk, config.folder));
      if (*config.find(config.disks.back().name) + 1U != config.disks.size()) {
        throw Error(EINVAL, "two disks are called " + config.disks.back().name);
      }
    }
    if (config.disks.size() >= kNoDisk) throw Error(EINVAL, "too many disks");
    return config;
  });
}

ViewConfig read_view(const fs::path &file) {
  return reading(file, [&](const json &content) {
    ViewConfig view;
    view.recording = file.parent_path() / content.at("recording").get<std::string>();
    view.cut = number_of(content.at("cut"));
    if (content.contains("seed")) view.seed = number_of(content.at("seed"));
    for (const auto &[name, disk] : content.at("disks").items()) {
      view.disks[name] = disk_view_of(disk);
    }
    return view;
  });
}

void write_shelf(const ShelfConfig &config) {
  json disks = json::array();
  const auto seen_from_there = [&](const fs::path &path) {
    return fs::relative(path, config.recording).string();
  };
  for (const DiskConfig &disk : config.disks) {
    json entry = {{"name", disk.name}, {"size", disk.size}, {"sector", disk.sector}};
    if (disk.physical_sector != disk.sector) entry["physical_sector"] = disk.physical_sector;
    if (!disk.source.image.empty()) entry["source"] = {{"image", seen_from_there(disk.source.image)}};
    if (!disk.source.view.empty()) {
      entry["source"] = {{"view", seen_from_there(disk.source.view)}, {"disk", disk.source.disk}};
    }
    disks.push_back(entry);
  }
  std::ofstream stream(config.recording / "shelf.json");
  stream << json{{"schema", 1}, {"disks", disks}}.dump(1) << "\n";
  if (!stream.flush()) throw Error(EIO, "cannot write " + (config.recording / "shelf.json").string());
}

void obey(const std::string &command, const ShelfConfig &config, Recorder &recorder,
          const std::function<void(const Turn &)> &turn, const std::function<void(double)> &slow) {
  try {
    const json content = json::parse(command);
    if (content.contains("turn")) {
      turn(turn_of(content.at("turn"), config));
      return;
    }
    if (content.contains("slow")) {
      const double times = content.at("slow").get<double>();
      if (times < 0 || times > kSlowMax) throw Error(EINVAL, "slow makes no sense");
      slow(times);
      return;
    }
    if (content.contains("halt")) {
      recorder.halt_with_freeze(halt_of(content.at("halt")));
      return;
    }
    const json freeze = content.at("freeze");
    if (freeze == "now") {
      recorder.freeze();
    } else if (freeze.contains("after_ms")) {
      const double after_ms = freeze.at("after_ms").get<double>();
      if (after_ms < 0 || after_ms > kAfterMsMax) throw Error(EINVAL, "after_ms makes no sense");
      recorder.freeze_after(std::chrono::duration<double, std::milli>(after_ms));
    } else {
      recorder.freeze_on(trigger_of(freeze, config));
    }
  } catch (const json::exception &error) {
    throw Error(EINVAL, std::string("no such command: ") + error.what());
  }
}

std::string status_text(const Recorder::Status &status,
                        const std::vector<std::pair<std::string, uint64_t>> &connections) {
  json disks = json::object();
  for (const auto &[name, count] : connections) disks[name] = {{"connections", count}};
  return json{{"frozen", status.frozen},
              {"seq", status.seq},
              {"errors", status.errors},
              {"last_error", status.last_error},
              {"disks", disks}}
      .dump();
}

}  // namespace shelf
