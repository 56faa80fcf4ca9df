// SPDX-License-Identifier: Apache-2.0
// Where the time of the example's step goes on one GPU: microseconds by kernel and shape, from recorded runs, which launch
// call by call (an event costs a microsecond or two, so small kernels look longer than they are). The longest first.
// usage: bench_step_calls_cuda [ROWS]   how many rows of each program are printed (default 25)
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <shardwise/operations/attention/device.cuh>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/runtime/timeline/timeline.hpp>

#include "../../examples/train_text/model.hpp"

namespace {

namespace sw = shardwise;
namespace tt = train_text;

struct dp : sw::axis<1> {};
struct tp : sw::axis<1> {};
using mesh = sw::mesh<dp, tp>;
using size = tt::config<16, 128, 128, 4, 4>;
template <class... Passes>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp>, tt::megatron_plan<size, dp, tp>, mesh,
                            sw::clip_norm<sw::adamw<true>>, sw::pipeline<Passes...>, float, sw::cuda_backend>;

constexpr int warm_up = 3, recorded = 5;

template <class Step>
void report(const char* what, std::size_t rows) {
  sw::launch_cuda<mesh>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    std::vector<std::int32_t> text(size::batch * size::time);
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * 131 % 251);
    ex.initialise(1);
    ex.set_input(0, text);
    ex.set_input(1, text);
    sw::timeline line(recorded);
    sw::step_env env;
    env.lr = 1e-3;
    env.max_norm = 1;
    std::string losses;
    for (env.step = 1; env.step <= warm_up + recorded; ++env.step) {
      if (env.step == warm_up + 1) ex.record(&line);
      ex.run(env);
      losses += (losses.empty() ? "" : ",") + std::to_string(static_cast<double>(ex.loss()));
    }
    ex.synchronize();
    struct sum {
      double us = 0;
      int calls = 0;
    };
    std::map<std::string, sum> by_kernel;
    double total = 0;
    for (const sw::timeline_run& r : line.runs())
      for (const sw::timeline_event& e : line.events(r)) {
        if (e.kind != sw::event_kind::call) continue;
        const sw::timeline_call& c = line.program_of(r).calls[static_cast<std::size_t>(e.call)];
        const double us = static_cast<double>(e.time.end - e.time.begin) / 1e3 / recorded;
        sum& s = by_kernel[c.op + c.fused + " " + c.shapes];
        s.us += us;
        ++s.calls;
        total += us;
      }
    std::vector<std::pair<std::string, sum>> all(by_kernel.begin(), by_kernel.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
    std::printf("{\"what\":\"%s\",\"us\":%.1f,\"losses\":[%s]}\n", what, total, losses.c_str());
    for (std::size_t k = 0; k < std::min(rows, all.size()); ++k)
      std::printf("{\"what\":\"%s\",\"kernel\":\"%s\",\"calls\":%d,\"us\":%.1f,\"us_a_call\":%.2f}\n", what,
                  all[k].first.c_str(), all[k].second.calls / recorded, all[k].second.us,
                  all[k].second.us * recorded / all[k].second.calls);
    std::fflush(stdout);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rows = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 25;
  try {
    if (sw::cuda::device_count() == 0) {
      std::printf("no GPU found: nothing is measured\n");
      return 0;
    }
    report<step<>>("plain", rows);
    report<step<sw::fuse_pointwise>>("fuse_pointwise", rows);
    report<step<sw::fuse_kernels>>("fuse_kernels", rows);
    report<step<sw::merge_products, sw::fuse_kernels>>("merge_products, fuse_kernels", rows);
    report<step<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>>("all", rows);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
