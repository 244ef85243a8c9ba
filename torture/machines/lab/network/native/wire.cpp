// A modelled link between two taps: `wire TAP_A TAP_B RATE_BITS_PER_S ONE_WAY_US`.
//
// Each direction is a wire of its own. A frame departs when the wire is free, keeps it busy for its
// bits, and arrives one delay after its last bit. Rate 0 is no limit. A frame that finds the queue
// full is dropped (tail drop), and counted.
//
// The program prints its counts as one line of JSON when both taps are open, and again for each
// line on its standard input. It ends with that input, and with the thread that started it.
//
// The kernel's own means are netem (tc-netem(8)), which hosts may lack and a user namespace cannot
// load, and tbf, which knows no delay. Taps: Linux Documentation/networking/tuntap.rst.

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Nanoseconds = std::chrono::nanoseconds;

constexpr size_t kFramingBytes = 24;   // preamble and start, check sequence, gap (IEEE 802.3)
constexpr size_t kFrameBytesMin = 60;  // shorter ones are padded
constexpr size_t kReadBytes = 1 << 16;
constexpr int kFramesPerTurn = 64;  // so that no direction waits for a busy other one
constexpr double kQueueBytesMin = 256 * 1024;
constexpr double kPaths = 2;  // the queue holds this many products of rate and delay
constexpr Nanoseconds kRest{50'000};

[[noreturn]] void fail(const std::string &action) {
  throw std::runtime_error(action + ": " + std::strerror(errno));
}

/// An existing tap, opened as the cable behind it.
class Tap {
 public:
  explicit Tap(const std::string &name) : fd_(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ < 0) fail("cannot open /dev/net/tun");
    // TUNSETIFF would make a missing one
    if (name.size() >= IFNAMSIZ || ::if_nametoindex(name.c_str()) == 0) fail("no tap " + name);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::copy(name.begin(), name.end(), request.ifr_name);
    if (::ioctl(fd_, TUNSETIFF, &request) < 0) fail("cannot open the tap " + name);
  }
  Tap(const Tap &) = delete;
  Tap &operator=(const Tap &) = delete;
  ~Tap() { ::close(fd_); }

  int fd() const { return fd_; }

  // The bytes of the next frame, or 0 when there is none.
  size_t read(std::array<char, kReadBytes> &frame) const {
    const ssize_t got = ::read(fd_, frame.data(), frame.size());
    if (got < 0 && errno != EAGAIN && errno != EINTR) fail("a tap gives no frames");
    return got < 0 ? 0 : static_cast<size_t>(got);
  }

  // False for a frame that the kernel refuses, as of a tap that is down.
  bool write(const std::vector<char> &frame) const {
    return ::write(fd_, frame.data(), frame.size()) == static_cast<ssize_t>(frame.size());
  }

 private:
  const int fd_;
};

struct Frame {
  Time arrival;
  std::vector<char> content;
};

/// One direction: the frames that wait for the wire or are on it, in order.
class Direction {
 public:
  Direction(const Tap &from, const Tap &to, double bits_per_s, Nanoseconds delay)
      : from_(from), to_(to), ns_per_byte_(bits_per_s > 0 ? 8e9 / bits_per_s : 0), delay_(delay) {
    const double path_bytes =
        ns_per_byte_ > 0 ? static_cast<double>(delay.count()) / ns_per_byte_ : 0;
    queue_ns_ = std::max(kQueueBytesMin, kPaths * path_bytes) * ns_per_byte_;
  }

  // Take frames that have come; the rest is taken in the next turn.
  void take() {
    static std::array<char, kReadBytes> frame;
    for (int count = 0; count < kFramesPerTurn; ++count) {
      const size_t bytes = from_.read(frame);
      if (bytes == 0) return;
      enter(frame.data(), bytes);
    }
  }

  // Hand over the frames whose time has come.
  void deliver() {
    while (!frames_.empty() && frames_.front().arrival <= Clock::now()) {
      const Frame &frame = frames_.front();
      if (to_.write(frame.content)) {
        ++delivered_;
        bytes_ += frame.content.size();
      } else {
        ++drops_;
      }
      frames_.pop_front();
    }
  }

  std::optional<Time> next_arrival() const {
    return frames_.empty() ? std::nullopt : std::optional(frames_.front().arrival);
  }

  std::string counts() const {
    return "{\"frames\": " + std::to_string(delivered_) + ", \"bytes\": " + std::to_string(bytes_) +
           ", \"drops\": " + std::to_string(drops_) + "}";
  }

 private:
  void enter(const char *content, size_t bytes) {
    const Time now = Clock::now();
    const Time begin = std::max(now, free_from_);
    const double on_wire_ns =
        static_cast<double>(std::max(bytes, kFrameBytesMin) + kFramingBytes) * ns_per_byte_;
    // the wire's time that is taken already is the length of the queue
    if (static_cast<double>(Nanoseconds(begin - now).count()) + on_wire_ns > queue_ns_) {
      ++drops_;
      return;
    }
    free_from_ = begin + Nanoseconds(static_cast<int64_t>(on_wire_ns));
    frames_.push_back({free_from_ + delay_, std::vector<char>(content, content + bytes)});
  }

  const Tap &from_;
  const Tap &to_;
  const double ns_per_byte_;
  const Nanoseconds delay_;
  double queue_ns_;
  Time free_from_{};
  std::deque<Frame> frames_;
  uint64_t delivered_ = 0;
  uint64_t bytes_ = 0;
  uint64_t drops_ = 0;
};

class Wire {
 public:
  Wire(const std::string &a, const std::string &b, double bits_per_s, Nanoseconds delay)
      : a_(a), b_(b), directions_{{{a_, b_, bits_per_s, delay}, {b_, a_, bits_per_s, delay}}} {}

  void run() {
    print_counts();
    while (wait()) {
      for (size_t side = 0; side < directions_.size(); ++side) {
        if (polled_[side].revents != 0) directions_[side].take();
        directions_[side].deliver();
      }
    }
  }

 private:
  // Sleep until a frame comes or is due; false when the owner has closed the standard input.
  bool wait() {
    polled_ = {{{a_.fd(), POLLIN, 0}, {b_.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    std::optional<Time> next;
    for (const Direction &direction : directions_) {
      if (const auto due = direction.next_arrival()) next = std::min(next.value_or(*due), *due);
    }
    timespec timeout{};
    if (next) {
      // frames that are closer to each other than this share a turn: they may be that late
      const Time earliest = std::max(*next, last_turn_ + kRest);
      const auto left = std::max(Nanoseconds(earliest - Clock::now()), Nanoseconds::zero());
      timeout.tv_sec = left.count() / 1'000'000'000;
      timeout.tv_nsec = left.count() % 1'000'000'000;
    }
    if (::ppoll(polled_.data(), polled_.size(), next ? &timeout : nullptr, nullptr) < 0) {
      if (errno != EINTR) fail("ppoll");
      polled_ = {};
    }
    last_turn_ = Clock::now();
    return polled_[2].revents == 0 || answer();
  }

  bool answer() const {
    std::array<char, 64> input{};
    const ssize_t got = ::read(STDIN_FILENO, input.data(), input.size());
    if (got <= 0) return false;
    for (auto lines = std::count(input.begin(), input.begin() + got, '\n'); lines > 0; --lines) {
      print_counts();
    }
    return true;
  }

  void print_counts() const {
    std::printf("{\"a_to_b\": %s, \"b_to_a\": %s}\n", directions_[0].counts().c_str(),
                directions_[1].counts().c_str());
    if (std::fflush(stdout) != 0) fail("cannot print the counts");
  }

  const Tap a_;
  const Tap b_;
  std::array<Direction, 2> directions_;
  std::array<pollfd, 3> polled_{};
  Time last_turn_{};
};

}  // namespace

int main(int argc, char **argv) try {
  if (argc != 5) throw std::runtime_error("usage: wire TAP_A TAP_B RATE_BITS_PER_S ONE_WAY_US");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // by default the kernel may end a sleep 50 us late
  // guests may keep all processors busy; without the right to it frames come late more often
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, -19));
  const double bits_per_s = std::stod(argv[3]);
  const Nanoseconds delay{std::stoll(argv[4]) * 1000};
  if (bits_per_s < 0 || delay.count() < 0) throw std::runtime_error("a rate or delay is negative");
  Wire(argv[1], argv[2], bits_per_s, delay).run();
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "wire: %s\n", error.what());
  return 1;
}
