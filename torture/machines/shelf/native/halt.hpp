// Processes that stand still with the shelf: a NAS that ran on would acknowledge what a cut had forbidden.
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
      // a number may become another process's, what is opened stays this one's
      const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
      if (fd < 0) throw Error(errno, "no process " + std::to_string(pid) + " to stop");
      processes_.emplace_back(fd);
    }
  }

  /// Stop them; one that has ended needs no stopping.
  void now() const {
    for (const File &process : processes_) {
      ::syscall(SYS_pidfd_send_signal, process.fd(), SIGSTOP, nullptr, 0);
    }
  }

 private:
  std::vector<File> processes_;
};

}  // namespace shelf
