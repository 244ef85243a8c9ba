"""Wrong shelves: a copy of the plugin's sources that holds many mistakes, each behind a switch.

One build serves them all: the environment variable `SHELF_MUTANT` names the mistake to make, and without
it the shelf is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
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


def mutants_in(mistakes: Mapping[str, Mapping[str, tuple[str, str]]]) -> tuple[Mutant, ...]:
    """By file and name, the right text and the wrong one."""
    return tuple(
        Mutant(name=name, file=file, right=right, wrong=wrong)
        for file, of_file in mistakes.items()
        for name, (right, wrong) in of_file.items()
    )


MUTANTS = mutants_in(
    {
        "view.cpp": {
            "flush-covers-what-was-only-submitted": (
                "write.completion < flushed_before_",
                "write.submission < flushed_before_",
            ),
            "flush-misses-the-last-completed": (
                "(after - 1)->covers_before",
                "(after - 1)->covers_before - ((after - 1)->covers_before > 0)",
            ),
            "fua-covers-nothing": ("write.fua != 0", "false"),
            "one-disk-is-cut-earlier": (
                "cut_(view.cut)",
                "cut_(THIS_MUTANT && disk == 1 && view.cut > 0 ? view.cut - 1 : view.cut)",
            ),
            "torn-below-the-sector": (
                "(write.offset + byte_in_write) / sector_ - write.offset / sector_",
                "byte_in_write / kSector",
            ),
            "lying-ignores-nothing": ("policy_.lying_ms ?", "policy_.lying_ms && !THIS_MUTANT ?"),
            "in-flight-is-whole-where-it-is-torn": (
                "policy_.in_flight == InFlight::whole ? 0 : 1 + sector",
                "0",
            ),
            "in-flight-survives-as-completed-does": (
                "write.completion == kInFlight && !is_judged_alike",
                "false",
            ),
            "in-flight-writes-in-the-wrong-order": (
                "in_flight_.push_back({seq",
                "in_flight_.insert(THIS_MUTANT ? in_flight_.begin() : in_flight_.end(), {seq",
            ),
            "the-cut-itself-has-not-happened": (
                "cut < writes[number].completion",
                "cut <= writes[number].completion",
            ),
        },
        "index.cpp": {
            "flush-covers-until-its-own-completion": (
                "std::max(before, completion.reference)",
                "std::max(before, seq)",
            ),
        },
        "disk.cpp": {
            "fua-is-not-logged": ("fua ? kFua : 0", "0"),
            "payload-of-the-next-place": (
                "submission.reference = recorder_.store(number_, data, length, submission.payload_crc);",
                "submission.reference = recorder_.store(number_, data, length, submission.payload_crc) + "
                "(THIS_MUTANT ? kSector : 0);",
            ),
            "checksum-of-something-else": ("checksum(data, length)", "checksum(data, length / 2)"),
            "acknowledged-before-it-is-logged": (
                "void Disk::write(const char *data, uint64_t offset, uint64_t length, bool fua) {",
                """\
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
            "there-before-it-is-completed": (
                "  const uint64_t seq = recorder_.submit(submission, role);\n",
                "  const uint64_t seq = recorder_.submit(submission, role);\n"
                "  if (THIS_MUTANT) map_.set(offset, length, true, submission.reference);\n",
            ),
            "trims-and-zeroes-do-nothing": (
                "map_.set(offset, length, false, 0)",
                "static_cast<void>(0)",
            ),
        },
        "recorder.cpp": {
            "one-disk-does-not-freeze": (
                "record.payload_crc = 0;\n  const Lock lock = running();",
                "record.payload_crc = 0;\n"
                "  const Lock lock = THIS_MUTANT && record.disk == 1 ? Lock(mutex_) : running();",
            ),
            "one-disk-freezes-later": (
                "submit(Record record, Role role) {\n  const Lock lock = running();",
                "submit(Record record, Role role) {\n"
                "  const Lock lock = THIS_MUTANT && record.disk == 0 ? Lock(mutex_) : running();",
            ),
            "payload-after-the-acknowledgement": (
                "data_.write(static_cast<const char *>(payload), length, place);",
                """if (THIS_MUTANT) {
      const std::string copy(static_cast<const char *>(payload), length);
      std::thread([this, copy, place] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        data_.write(copy.data(), copy.size(), place);
      }).detach();
    } else {
      data_.write(static_cast<const char *>(payload), length, place);
    }""",
            ),
            "freezes-an-event-late": (
                "record.seq >= *trigger_->at_seq",
                "record.seq > *trigger_->at_seq",
            ),
            "freezes-on-any-disk": ("*trigger_->disk == record.disk", "true"),
            "freezes-on-any-role": ("*trigger_->role == role_here", "true"),
            "in-flight-is-miscounted": (
                "record.in_flight = in_flight_",
                "record.in_flight = in_flight_ + (THIS_MUTANT && record.kind == Kind::flush_submit)",
            ),
        },
        "role.hpp": {
            "metadata-are-data": ("length % kVolumeBlockBytes == 0", "true"),
        },
    }
)


POLICY_MUTANTS = mutants_in(
    {
        "view.cpp": {
            "a-prefix-is-the-whole": (
                "return sector <= word(",
                "return THIS_MUTANT || sector <= word(",
            ),
            "the-oldest-are-one-less": (
                "drawn(0) % (open.size() + 1)",
                "drawn(0) % (open.size() + (THIS_MUTANT && !open.empty() ? 0 : 1))",
            ),
            "never-two-are-lost": (
                "if (drawn(0) >> 63 != 0) lost_",
                "if (drawn(0) >> 63 != 0 && !THIS_MUTANT) lost_",
            ),
            "the-cache-holds-one-write-less": (
                "if (held > *policy_.held_bytes)",
                "if (held >= *policy_.held_bytes + !THIS_MUTANT)",
            ),
            "the-cache-never-forgets-by-age": (
                "policy_.held_ms ?",
                "policy_.held_ms && !THIS_MUTANT ?",
            ),
        },
    }
)
"""Mistakes in what a cut leaves of a cache with a limit, and in what is drawn among its writes."""

RECORDING_MUTANTS = mutants_in(
    {
        "view.cpp": {
            "what-was-there-before-is-not-in-a-view": (
                "below_(std::move(below))",
                "below_(THIS_MUTANT ? std::make_shared<const Zeroes>() : std::move(below))",
            ),
        },
        "disk.cpp": {
            "the-first-block-is-not-recorded": (
                "  const Role role = role_of(data, length);\n",
                "  const Role role = role_of(data, length);\n"
                "  if (THIS_MUTANT && offset == 0) {\n"
                "    const uint64_t place = "
                "recorder_.store(number_, data, length, checksum(data, length));\n"
                "    map_.set(offset, length, true, place);\n"
                "    return;\n"
                "  }\n",
            ),
            "trims-and-zeroes-are-not-recorded": (
                "  const Record submission = record(kind, offset, length, fua);\n",
                "  const Record submission = record(kind, offset, length, fua);\n"
                "  if (THIS_MUTANT) {\n"
                "    map_.set(offset, length, false, 0);\n"
                "    return;\n"
                "  }\n",
            ),
        },
    }
)
"""Shelves whose recording, or whose view of it, lacks a write: states are built without it.

The disk itself has the write, so its reader sees nothing amiss before the cut.
"""

ONLY_WITH_ROLES = Mutant(
    name="a-flush-has-no-role",
    file="recorder.cpp",
    right="is_flush ? last_roles_[record.disk] : role",
    wrong="role",
)
"""A flush has to come behind a write of the very role, and random sequences seldom wait for that."""

ONLY_WITH_LOG_BLOCKS = mutants_in(
    {
        "log_blocks.hpp": {
            "copies-are-several": (
                "std::max(most, disk.uncovered.blocks)",
                "most + disk.uncovered.blocks",
            ),
            "a-flush-covers-no-block-of-the-log": (
                "completed.front().last_completion < flush",
                "completed.front().last_completion < (THIS_MUTANT ? 0 : flush)",
            ),
            "data-are-blocks-of-the-log": (
                "if (role == Role::zil) {",
                "if (role == Role::zil || (THIS_MUTANT && role != Role::none)) {",
            ),
            "what-was-of-the-log-stays-so": (
                "std::fill(at(begin), at(end), role == Role::zil);",
                "if (!THIS_MUTANT || role == Role::zil) "
                "std::fill(at(begin), at(end), role == Role::zil);",
            ),
            "only-the-same-place-is-reused": (
                "std::find(at(begin), at(end), true) != at(end)",
                "*at(begin) && (begin == 0 || !*at(begin - 1))",
            ),
        },
    }
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
    "address,undefined": mutants_in(
        {
            "disk.cpp": {
                "reads-beyond-the-end": (
                    "  map_.look_up(offset, length, places);",
                    "  map_.look_up(offset, length, places);\n"
                    "  if (THIS_MUTANT && places.data()[places.capacity()] == 1) return;",
                ),
                "overflows": (
                    "  pace_.wait_for_read(arrival, offset, length);",
                    "  int sum = 0x7fffffff;\n"
                    "  if (THIS_MUTANT) sum += static_cast<int>(length);\n"
                    "  pace_.wait_for_read(arrival, offset, sum == 1 ? 0 : length);",
                ),
            },
        }
    ),
    "thread": mutants_in(
        {
            "recorder.cpp": {
                "counts-without-a-lock": (
                    "Recorder::Status Recorder::status() {\n  const Lock lock(mutex_);",
                    "Recorder::Status Recorder::status() {\n"
                    "  const Lock lock = THIS_MUTANT ? Lock() : Lock(mutex_);",
                ),
            },
        }
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
