// Processes that stop with the shelf: a NAS that ran on would acknowledge writes that the cut has
// lost.
#pragma once

#include <signal.h>
#include <sys/syscall.h>

#include <string>
#include <vector>

#include "file.hpp"

namespace shelf {

class Halt {
 public:
  Halt() = default;

  /// Raises `Error` when there is no such process.
  explicit Halt(const std::vector<pid_t> &pids) {
    for (const pid_t pid : pids) {
      // another process may get the number later; the opened descriptor stays with this one
      const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
      if (fd < 0) throw Error(errno, "no process " + std::to_string(pid) + " to stop");
      processes_.emplace_back(fd);
    }
  }

  // Stop them; an ended process needs no stop.
  void now() const {
    for (const File &process : processes_) {
      ::syscall(SYS_pidfd_send_signal, process.fd(), SIGSTOP, nullptr, 0);
    }
  }

 private:
  std::vector<File> processes_;
};

}  // namespace shelf
