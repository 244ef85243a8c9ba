// The functions that nbdkit calls (nbdkit-plugin(3)): exports, and errors turned into errno.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config.hpp"
#include "disk.hpp"
#include "view.hpp"

#define NBDKIT_API_VERSION 2
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#include <nbdkit-plugin.h>

namespace {

using namespace shelf;

constexpr int64_t kMarksBytes = 1 << 20;
constexpr uint32_t kMarkBytesMax = 65536;
constexpr int64_t kControlBytes = 65536;
constexpr std::chrono::milliseconds kApart{5};

std::filesystem::path config_file;
ShelfConfig config;
std::unique_ptr<Recorder> recorder;
// Keeps recordings open from one turn to the next.
Opener opener;
std::mutex turning;
std::vector<std::unique_ptr<Disk>> disks;

// The purpose of a connection.
struct Export {
  enum class Is { disk, marks, control } is;
  Disk *disk = nullptr;
};

Export &export_of(void *handle) { return *static_cast<Export *>(handle); }

bool is_disk(void *handle) { return export_of(handle).is == Export::Is::disk; }

// Send answers one by one to a client that has gone. nbdkit before 1.34 aborts when it starts a
// connection's second answer while the first one fails.
void leave_apart_if_gone() {
  static std::mutex leaving;
  if (nbdkit_nanosleep(0, 0) == 0) return;
  const std::lock_guard lock(leaving);
  std::this_thread::sleep_for(kApart);
}

// Call `action`; an exception becomes the errno of the client's answer.
template <typename Action>
int guarded(Action action) {
  try {
    action();
    return 0;
  } catch (const Error &error) {
    nbdkit_error("shelf: %s", error.what());
    nbdkit_set_error(error.code);
  } catch (const std::exception &error) {
    nbdkit_error("shelf: %s", error.what());
    nbdkit_set_error(EIO);
  }
  return -1;
}

/// The same for a client's request.
template <typename Action>
int answered(Action action) {
  const int answer = guarded(action);
  leave_apart_if_gone();
  return answer;
}

void unload() {
  disks.clear();
  recorder.reset();
  opener = Opener();
}

int configure(const char *key, const char *value) {
  if (std::string(key) != "config") {
    nbdkit_error("shelf: no parameter is called '%s'", key);
    return -1;
  }
  char *const absolute = nbdkit_absolute_path(value);
  if (absolute == nullptr) return -1;
  config_file = absolute;
  std::free(absolute);
  return 0;
}

int configured() {
  if (!config_file.empty()) return 0;
  nbdkit_error("shelf: say config=shelf.json");
  return -1;
}

void start() {
  config = read_shelf(config_file);
  std::vector<std::shared_ptr<const Source>> sources;
  for (const DiskConfig &disk : config.disks) sources.push_back(opener.open(disk.source));
  if (config.recording.empty()) {
    recorder = Recorder::throw_away(config.folder);
  } else {
    std::filesystem::create_directories(config.recording);
    recorder = std::make_unique<Recorder>(config.recording);
    write_shelf(config);
  }
  for (uint16_t number = 0; number < config.disks.size(); ++number) {
    disks.push_back(std::make_unique<Disk>(config.disks[number], number, *recorder, sources[number]));
  }
}

int get_ready() { return guarded(start); }

int list_exports(int, int, nbdkit_exports *exports) {
  for (const auto &disk : disks) {
    if (nbdkit_add_export(exports, disk->config().name.c_str(), nullptr) < 0) return -1;
  }
  if (nbdkit_add_export(exports, "marks", nullptr) < 0) return -1;
  return nbdkit_add_export(exports, "control", nullptr);
}

void *open(int) {
  const std::string name = nbdkit_export_name();
  if (name == "marks") return new Export{Export::Is::marks};
  if (name == "control") return new Export{Export::Is::control};
  const auto number = config.find(name);
  if (!number) {
    nbdkit_error("shelf: no disk is called '%s'", name.c_str());
    nbdkit_set_error(ENOENT);
    return nullptr;
  }
  disks[*number]->connections += 1;
  return new Export{Export::Is::disk, disks[*number].get()};
}

void close(void *handle) {
  if (is_disk(handle)) export_of(handle).disk->connections -= 1;
  delete &export_of(handle);
}

int64_t get_size(void *handle) {
  switch (export_of(handle).is) {
    case Export::Is::marks:
      return kMarksBytes;
    case Export::Is::control:
      return kControlBytes;
    case Export::Is::disk:
      break;
  }
  return static_cast<int64_t>(export_of(handle).disk->config().size);
}

int block_size(void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum) {
  *minimum = is_disk(handle) ? export_of(handle).disk->config().sector : 1;
  *preferred = 4096;
  *maximum = is_disk(handle) ? 32U << 20 : kMarkBytesMax;
  return 0;
}

int can_fua(void *handle) { return is_disk(handle) ? NBDKIT_FUA_NATIVE : NBDKIT_FUA_NONE; }
int can_change(void *handle) { return is_disk(handle); }
int can_multi_conn(void *) { return 1; }

std::string status_padded() {
  std::vector<std::pair<std::string, uint64_t>> connections;
  for (const auto &disk : disks) connections.emplace_back(disk->config().name, disk->connections);
  std::string text = status_text(recorder->status(), connections);
  text.resize(kControlBytes, '\n');
  return text;
}

int pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t) {
  return answered([&] {
    char *const out = static_cast<char *>(buffer);
    switch (export_of(handle).is) {
      case Export::Is::marks:
        std::memset(out, 0, count);
        return;
      case Export::Is::control:
        status_padded().copy(out, count, offset);
        return;
      case Export::Is::disk:
        export_of(handle).disk->read(out, offset, count);
    }
  });
}

void mark(const void *payload, uint32_t count) {
  if (count > kMarkBytesMax) throw Error(EINVAL, "a mark is at most 64 KiB");
  recorder->wait_if_frozen();
  Record record;
  record.kind = Kind::mark;
  record.length = count;
  record.payload_crc = checksum(payload, count);
  record.reference = recorder->store(kNoDisk, payload, count, record.payload_crc);
  recorder->submit(record);
}

// All contents are opened before the first disk turns: a refused turn changes nothing.
void turn_disks(const Turn &turn) {
  if (!config.recording.empty()) throw Error(EINVAL, "a shelf that keeps its recording cannot turn");
  const std::lock_guard lock(turning);
  std::map<uint16_t, std::shared_ptr<const Source>> sources;
  for (const auto &[name, source] : turn) sources[*config.find(name)] = opener.open(source);
  recorder->forget();
  for (auto &[number, source] : sources) disks[number]->turn(std::move(source));
}

void slow_disks(double times) {
  for (const auto &disk : disks) disk->slow(times);
}

int pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags) {
  return answered([&] {
    const char *const data = static_cast<const char *>(buffer);
    switch (export_of(handle).is) {
      case Export::Is::marks:
        mark(buffer, count);
        return;
      case Export::Is::control:
        obey(std::string(data, count), config, *recorder, turn_disks, slow_disks);
        return;
      case Export::Is::disk:
        export_of(handle).disk->write(data, offset, count, (flags & NBDKIT_FLAG_FUA) != 0);
    }
  });
}

int flush(void *handle, uint32_t) {
  return answered([&] { export_of(handle).disk->flush(); });
}

int clear(void *handle, Kind kind, uint32_t count, uint64_t offset, uint32_t flags) {
  return answered([&] {
    export_of(handle).disk->clear(kind, offset, count, (flags & NBDKIT_FLAG_FUA) != 0);
  });
}

int trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags) {
  return clear(handle, Kind::trim_submit, count, offset, flags);
}

int zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags) {
  return clear(handle, Kind::zero_submit, count, offset, flags);
}

nbdkit_plugin described() {
  nbdkit_plugin plugin{};
  plugin.name = "shelf";
  plugin.longname = "power-fail disk shelf";
  plugin.description = "disks that record every write and can lose power";
  plugin.config_help = "config=FILE  (required) the disks, as in the shelf's README.md";
  plugin.magic_config_key = "config";
  plugin.unload = unload;
  plugin.config = configure;
  plugin.config_complete = configured;
  plugin.get_ready = get_ready;
  plugin.list_exports = list_exports;
  plugin.open = open;
  plugin.close = close;
  plugin.get_size = get_size;
  plugin.block_size = block_size;
  plugin.can_write = [](void *) { return 1; };
  plugin.can_flush = can_change;
  plugin.can_trim = can_change;
  plugin.can_zero = can_change;
  plugin.can_fast_zero = can_change;
  plugin.can_fua = can_fua;
  plugin.can_multi_conn = can_multi_conn;
  plugin.pread = pread;
  plugin.pwrite = pwrite;
  plugin.flush = flush;
  plugin.trim = trim;
  plugin.zero = zero;
  return plugin;
}

nbdkit_plugin plugin = described();

}  // namespace

NBDKIT_REGISTER_PLUGIN(plugin)
