// Files and mappings that close with their owner.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "record.hpp"

namespace shelf {

inline Error system_error(const std::string &what) {
  const int code = errno;
  return Error(code, what + ": " + std::strerror(code));
}

/// A file descriptor.
class File {
 public:
  File() = default;
  File(const std::filesystem::path &path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw system_error("cannot open " + path.string());
  }
  /// Take over a descriptor.
  explicit File(int fd) : fd_(fd) {}
  File(File &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File &operator=(File &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  // A nameless file in `folder`: it is gone with the process.
  static File nameless(const std::filesystem::path &folder) {
    std::string name = (folder / "shelf-XXXXXX").string();
    File file;
    file.fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (file.fd_ < 0) throw system_error("cannot make a temporary file in " + folder.string());
    ::unlink(name.c_str());
    return file;
  }

  int fd() const { return fd_; }

  uint64_t size() const {
    struct stat status {};
    if (::fstat(fd_, &status) < 0) throw system_error("fstat");
    return static_cast<uint64_t>(status.st_size);
  }

  // Read exactly `length` bytes; bytes beyond the end of the file read as zeroes.
  void read(char *out, uint64_t length, uint64_t offset) const {
    while (length > 0) {
      const ssize_t got = ::pread(fd_, out, length, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error("pread");
      if (got == 0) {
        std::memset(out, 0, length);
        return;
      }
      out += got;
      offset += static_cast<uint64_t>(got);
      length -= static_cast<uint64_t>(got);
    }
  }

  void write(const char *data, uint64_t length, uint64_t offset) const {
    while (length > 0) {
      const ssize_t put = ::pwrite(fd_, data, length, static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw system_error("pwrite");
      data += put;
      offset += static_cast<uint64_t>(put);
      length -= static_cast<uint64_t>(put);
    }
  }

 private:
  int fd_ = -1;
};

/// A part of a file in memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const File &file, uint64_t offset, uint64_t length, int protection) : length_(length) {
    if (length == 0) return;
    data_ = ::mmap(nullptr, length, protection, MAP_SHARED, file.fd(), static_cast<off_t>(offset));
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      throw system_error("mmap");
    }
  }
  Mapping(Mapping &&other) noexcept { swap(other); }
  Mapping &operator=(Mapping &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, length_);
  }

  template <typename T>
  T *as(uint64_t byte = 0) const {
    return reinterpret_cast<T *>(static_cast<char *>(data_) + byte);
  }
  uint64_t length() const { return length_; }

 private:
  void swap(Mapping &other) {
    std::swap(data_, other.data_);
    std::swap(length_, other.length_);
  }
  void *data_ = nullptr;
  uint64_t length_ = 0;
};

}  // namespace shelf
