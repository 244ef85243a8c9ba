"""Wrong shelves: a copy of the plugin's sources that holds many mistakes, each behind a switch.

One build serves them all: the environment variable `SHELF_MUTANT` names the mistake to make, and without
it the shelf is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.machines.host.native import SHELF_SOURCES

_SWITCH = """\
#ifndef MUTANT_SWITCH
#define MUTANT_SWITCH
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
namespace {
[[maybe_unused]] bool mutant(const char *name) {
  static const char *const chosen = std::getenv("SHELF_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}
}  // namespace
#endif
"""
_THIS_MUTANT = "THIS_MUTANT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A mistake: the text `right`, which a file has once, becomes `wrong`.

    Of an expression `wrong` is the other expression; else `THIS_MUTANT` in it says whether it is chosen.
    """

    name: str
    file: str
    right: str
    wrong: str

    def switched(self) -> str:
        """Both, the right one unless the mutant is chosen."""
        chosen = f'mutant("{self.name}")'
        if _THIS_MUTANT in self.wrong:
            return self.wrong.replace(_THIS_MUTANT, chosen)
        return f"({chosen} ? ({self.wrong}) : ({self.right}))"


MUTANTS = (
    Mutant(
        name="flush-covers-what-was-only-submitted",
        file="view.cpp",
        right="write.completion < flushed_before_",
        wrong="write.submission < flushed_before_",
    ),
    Mutant(
        name="flush-covers-until-its-own-completion",
        file="index.cpp",
        right="std::max(before, completion.reference)",
        wrong="std::max(before, seq)",
    ),
    Mutant(
        name="flush-misses-the-last-completed",
        file="view.cpp",
        right="(after - 1)->covers_before",
        wrong="(after - 1)->covers_before - ((after - 1)->covers_before > 0)",
    ),
    Mutant(
        name="fua-is-not-logged",
        file="disk.cpp",
        right="fua ? kFua : 0",
        wrong="0",
    ),
    Mutant(
        name="fua-covers-nothing",
        file="view.cpp",
        right="write.fua != 0",
        wrong="false",
    ),
    Mutant(
        name="one-disk-does-not-freeze",
        file="recorder.cpp",
        right="record.payload_crc = 0;\n  const Lock lock = running();",
        wrong="record.payload_crc = 0;\n"
        "  const Lock lock = THIS_MUTANT && record.disk == 1 ? Lock(mutex_) : running();",
    ),
    Mutant(
        name="one-disk-freezes-later",
        file="recorder.cpp",
        right="submit(Record record, Role role) {\n  const Lock lock = running();",
        wrong="submit(Record record, Role role) {\n"
        "  const Lock lock = THIS_MUTANT && record.disk == 0 ? Lock(mutex_) : running();",
    ),
    Mutant(
        name="one-disk-is-cut-earlier",
        file="view.cpp",
        right="cut_(view.cut)",
        wrong="cut_(THIS_MUTANT && disk == 1 && view.cut > 0 ? view.cut - 1 : view.cut)",
    ),
    Mutant(
        name="torn-below-the-sector",
        file="view.cpp",
        right="(write.offset + byte_in_write) / sector_ - write.offset / sector_",
        wrong="byte_in_write / kSector",
    ),
    Mutant(
        name="payload-after-the-acknowledgement",
        file="recorder.cpp",
        right="data_.write(static_cast<const char *>(payload), length, place);",
        wrong="""if (THIS_MUTANT) {
      const std::string copy(static_cast<const char *>(payload), length);
      std::thread([this, copy, place] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        data_.write(copy.data(), copy.size(), place);
      }).detach();
    } else {
      data_.write(static_cast<const char *>(payload), length, place);
    }""",
    ),
    Mutant(
        name="payload-of-the-next-place",
        file="disk.cpp",
        right="submission.reference = recorder_.store(number_, data, length, submission.payload_crc);",
        wrong="submission.reference = recorder_.store(number_, data, length, submission.payload_crc) + "
        "(THIS_MUTANT ? kSector : 0);",
    ),
    Mutant(
        name="checksum-of-something-else",
        file="disk.cpp",
        right="checksum(data, length)",
        wrong="checksum(data, length / 2)",
    ),
    Mutant(
        name="lying-ignores-nothing",
        file="view.cpp",
        right="policy_.lying_ms ?",
        wrong="policy_.lying_ms && !THIS_MUTANT ?",
    ),
    Mutant(
        name="in-flight-is-whole-where-it-is-torn",
        file="view.cpp",
        right="policy_.in_flight == InFlight::whole ? 0 : 1 + sector",
        wrong="0",
    ),
    Mutant(
        name="in-flight-survives-as-completed-does",
        file="view.cpp",
        right="write.completion == kInFlight && !is_judged_alike",
        wrong="false",
    ),
    Mutant(
        name="acknowledged-before-it-is-logged",
        file="disk.cpp",
        right="void Disk::write(const char *data, uint64_t offset, uint64_t length, bool fua) {",
        wrong="""\
void Disk::write(const char *data, uint64_t offset, uint64_t length, bool fua) {
  if (THIS_MUTANT && !fua) {
    const std::string copy(data, length);
    std::thread([this, copy, offset] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      try {
        write(copy.data(), offset, copy.size(), true);
      } catch (const Error &) {
      }
    }).detach();
    return;
  }""",
    ),
    Mutant(
        name="there-before-it-is-completed",
        file="disk.cpp",
        right="  const uint64_t seq = recorder_.submit(submission, role);\n",
        wrong="  const uint64_t seq = recorder_.submit(submission, role);\n"
        "  if (THIS_MUTANT) map_.set(offset, length, true, submission.reference);\n",
    ),
    Mutant(
        name="trims-and-zeroes-do-nothing",
        file="disk.cpp",
        right="map_.set(offset, length, false, 0)",
        wrong="static_cast<void>(0)",
    ),
    Mutant(
        name="in-flight-writes-in-the-wrong-order",
        file="view.cpp",
        right="in_flight_.push_back({seq",
        wrong="in_flight_.insert(THIS_MUTANT ? in_flight_.begin() : in_flight_.end(), {seq",
    ),
    Mutant(
        name="the-cut-itself-has-not-happened",
        file="view.cpp",
        right="cut < writes[number].completion",
        wrong="cut <= writes[number].completion",
    ),
    Mutant(
        name="freezes-an-event-late",
        file="recorder.cpp",
        right="record.seq >= *trigger_->at_seq",
        wrong="record.seq > *trigger_->at_seq",
    ),
    Mutant(
        name="freezes-on-any-disk",
        file="recorder.cpp",
        right="*trigger_->disk == record.disk",
        wrong="true",
    ),
    Mutant(
        name="freezes-on-any-role",
        file="recorder.cpp",
        right="*trigger_->role == role_here",
        wrong="true",
    ),
    Mutant(
        name="metadata-are-data",
        file="role.hpp",
        right="length % kVolumeBlockBytes == 0",
        wrong="true",
    ),
    Mutant(
        name="in-flight-is-miscounted",
        file="recorder.cpp",
        right="record.in_flight = in_flight_",
        wrong="record.in_flight = in_flight_ + (THIS_MUTANT && record.kind == Kind::flush_submit)",
    ),
)


ONLY_WITH_ROLES = Mutant(
    name="a-flush-has-no-role",
    file="recorder.cpp",
    right="is_flush ? last_roles_[record.disk] : role",
    wrong="role",
)
"""A flush has to come behind a write of the very role, and random sequences seldom wait for that."""

ONLY_WITH_LOG_BLOCKS = (
    Mutant(
        name="copies-are-several",
        file="log_blocks.hpp",
        right="std::max(most, disk.uncovered.blocks)",
        wrong="most + disk.uncovered.blocks",
    ),
    Mutant(
        name="a-flush-covers-no-block-of-the-log",
        file="log_blocks.hpp",
        right="completed.front().last_completion < flush",
        wrong="completed.front().last_completion < (THIS_MUTANT ? 0 : flush)",
    ),
    Mutant(
        name="data-are-blocks-of-the-log",
        file="log_blocks.hpp",
        right="if (role == Role::zil) {",
        wrong="if (role == Role::zil || (THIS_MUTANT && role != Role::none)) {",
    ),
    Mutant(
        name="what-was-of-the-log-stays-so",
        file="log_blocks.hpp",
        right="std::fill(at(begin), at(end), role == Role::zil);",
        wrong="if (!THIS_MUTANT || role == Role::zil) std::fill(at(begin), at(end), role == Role::zil);",
    ),
    Mutant(
        name="only-the-same-place-is-reused",
        file="log_blocks.hpp",
        right="std::find(at(begin), at(end), true) != at(end)",
        wrong="*at(begin) && (begin == 0 || !*at(begin - 1))",
    ),
)
"""Random sequences seldom wait for these."""

ONLY_IN_FORGED_LOGS = Mutant(
    name="flush-that-ends-late-undoes-another",
    file="index.cpp",
    right="of_disk.flushes.back().covers_before",
    wrong="0",
)
"""Two flushes of a disk seldom end in another order than they began, unless a log is made so."""

FAULTS = {
    "address,undefined": (
        Mutant(
            name="reads-beyond-the-end",
            file="disk.cpp",
            right="  map_.look_up(offset, length, places);",
            wrong="  map_.look_up(offset, length, places);\n"
            "  if (THIS_MUTANT && places.data()[places.capacity()] == 1) return;",
        ),
        Mutant(
            name="overflows",
            file="disk.cpp",
            right="  pace_.wait_for_read(arrival, offset, length);",
            wrong="  int sum = 0x7fffffff;\n"
            "  if (THIS_MUTANT) sum += static_cast<int>(length);\n"
            "  pace_.wait_for_read(arrival, offset, sum == 1 ? 0 : length);",
        ),
    ),
    "thread": (
        Mutant(
            name="counts-without-a-lock",
            file="recorder.cpp",
            right="Recorder::Status Recorder::status() {\n  const Lock lock(mutex_);",
            wrong="Recorder::Status Recorder::status() {\n"
            "  const Lock lock = THIS_MUTANT ? Lock() : Lock(mutex_);",
        ),
    ),
}
"""The mistakes that each sanitizer has to see."""


def write_mutants(folder: Path, mutants: Sequence[Mutant] = MUTANTS) -> Path:
    """The plugin's sources with these mutants in them; returns their folder, which is made."""
    shutil.copytree(SHELF_SOURCES, folder)
    for file in sorted({mutant.file for mutant in mutants}):
        path = folder / file
        source = path.read_text()
        for mutant in mutants:
            if mutant.file == file:
                found = source.count(mutant.right)
                assert found == 1, f"{mutant.name}: {file} has its text {found} times"
                source = source.replace(mutant.right, mutant.switched())
        path.write_text(_SWITCH + source)
    return folder
