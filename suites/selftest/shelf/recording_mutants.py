"""Wrong shelves whose recording, or whose view of it, lacks a write: states are built without it."""

from suites.selftest.shelf.mutants import Mutant

RECORDING_MUTANTS = (
    Mutant(
        name="what-was-there-before-is-not-in-a-view",
        file="view.cpp",
        right="below_(std::move(below))",
        wrong="below_(THIS_MUTANT ? std::make_shared<const Zeroes>() : std::move(below))",
    ),
    Mutant(
        name="the-first-block-is-not-recorded",
        file="disk.cpp",
        right="  const Role role = role_of(data, length);\n",
        wrong="  const Role role = role_of(data, length);\n"
        "  if (THIS_MUTANT && offset == 0) {\n"
        "    const uint64_t place = recorder_.store(number_, data, length, checksum(data, length));\n"
        "    map_.set(offset, length, true, place);\n"
        "    return;\n"
        "  }\n",
    ),
    Mutant(
        name="trims-and-zeroes-are-not-recorded",
        file="disk.cpp",
        right="  const Record submission = record(kind, offset, length, fua);\n",
        wrong="  const Record submission = record(kind, offset, length, fua);\n"
        "  if (THIS_MUTANT) {\n"
        "    map_.set(offset, length, false, 0);\n"
        "    return;\n"
        "  }\n",
    ),
)
"""The disk itself has the write, so its reader sees nothing amiss before the cut."""
