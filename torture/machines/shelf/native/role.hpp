// The purpose of a write to a pool's disk, judged by its content (README.md, "Roles").
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace shelf {

enum class Role : uint8_t { none, zil, uberblock, label, metadata, data };

constexpr const char *kRoleNames[] = {"none", "zil", "uberblock", "label", "metadata", "data"};

inline uint64_t word_at(const char *payload, uint64_t place) {
  uint64_t word = 0;
  std::memcpy(&word, payload + place, sizeof word);
  return word;
}

/// The role of a write with this payload.
inline Role role_of(const char *payload, uint64_t length) {
  constexpr uint64_t kUberblockMagic = 0x00bab10c;
  constexpr uint64_t kChecksumMagic = 0x210da7ab10c7a11;
  constexpr uint64_t kChecksumBytes = 40;
  constexpr uint64_t kZilMagicAt = 144;
  constexpr uint64_t kLabelBytes = 112 << 10;
  constexpr uint64_t kVolumeBlockBytes = 16 << 10;
  const auto has_checksum_at = [&](uint64_t place) {
    return length >= place + kChecksumBytes && word_at(payload, place) == kChecksumMagic;
  };
  if (length >= 3 * sizeof(uint64_t) && word_at(payload, 0) == kUberblockMagic) return Role::uberblock;
  if (length == kLabelBytes && has_checksum_at(kLabelBytes - kChecksumBytes)) return Role::label;
  if (has_checksum_at(kZilMagicAt)) return Role::zil;
  return length % kVolumeBlockBytes == 0 ? Role::data : Role::metadata;
}

inline std::optional<Role> role_named(const std::string &name) {
  for (size_t role = 1; role < std::size(kRoleNames); ++role) {
    if (name == kRoleNames[role]) return static_cast<Role>(role);
  }
  return std::nullopt;
}

}  // namespace shelf
