// SPDX-License-Identifier: Apache-2.0
// Measures what optimize_layout decides by on GPUs and prints include/shardwise/pass/layout/rates_cudnn.hpp: what a multiplication of each
// of the three convolutions takes in both memory formats by cuDNN behind the library's table, of float, of float rounded to TF32 and of
// bfloat16, at the shapes that hosts are measured at with sixteen times as many images; and what an element takes that is copied from one
// format to the other. Several calls captured in one graph, as a step runs them, the least of the turns, which take turns. What cuDNN does
// not take is the own kernels' time, as in a program; how often, stands at the end of what goes to stderr. Needs shardwise::cudnn.
// usage: rates_cudnn [turns] [words of the kinds] > include/shardwise/pass/layout/rates_cudnn.hpp
#include <shardwise/operations/convolution/device_low.cuh>
#include <shardwise/runtime/cuda/kernels.cuh>
#include <shardwise/runtime/cuda/resources.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rate_shapes.hpp"

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
using rates::shape;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

constexpr std::int64_t images_for_one = 16;

layout lay(const std::array<std::int64_t, 4>& extent, bool channels_last) {
  layout l;
  l.rank = 4;
  for (std::size_t d = 0; d < 4; ++d) l.ext[d] = l.global[d] = extent[d];
  if (channels_last) l.make_channels_last();
  else l.make_dense();
  return l;
}

// Numbers of no pattern: of zeros a GPU takes less power, and less time.
template <class T>
__global__ void fill(T* to, std::int64_t size, unsigned salt) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) {
    unsigned x = static_cast<unsigned>(i) * 2654435761U + salt;
    x = (x ^ x >> 15) * 2246822519U;
    to[i] = static_cast<T>(static_cast<float>(x >> 8) / 8388608.0F - 1);
  }
}
template <class T>
struct block {
  layout l;
  cu::device_memory memory;

  block(const std::array<std::int64_t, 4>& extent, bool channels_last, unsigned salt)
      : l(lay(extent, channels_last)), memory(static_cast<std::size_t>(l.numel()) * sizeof(T)) {
    fill<T><<<1024, 256>>>(static_cast<T*>(static_cast<void*>(memory.data())), l.numel(), salt);
    cu::check(cudaGetLastError(), "fill");
  }
};

// What is called so often in one graph that it takes half a millisecond, if it takes less: seconds of one call, the least.
class timed {
 public:
  double least = 1e30;

  template <class F>
  explicit timed(const F& f) {
    f(stream_.get());  // libraries load and plan
    cu::check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    cu::check(cudaEventCreate(&begin_), "cudaEventCreate");
    cu::check(cudaEventCreate(&end_), "cudaEventCreate");
    capture(f);
    const double once = launch();
    if (once < 0.5e-3) {
      calls_ = std::min(64, static_cast<int>(0.5e-3 / once) + 1);
      release();
      capture(f);
      launch();
    }
  }
  timed(const timed&) = delete;
  timed& operator=(const timed&) = delete;
  ~timed() {
    release();
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  // What is slow is not measured again and again: own kernels in place of cuDNN's.
  void turn() {
    if (least < 20e-3) launch();
  }

 private:
  template <class F>
  void capture(const F& f) {
    cudaGraph_t graph = nullptr;
    cu::check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < calls_; ++i) f(stream_.get());
    cu::check(cudaStreamEndCapture(stream_.get(), &graph), "cudaStreamEndCapture");
    cu::check(cudaGraphInstantiate(&runs_, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
  }
  double launch() {
    cu::check(cudaEventRecord(begin_, stream_.get()), "cudaEventRecord");
    cu::check(cudaGraphLaunch(runs_, stream_.get()), "cudaGraphLaunch");
    cu::check(cudaEventRecord(end_, stream_.get()), "cudaEventRecord");
    cu::check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float ms = 0;
    cu::check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    const double seconds = static_cast<double>(ms) * 1e-3 / calls_;
    least = std::min(least, seconds);
    return seconds;
  }
  void release() {
    if (runs_) cudaGraphExecDestroy(runs_);
    runs_ = nullptr;
  }

  cu::stream stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaGraphExec_t runs_ = nullptr;
  int calls_ = 1;
};

// A pass whose operands lie in one format and its result in one.
template <class T>
class measured {
 public:
  measured(const shape& s, int pass, bool operands_last, bool result_last, bool tf32)
      : pass_(pass),
        a_{{s.stride, s.stride}, {s.padding, s.padding}, {1, 1}, s.groups, {0, 0}, {0, 0}},
        out_(sw::operations::convolved_extent(a_, 0, s.side, s.k)),
        of_{block<T>({s.n * images_for_one, s.c, s.side, s.side}, pass == 1 ? result_last : operands_last, 1),
            block<T>({s.o, s.c / s.groups, s.k, s.k}, pass == 2 ? result_last : operands_last, 2),
            block<T>({s.n * images_for_one, s.o, out_, out_}, pass == 0 ? result_last : operands_last, 3)},
        scratch_(static_cast<std::size_t>(sw::operations::convolution_library_bytes(sw::dtype_v<T>, of_[0].l.numel(),
                                                                                    of_[1].l.numel(), of_[2].l.numel()))) {
    if (pass > 0) a_.extent[0] = a_.extent[1] = pass == 1 ? s.side : s.k;
    plans_.set_precision(tf32 ? sw::fp32_precision::tf32 : sw::fp32_precision::ieee);
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    time_ = std::make_unique<timed>([this](cudaStream_t stream) { queue(stream); });
  }
  void turn() { time_->turn(); }
  double least() const { return time_->least; }

 private:
  void queue(cudaStream_t stream) {
    constexpr int operands[3][3] = {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}};  // two, and the result
    const sw::custom_operation* const operation[] = {&sw::custom::conv2d, &sw::custom::conv2d_dx, &sw::custom::conv2d_dw};
    call c;
    c.a = sw::pack_attributes(a_);
    c.inputs = c.all_inputs = 2;
    for (int i = 0; i < 3; ++i) {
      const int at = i < 2 ? i : result;
      c.l[at] = of_[operands[pass_][i]].l;
      c.p[at] = of_[operands[pass_][i]].memory.data();
      c.type[at] = sw::dtype_v<T>;
    }
    c.workspace = scratch_.data();
    cu::context ctx;
    ctx.stream = stream;
    ctx.plans = &plans_;
    cu::custom_launcher(*operation[pass_], sw::dtype_v<T>)(c, ctx);
  }

  int pass_;
  sw::convolution_attributes a_;
  std::int64_t out_;
  block<T> of_[3];
  cu::device_memory scratch_;
  cu::matmul_plans plans_;
  std::unique_ptr<timed> time_;
};

// Picoseconds of a multiplication, in the order of layout_rates_cudnn::row.
template <class T>
void elements(const shape& s, bool tf32, int turns) {
  const struct {
    int pass;
    bool operands, result;
  } columns[] = {{0, false, false}, {0, true, true},  {0, true, false},  {1, false, false},
                 {1, true, true},   {1, true, false}, {2, false, false}, {2, true, false}};
  std::vector<std::unique_ptr<measured<T>>> all;
  for (const auto& c : columns) all.push_back(std::make_unique<measured<T>>(s, c.pass, c.operands, c.result, tf32));
  for (int turn = 0; turn < turns; ++turn)
    for (auto& m : all) m->turn();
  const sw::convolution_attributes a{{s.stride, s.stride}, {s.padding, s.padding}, {1, 1}, s.groups, {0, 0}, {0, 0}};
  const std::int64_t out = sw::operations::convolved_extent(a, 0, s.side, s.k);
  const double multiplications =
      static_cast<double>(s.n * images_for_one * s.o * out * out) * static_cast<double>(s.c / s.groups * s.k * s.k);
  std::printf("{");
  for (std::size_t k = 0; k < all.size(); ++k)
    std::printf("%s%.4f", k ? ", " : "", all[k]->least() / multiplications * 1e12);
  std::printf("}");
}
void row(const shape& s, int turns) {
  std::printf("    {{%ld, %ld, %ld, %ld, %ld, %d, %d},\n     {", static_cast<long>(s.n * images_for_one),
              static_cast<long>(s.c / s.groups), static_cast<long>(s.o / s.groups), static_cast<long>(s.side),
              static_cast<long>(s.k), s.stride, s.groups);
  elements<float>(s, false, turns);
  std::printf(",\n      ");
  elements<float>(s, true, turns);
  std::printf(",\n      ");
  elements<sw::bfloat16>(s, false, turns);
  std::printf("}},\n");
  std::fflush(stdout);
}

// Nanoseconds an element, the mean of both directions and of three numbers of channels, by the kernel that programs have for it.
template <class T>
double copied(std::int64_t size, int turns) {
  double sum = 0;
  for (const std::int64_t channels : {16, 64, 256})
    for (const bool last : {false, true}) {
      const std::int64_t side =
          std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(size) / static_cast<double>(2 * channels))));
      const std::array<std::int64_t, 4> extent{2, channels, side, side};
      block<T> from(extent, last, 1), to(extent, !last, 2);
      cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      timed time([&](cudaStream_t stream) {
        call c;
        c.a = sw::attributes<sw::contiguous_attributes>(
            static_cast<int>(last ? sw::memory_format::contiguous : sw::memory_format::channels_last));
        c.inputs = c.all_inputs = 1;
        c.l[0] = from.l;
        c.l[result] = to.l;
        c.p[0] = from.memory.data();
        c.p[result] = to.memory.data();
        c.type[0] = c.type[result] = sw::dtype_v<T>;
        cu::context ctx;
        ctx.stream = stream;
        cu::launcher_for<sw::op_code::contiguous, T>()(c, ctx);
      });
      for (int turn = 0; turn < turns; ++turn) time.turn();
      sum += time.least * 1e9 / static_cast<double>(from.l.numel());
    }
  return sum / 6;
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  const char* const only = argc > 2 ? argv[2] : "";
  const cu::convolution_library* const library = cu::used_convolution_library();
  if (!library) return std::fputs("rates_cudnn: no library is registered: link shardwise::cudnn\n", stderr), 1;
  const auto began = std::chrono::steady_clock::now();
  cudaDeviceProp device{};
  cu::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::printf(R"(// SPDX-License-Identifier: Apache-2.0
// What convolutions by cuDNN and copies between memory formats take on a GPU, as measured: written by bench/convolution/rates_cudnn.cu,
// which says how. %s, %s; the command and the date stand in bench/results/convolution.md.
#pragma once

#include <cstdint>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace layout_rates_cudnn {

inline constexpr bool is_measured = true;

// A convolution of a square image, and picoseconds for each of its multiplications, of float, of float rounded to TF32 and of bfloat16, in
// this order: forward, all contiguous, all channels-last, operands channels-last and result contiguous; the image's gradient likewise; the
// weight's gradient, all contiguous, operands channels-last.
struct row {
  std::int64_t shape[7];  // images, inputs and outputs of a group, side, kernel, stride, groups
  double picoseconds[3][8];
};
// clang-format off
inline constexpr row rows[] = {
)",
              device.name, library->name().c_str());
  for (const rates::kind& k : rates::kinds)
    if (std::strstr(k.name, only)) {
      std::printf("    // %s\n", k.name);
      for (const shape& s : k.shapes) row(s, turns);
      std::fprintf(stderr, "%s: measured after %.0f s\n", k.name,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
  std::printf(R"(};

// Elements of a copy from one format to the other, and nanoseconds for each, of four bytes and of two.
struct copy_row {
  double elements, nanoseconds[2];
};
inline constexpr copy_row copies[] = {)");
  for (std::int64_t n = std::int64_t{1} << 12; n <= std::int64_t{1} << 27; n *= 8)
    std::printf("%s{%ld, {%.5f, %.5f}}", n > 4096 ? ", " : "", static_cast<long>(n), copied<float>(n, turns),
                copied<sw::bfloat16>(n, turns));
  std::printf(R"(};
// clang-format on

}  // namespace layout_rates_cudnn

}  // namespace shardwise::inline v0_1
)");
  std::fprintf(stderr, "%s", cu::convolution_report().c_str());
}
