// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions, registered as this program's convolution library. Include it in exactly one source of a program, compiled apart;
// CMake's shardwise::onednn does that. Nothing else includes it.
//
// It takes elements of float (those of two bytes are widened to it before, and rounded once after), both memory formats and any other
// strides, every stride, padding, dilation and number of groups. Not: double; an empty block; a padded image beside factors that are no
// finite numbers; what oneDNN has plain loops for alone. Those run by the built-in kernel, and runtime::convolution_report() says why.
//
// Differences to the built-in kernels: sums are oneDNN's, so bits differ from theirs, between memory formats, between numbers of ranks
// or of compute threads, and between kinds of processors. The same program gives the same bits from run to run.
#pragma once

#include <shardwise/runtime/host/convolution_text.hpp>
#include <shardwise/runtime/host/onednn/plans.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace shardwise::inline v0_1::runtime::onednn {

inline std::string name() { return "oneDNN " + version(); }

// A request that was met: its plan, or why there is none.
struct entry {
  std::unique_ptr<const plan> of;
  std::string why;
  std::atomic<std::int64_t> calls{0};
};

struct request_hash {
  std::size_t operator()(const convolution_request& r) const {
    std::uint64_t h = static_cast<std::uint64_t>(r.pass) * 4 + static_cast<std::uint64_t>(r.type) * 64 + (r.finite ? 1 : 0);
    const auto add = [&h](std::int64_t x) {
      h = (h ^ static_cast<std::uint64_t>(x)) * 0x9E3779B97F4A7C15ULL;
      h ^= h >> 29;
    };
    for (const std::int64_t x : {r.n, r.c, r.h, r.w, r.o, r.i, r.kh, r.kw, r.oh, r.ow, r.groups}) add(x);
    for (int d = 0; d < 2; ++d)
      for (const std::int64_t x : {r.stride[d], r.before[d], r.behind[d], r.dilation[d]}) add(x);
    for (int d = 0; d < 4; ++d)
      for (const std::int64_t x : {r.image[d], r.weight[d], r.result[d]}) add(x);
    return static_cast<std::size_t>(h);
  }
};

inline std::string refusal(const convolution_request& r) {
  if (r.type != dtype::f32) return "elements of float alone are taken";
  if (r.n <= 0 || r.c <= 0 || r.h <= 0 || r.w <= 0 || r.o <= 0 || r.kh <= 0 || r.kw <= 0 || r.oh <= 0 || r.ow <= 0)
    return "a block is empty";
  if (!r.finite) return "the image is padded, and its factor is not one piece of finite numbers";
  return one_thread::refusal();
}

// The plans of a process, shared by its threads. Law: a distinct request is planned once and kept; of more than `most` the one that was
// met first is dropped, and planned anew if it comes back. Price of a call: a look-up under a shared lock. Price of a plan: a
// millisecond or so, in which others wait.
class library {
 public:
  static constexpr std::size_t most = 1024;

  static library& get() {
    static library* const one = new library;  // outlives the threads that use it
    return *one;
  }
  std::shared_ptr<entry> find(const convolution_request& r) {
    {
      const std::shared_lock<std::shared_mutex> lock(mutex_);
      if (const auto at = of_.find(r); at != of_.end()) return at->second;
    }
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    if (const auto at = of_.find(r); at != of_.end()) return at->second;
    const std::shared_ptr<entry> made = planned(r);
    if (of_.size() == most) {
      of_.erase(order_.front());
      order_.pop_front();
      ++dropped_;
    }
    order_.push_back(r);
    return of_[r] = made;
  }
  std::size_t size() {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return of_.size();
  }
  template <class F>
  void each(const F& f) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    for (const convolution_request& r : order_) f(r, *of_.at(r));
  }
  std::int64_t dropped() {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return dropped_;
  }
  void clear() {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    of_.clear();
    order_.clear();
    dropped_ = 0;
  }

 private:
  static std::shared_ptr<entry> planned(const convolution_request& r) {
    auto e = std::make_shared<entry>();
    e->why = refusal(r);
    if (!e->why.empty()) return e;
    try {
      const one_thread alone;
      e->of = std::make_unique<const plan>(r);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& x) {  // a kernel that it has not is no error: the built-in one runs
      e->why = x.what();
    }
    return e;
  }

  std::shared_mutex mutex_;
  std::unordered_map<convolution_request, std::shared_ptr<entry>, request_hash> of_;
  std::deque<convolution_request> order_;
  std::int64_t dropped_ = 0;
};

inline bool run(const convolution_request& r, const convolution_pointers& p) {
  const std::shared_ptr<entry> e = library::get().find(r);
  e->calls.fetch_add(1, std::memory_order_relaxed);
  if (!e->of) return false;
  const one_thread alone;
  try {
    e->of->run(p);
  } catch (const dnnl::error& x) {
    throw std::runtime_error("shardwise: convolution by oneDNN " + version() + " (" + text_of(r) + "): " + x.what() +
                             "; runtime::use_convolution_library(nullptr) runs the built-in kernel");
  }
  return true;
}

inline std::string report() {
  std::string all;
  library::get().each([&](const convolution_request& r, const entry& e) {
    const std::int64_t calls = e.calls.load(std::memory_order_relaxed);
    all += text_of(r) + ": " + (e.of ? name() + " (" + e.of->implementation() + ")" : "built-in kernel (" + e.why + ")") +
           ", " + std::to_string(calls) + (calls == 1 ? " call\n" : " calls\n");
  });
  if (const std::int64_t n = library::get().dropped(); n > 0)
    all += "and " + std::to_string(n) + " that were dropped from the " + std::to_string(library::most) + " that are kept\n";
  return all;
}

inline constexpr convolution_library convolution{&name, &run, &report, [] { library::get().clear(); }};

// When the program begins.
inline const bool registered = (use_convolution_library(&convolution), true);

}  // namespace shardwise::inline v0_1::runtime::onednn
