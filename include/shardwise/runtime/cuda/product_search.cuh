// SPDX-License-Identifier: Apache-2.0
// product_search: times cuBLASLt's candidates for a product where its operands lie; what all executors of a process have chosen.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/device/noise.cuh>
#include <shardwise/runtime/cuda/error.hpp>
#include <shardwise/runtime/cuda/product_options.hpp>
#include <shardwise/runtime/cuda/product_table.hpp>
#include <shardwise/runtime/cuda/resources.hpp>

namespace shardwise::inline v0_1::cuda {

// One for each kind of device that this process measures on: rank threads and one executor after another make the same choices, so
// that replicas are equal and equal programs give equal bits. Whoever measures holds the lock, so a shape is measured once.
class product_choices {
 public:
  std::mutex lock;

  static product_choices& of_process() {
    static product_choices all;
    return all;
  }
  // The table of the current device; the file of `folder` is read at its first use.
  product_table& table(const std::string& folder) {
    int device = 0;
    cudaDeviceProp properties{};
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    const std::string machine = std::string(properties.name) + " with " + std::to_string(properties.multiProcessorCount) +
                                " multiprocessors, cuBLASLt " + std::to_string(cublasLtGetVersion());
    auto& t = tables_[machine];
    if (!t) t = std::make_unique<product_table>(machine);
    if (!folder.empty() && read_.insert({machine, folder}).second) say(t->load(folder));
    return *t;
  }
  static void say(const std::string& message) {
    if (!message.empty()) std::fprintf(stderr, "%s\n", message.c_str());
  }

 private:
  std::map<std::string, std::unique_ptr<product_table>> tables_;
  std::set<std::pair<std::string, std::string>> read_;
};

// Words of an algorithm, and back: cuBLASLt says that it "can be trivially serialized and later restored for use with the same
// version".
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(product_algorithm));
inline product_algorithm words_of(const cublasLtMatmulAlgo_t& a) {
  product_algorithm w{};
  std::memcpy(w.data(), &a, sizeof a);
  return w;
}
inline cublasLtMatmulAlgo_t algorithm_of(const product_algorithm& w) {
  cublasLtMatmulAlgo_t a{};
  std::memcpy(&a, w.data(), sizeof a);
  return a;
}

// How long candidates take, until the time for it is spent.
class product_search {
 public:
  product_search(const product_options& options, cudaStream_t stream)
      : options_(options),
        folder_(options.keeps ? product_folder(options.folder) : ""),
        stream_(stream),
        begin_(clock::now()) {
    if (!measures()) return;
    product_choices& all = product_choices::of_process();
    const std::lock_guard held(all.lock);
    table_ = &all.table(folder_);
  }

  // What is known of this device; under the process's lock. Null: nothing is measured.
  product_table* table() { return table_; }
  bool measures() const { return options_.choice == product_choice::measured; }
  bool has_time() const { return measures() && seconds() < options_.seconds; }
  const std::string& folder() const { return folder_; }
  double seconds() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }

  // The number of the fastest of `count` candidates; run(k) queues candidate k and says whether cuBLASLt took it. -1: none.
  // Each runs once, those that are not far behind the best again, for some milliseconds each. Short ones are timed in a graph, as a step
  // runs them: one by one a thread queues them no faster than the device runs them, and all would seem equal.
  template <class F>
  int fastest(int count, F&& run) {
    int best = -1;
    double least = 0;
    for (int k = 0; k < count && (k == 0 || has_time()); ++k) {
      if (!run(k)) continue;  // code is loaded here
      double ms = timed(1, [&] { run(k); });
      const bool is_short = ms < short_ms;
      if (best >= 0 && ms > 1.5 * least && !is_short) continue;
      const int times = ms > 2 ? 2 : ms > 0.2 ? 10 : 20;
      graph_instance graph;
      if (is_short) {
        graph = graph_instance::of(stream_, [&] {
          for (int i = 0; i < times; ++i) run(k);
        });
        launch(graph);  // its first launch loads it
      }
      for (int turn = 0; turn < 2; ++turn) {
        const double again = (is_short ? timed(1, [&] { launch(graph); }) : timed(times, [&] { run(k); })) / times;
        if (turn == 0 || again < ms) ms = again;
      }
      ++report_.candidates;
      if (best >= 0 && ms >= least) continue;
      best = k;
      least = ms;
    }
    return best;
  }

  product_report& report() { return report_; }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr double short_ms = 0.05;  // what one launch takes, an event before and behind it

  void launch(const graph_instance& graph) { check(cudaGraphLaunch(graph.get(), stream_), "cudaGraphLaunch"); }
  template <class F>
  double timed(int times, F&& queue) {
    from_.record(stream_);
    for (int i = 0; i < times; ++i) queue();
    to_.record(stream_);
    check(cudaEventSynchronize(to_.get()), "cudaEventSynchronize");
    return static_cast<double>(to_.since(from_)) * 1e-6;
  }

  product_options options_;
  std::string folder_;
  cudaStream_t stream_;
  clock::time_point begin_;
  product_table* table_ = nullptr;
  timing_event from_, to_;
  product_report report_;
};

}  // namespace shardwise::inline v0_1::cuda
