// SPDX-License-Identifier: Apache-2.0
// library_registry: somebody else's kernels for one kind of operation on devices: which library is registered, and which kernels ran each
// distinct request. Free of CUDA headers and of any library's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/support/config.hpp>

struct CUstream_st;  // what a cudaStream_t points to

namespace shardwise::inline v0_1::cuda {

// Request: compared by ==, put in words by text_of. Library: a table of functions, of which `name` and `refusal` are used here.
template <class Request, class Library>
class library_registry {
 public:
  static library_registry& get() {
    static library_registry* const one = new library_registry;  // outlives every executor
    return *one;
  }

  void use(const Library* library) { library_ = library; }
  const Library* used() const { return library_; }
  void order(bool ordered) { ordered_ = ordered; }
  bool is_ordered() const { return ordered_; }

  // The library if it takes the request; null: the caller's own kernel is to run on the stream. why: what no library is asked, or
  // empty. Price of the record: a look-up for each launch that is not a replay.
  const Library* library_for(const Request& r, std::string why, CUstream_st* stream) {
    const Library* const library = library_;
    if (why.empty()) why = library ? library->refusal(r, stream) : "no library is linked (shardwise::cudnn)";
    const std::string by = why.empty() ? library->name() : "own kernel";
    const std::lock_guard<std::mutex> lock(mutex_);
    auto at = std::find_if(records_.begin(), records_.end(), [&](const record& x) { return x.request == r && x.by == by; });
    if (at == records_.end()) at = records_.insert(at, {r, by, why, 0});
    at->calls += stream ? 1 : 0;
    return why.empty() ? library : nullptr;
  }

  // A line for each distinct request: what it is, what ran it, and if that was the library's own kernel, why.
  std::string report() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string all;
    for (const record& x : records_)
      all += text_of(x.request) + ": " + x.by + (x.why.empty() ? "" : " (" + x.why + ")") + ", " + std::to_string(x.calls) +
             (x.calls == 1 ? " call\n" : " calls\n");
    return all;
  }
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.clear();
  }

 private:
  struct record {
    Request request;
    std::string by, why;  // why: no library took it
    std::int64_t calls = 0;
  };

  std::atomic<const Library*> library_{nullptr};
  std::atomic<bool> ordered_{true};
  std::mutex mutex_;
  std::vector<record> records_;
};

}  // namespace shardwise::inline v0_1::cuda
