// SPDX-License-Identifier: Apache-2.0
// What the example programs show while they train: one line, redrawn on a terminal, with speed and time left.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#if __has_include(<unistd.h>)
#include <unistd.h>  // isatty
#endif

namespace example {

/// A number as every locale should read it.
inline std::string fixed(double value, int digits) {
  std::array<char, 400> text;  // the longest finite double has 309 digits before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}

inline bool stdout_is_terminal() {
#if __has_include(<unistd.h>)
  return isatty(STDOUT_FILENO) != 0;
#else
  return false;
#endif
}

/// One bar redrawn in place on a terminal, at most ten times a second; elsewhere a plain line per twentieth of the run. A step takes
/// `per_step` of what `unit` names, in the plural.
class progress {
 public:
  using clock = std::function<double()>;  // seconds

  progress(std::size_t steps, std::size_t per_step, std::string_view unit, std::ostream& out = std::cout,
           bool terminal = stdout_is_terminal(), clock now = steady_seconds)
      : steps_(steps), per_step_(per_step), unit_(unit), out_(out), terminal_(terminal), now_(std::move(now)) {
    began_ = now_();
  }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { end_line(); }

  /// So many steps were made before, by another run: they count as done, not as this one's speed.
  void start_at(std::size_t before) { before_ = done_ = before; }
  /// `done` steps are finished; `figures` are those of the last one.
  void update(std::size_t done, const std::string& figures) {
    done_ = done;
    const double at = now_();
    elapsed_ = at - began_;
    const bool last = done >= steps_;
    if (terminal_) {
      if (!last && drawn_ && at - drawn_at_ < 0.1) return;
      const std::string text = line(figures);
      out_ << '\r' << bar(text.size()) << text << "\033[K" << std::flush;  // clears what a longer line left
      drawn_ = true;
      drawn_at_ = at;
      if (last) end_line();
    } else if (last || done == 1 || done * 20 / steps_ != (done - 1) * 20 / steps_) {
      out_ << line(figures) << std::endl;
    }
  }

  /// Does what is no step, an evaluation for one: its time is not the steps'.
  template <class F>
  void aside(F&& f) {
    const double from = now_();
    f();
    began_ += now_() - from;
  }

  /// Units a second, over this run's steps so far.
  double rate() const {
    return elapsed_ > 0 ? static_cast<double>(done_ - before_) * static_cast<double>(per_step_) / elapsed_ : 0;
  }

 private:
  static double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  void end_line() {
    if (std::exchange(drawn_, false)) out_ << '\n' << std::flush;
  }

  /// As wide as leaves the whole line within 79 columns: a wrapped line would not be redrawn in place.
  std::string bar(std::size_t beside) const {
    const std::size_t width = std::min<std::size_t>(24, 76 - std::min<std::size_t>(beside, 72));
    const std::size_t full = std::min(width, width * done_ / std::max<std::size_t>(steps_, 1));
    return '[' + std::string(full, '#') + std::string(width - full, '.') + "] ";
  }

  std::string line(const std::string& figures) const {
    const double left = done_ == before_ || done_ >= steps_
                            ? 0
                            : elapsed_ / static_cast<double>(done_ - before_) * static_cast<double>(steps_ - done_);
    return std::to_string(done_) + '/' + std::to_string(steps_) + "  " + figures + "  " + short_rate() + ' ' + unit_ +
           "/s  ETA " + duration(left);
  }

  std::string short_rate() const {
    const double r = rate();
    return r < 1e4 ? fixed(r, 0) : r < 1e7 ? fixed(r / 1e3, 1) + "k" : fixed(r / 1e6, 1) + "M";
  }

  static std::string duration(double seconds) {
    const auto whole = static_cast<std::uint64_t>(std::clamp(seconds + 0.5, 0.0, 3.6e8));  // a first step may mislead
    const auto two = [](std::uint64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    const std::string tail = two(whole % 60);
    return whole < 3600 ? std::to_string(whole / 60) + ':' + tail
                        : std::to_string(whole / 3600) + ':' + two(whole / 60 % 60) + ':' + tail;
  }

  std::size_t steps_, per_step_, done_ = 0, before_ = 0;
  std::string unit_;
  std::ostream& out_;
  bool terminal_, drawn_ = false;
  clock now_;
  double began_ = 0, elapsed_ = 0, drawn_at_ = 0;
};

}  // namespace example
