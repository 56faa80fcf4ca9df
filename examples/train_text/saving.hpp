// SPDX-License-Identifier: Apache-2.0
// What train_text does about checkpoints: when it saves, what must be the same when it goes on, and the command that does.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/runtime/launcher.hpp>

#include "../common/early_stopping.hpp"
#include "options.hpp"

namespace train_text {

// SIGINT and SIGTERM are noted while it lives: the run ends behind the step that is under way.
class stop_request {
 public:
  explicit stop_request(bool listens) : listens_(listens) {
    if (!listens_) return;
    came() = 0;
    struct sigaction action{};
    action.sa_handler = [](int which) { came() = which; };
    ::sigaction(SIGINT, &action, &before_[0]);
    ::sigaction(SIGTERM, &action, &before_[1]);
  }
  stop_request(const stop_request&) = delete;
  stop_request& operator=(const stop_request&) = delete;
  ~stop_request() {
    if (!listens_) return;
    ::sigaction(SIGINT, &before_[0], nullptr);
    ::sigaction(SIGTERM, &before_[1], nullptr);
  }
  // The signal that came, or 0.
  int signal() const { return came(); }

 private:
  static volatile std::sig_atomic_t& came() {
    static volatile std::sig_atomic_t which = 0;
    return which;
  }
  bool listens_;
  struct sigaction before_[2]{};
};

// Batches are drawn by (seed, step) out of the text, and the learning rate follows from step and steps: no more is needed to go on.
inline shardwise::checkpoint_position position_at(const options& o, std::size_t step,
                                                  const std::vector<std::uint8_t>& text) {
  return {static_cast<std::int64_t>(step),
          o.seed,
          {{"steps", static_cast<std::int64_t>(o.steps)},
           {"text", static_cast<std::int64_t>(shardwise::storage::checksum(text.data(), text.size()))}},
          {}};
}

// Where early stopping was, which is part of a run that uses it.
inline shardwise::checkpoint_position with(shardwise::checkpoint_position p, const example::early_stopping& e) {
  if (e.patience == 0) return p;
  p.integers["evaluations_since_best"] = e.since_best;
  if (std::isfinite(e.best)) p.reals["best_held_out"] = e.best;
  return p;
}
inline example::early_stopping resumed(example::early_stopping e, const shardwise::checkpoint_position& saved) {
  if (const auto it = saved.integers.find("evaluations_since_best"); it != saved.integers.end()) e.since_best = it->second;
  if (const auto it = saved.reals.find("best_held_out"); it != saved.reals.end()) e.best = it->second;
  return e;
}

// Throws usage_error where the run that is asked for would not go on with the one that was saved. Returns what is worth saying.
inline std::string check_resumed(const options& o, const shardwise::checkpoint_position& saved,
                                 const std::vector<std::uint8_t>& text) {
  const shardwise::checkpoint_position now = position_at(o, static_cast<std::size_t>(saved.step), text);
  const auto of = [](const shardwise::checkpoint_position& p, const char* name) {
    const auto it = p.integers.find(name);
    return it == p.integers.end() ? -1 : it->second;
  };
  if (saved.seed != now.seed)
    throw usage_error("--seed is " + std::to_string(now.seed) + ", and the run in '" + o.resume.string() + "' has seed " +
                      std::to_string(saved.seed) + ": give --seed " + std::to_string(saved.seed) + ".");
  if (of(saved, "text") != of(now, "text"))
    throw usage_error("the run in '" + o.resume.string() + "' was trained on another text: give the same --text.");
  if (saved.step >= static_cast<std::int64_t>(o.steps))
    throw usage_error("the run in '" + o.resume.string() + "' has made " + std::to_string(saved.step) +
                      " steps: give more with --steps.");
  if (of(saved, "steps") != of(now, "steps"))
    return "the learning rate follows --steps " + std::to_string(o.steps) + " from here on; it followed " +
           std::to_string(of(saved, "steps")) + " before.\n";
  return "";
}

inline std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == word.npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}
// The command that goes on with what --save has.
inline std::string resuming_command(const options& o) {
  std::string line = quoted(o.program);
  if (o.backend == "mpi") line = "mpirun -n " + std::to_string(shardwise::runtime::place_of_process().size) + " " + line;
  const auto flag = [&](std::string_view name, const std::string& value) {
    line += " " + std::string(name) + " " + quoted(value);
  };
  if (o.text) flag("--text", o.text->string());
  flag("--steps", std::to_string(o.steps));
  flag("--seed", std::to_string(o.seed));
  flag("--out", o.out.string());
  flag("--backend", o.backend);
  flag("--parallel", o.parallel);
  if (!o.precision.empty()) flag("--precision", o.precision);
  if (o.evaluate_every > 0) flag("--evaluate-every", std::to_string(o.evaluate_every));
  if (o.patience > 0) flag("--patience", std::to_string(o.patience));
  if (o.threads != 1) flag("--threads", std::to_string(o.threads));
  flag("--save", o.save.string());
  if (o.save_every > 0) flag("--save-every", std::to_string(o.save_every));
  flag("--keep", std::to_string(o.keep));
  flag("--resume", o.save.string());
  return line;
}

// For tests: with TRAIN_TEXT_KILL_AT_WRITE=N in the environment the process kills itself in place of its N-th write of a save.
inline shardwise::file_calls save_calls() {
  shardwise::file_calls calls;
  static long left = [] {
    const char* const n = std::getenv("TRAIN_TEXT_KILL_AT_WRITE");
    return n ? std::atol(n) : 0L;
  }();
  if (left > 0)
    calls.write = [](int file, const void* bytes, std::size_t count) {
      if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0) ::raise(SIGKILL);
      return ::write(file, bytes, count);
    };
  return calls;
}

// For tests: with TRAIN_TEXT_LOSSES=FILE in the environment every step's loss is appended there as it is made, with all its bits, in one
// write, so that it is there whatever ends the process afterwards.
class loss_log {
 public:
  explicit loss_log(bool speaks) {
    const char* const name = std::getenv("TRAIN_TEXT_LOSSES");
    if (!speaks || name == nullptr) return;
    file_ = ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file_ < 0) throw usage_error("TRAIN_TEXT_LOSSES needs a file that can be written, not '" + std::string(name) + "'.");
  }
  loss_log(const loss_log&) = delete;
  loss_log& operator=(const loss_log&) = delete;
  ~loss_log() {
    if (file_ >= 0) ::close(file_);
  }

  void add(std::size_t step, double bits) {
    if (file_ < 0) return;
    std::array<char, 64> line{};
    const int length = std::snprintf(line.data(), line.size(), "%zu %a\n", step, bits);
    if (::write(file_, line.data(), static_cast<std::size_t>(length)) != length)
      throw std::runtime_error("train_text: the file TRAIN_TEXT_LOSSES takes no more.");
  }

 private:
  int file_ = -1;
};

}  // namespace train_text
