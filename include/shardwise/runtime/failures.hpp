// SPDX-License-Identifier: Apache-2.0
// What a rank throws where it waits for others, on every backend.
#pragma once

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// What the ranks that did not fail see when another one did.
struct SHARDWISE_VISIBLE rank_failed : std::runtime_error {
  rank_failed() : std::runtime_error("shardwise: another rank failed; this one was released from a collective") {}
  explicit rank_failed(const std::string& cause) : std::runtime_error(cause) {}  // of ranks that are processes
  // Between processes: which one, and what it said.
  rank_failed(int who, const std::string& what)
      : std::runtime_error("shardwise: rank " + std::to_string(who) + " failed, and this one was released: " + what) {}
};

// What a rank sees that waits for one whose function has returned.
struct SHARDWISE_VISIBLE rank_returned : std::runtime_error {
  explicit rank_returned(int who) : std::runtime_error(said(who, "another one waits for it")), rank(who) {}
  rank_returned(int who, int waiting, const char* in)
      : std::runtime_error(said(who, "rank " + std::to_string(waiting) + " waits in " + in)), rank(who) {}
  int rank;

 private:
  static std::string said(int who, const std::string& what) {
    return "shardwise: rank " + std::to_string(who) + " has returned while " + what +
           "; every rank must make the same calls in the same order: let none return before the last of them";
  }
};

// What a launch throws whose ranks wait for one that does not come, or all for each other: says where each of them waits. The ranks
// themselves see rank_failed.
struct SHARDWISE_VISIBLE rank_stalled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace runtime {

inline double checked_timeout(double seconds, const std::string& given) {
  if (seconds >= 0 && seconds <= 1e9) return seconds;
  throw std::invalid_argument("shardwise: the time-out of ranks is " + given +
                              "; it must be a number of seconds from 0 (never) to 1e9");
}
inline std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}
inline std::atomic<double>& timeout_setting() {
  static std::atomic<double> seconds{[] {
    const char* const text = std::getenv("SHARDWISE_TIMEOUT");
    if (!text) return 600.0;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    return checked_timeout(end == text || *end != '\0' ? -1 : value, std::string("'") + text + "' (SHARDWISE_TIMEOUT)");
  }()};
  return seconds;
}

}  // namespace runtime

// Seconds after which ranks that wait for another one give up, in every launch that begins afterwards: 600 (as for PyTorch's
// process groups over NCCL), or what the environment variable SHARDWISE_TIMEOUT says. 0: never. The launch throws rank_stalled; if the run's function has not
// returned on all ranks after as long again, the process is aborted with the message. Throws std::invalid_argument for what
// is no such number.
inline double rank_timeout() { return runtime::timeout_setting(); }
inline void set_rank_timeout(double seconds) {
  runtime::timeout_setting() = runtime::checked_timeout(seconds, std::to_string(seconds));
}

}  // namespace shardwise::inline v0_1
