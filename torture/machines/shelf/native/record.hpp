// One event of a recording, in the form of `log` (README.md, "The log").
#pragma once

#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace shelf {

constexpr uint64_t kSector = 512;
constexpr uint32_t kFormatVersion = 1;
constexpr uint16_t kNoDisk = 0xffff;
constexpr uint8_t kFua = 1;

enum class Kind : uint8_t {
  begin,
  write_submit,
  write_complete,
  zero_submit,
  zero_complete,
  trim_submit,
  trim_complete,
  flush_submit,
  flush_complete,
  mark,
  freeze,
  failed,
};

constexpr const char *kKindNames[] = {
    "begin",         "write-submit", "write-complete", "zero-submit",
    "zero-complete", "trim-submit",  "trim-complete",  "flush-submit",
    "flush-complete", "mark",        "freeze",         "failed",
};

// Whether a kind is the submission of a change to a disk.
constexpr bool is_write_submit(Kind kind) {
  return kind == Kind::write_submit || kind == Kind::zero_submit || kind == Kind::trim_submit;
}

// Whether a kind is the completion of a change to a disk.
constexpr bool is_write_complete(Kind kind) {
  return kind == Kind::write_complete || kind == Kind::zero_complete || kind == Kind::trim_complete;
}

// The kind of a submission's completion.
constexpr Kind completion_of(Kind submission) {
  return static_cast<Kind>(static_cast<uint8_t>(submission) + 1);
}

struct Record {
  uint64_t seq = 0;
  uint64_t time_ns = 0;
  Kind kind = Kind::begin;
  uint8_t flags = 0;
  uint16_t disk = kNoDisk;
  int32_t error = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t reference = 0;
  uint32_t payload_crc = 0;
  uint32_t in_flight = 0;
  uint32_t reserved = 0;
  uint32_t crc = 0;
};

static_assert(sizeof(Record) == 64 && offsetof(Record, crc) == 60);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the files are little-endian");

/// CRC-32 (IEEE), as zlib's.
inline uint32_t checksum(const void *data, size_t length) {
  return libdeflate_crc32(0, data, length);
}

// Whether a record is whole and in the place of its number.
inline bool is_valid(const Record &record, uint64_t seq) {
  return record.seq == seq && record.crc == checksum(&record, offsetof(Record, crc));
}

// The cause of a failure, and the errno of an NBD client's answer.
struct Error : std::runtime_error {
  Error(int errno_code, const std::string &what) : std::runtime_error(what), code(errno_code) {}
  int code;
};

}  // namespace shelf
