// SPDX-License-Identifier: Apache-2.0
// Times convolutions on a GPU, forward and both gradients, in both memory formats: by cuDNN behind the library's table and by the library's
// own kernels, of float, of float rounded to TF32 and of bfloat16; then, where a Python that has torch is given, PyTorch's in the same
// run. Several calls captured in one graph, as a step runs them; medians.
// usage: convolution_cudnn [rounds] [a Python that has torch, or -] [words of the shapes' names]
#include <shardwise/operations/convolution/device_low.cuh>
#include <shardwise/runtime/cuda/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
using sw::runtime::call;
using sw::runtime::layout;
using sw::runtime::result;

struct shape {
  const char* name;
  std::int64_t n, c, side, o, k;
  std::int16_t stride, padding;
  std::int32_t groups;

  sw::convolution_attributes attributes(int pass) const {
    sw::convolution_attributes a{{stride, stride}, {padding, padding}, {1, 1}, groups, {0, 0}, {0, 0}};
    if (pass > 0) a.extent[0] = a.extent[1] = pass == 1 ? side : k;
    return a;
  }
  std::int64_t out() const { return sw::operations::convolved_extent(attributes(0), 0, side, k); }
  double operations() const {
    return 2 * static_cast<double>(n * o * out() * out()) * static_cast<double>(c / groups * k * k);
  }
};
constexpr shape shapes[] = {{"3x3 64 to 64", 32, 64, 56, 64, 3, 1, 1, 1},
                            {"depthwise 3x3", 32, 64, 56, 64, 3, 1, 1, 64},
                            {"1x1 256 to 64", 32, 256, 56, 64, 1, 1, 0, 1},
                            {"3x3 64 to 128 stride 2", 32, 64, 56, 128, 3, 2, 1, 1}};
constexpr const char* passes[] = {"forward", "image's gradient", "weight's gradient"};

// Blocks of one format, (image, weight, result), which each pass reads or writes.
template <class T>
class blocks {
 public:
  blocks(const shape& s, bool channels_last, bool tf32)
      : s_(s),
        of_{lay({s.n, s.c, s.side, s.side}, channels_last), lay({s.o, s.c / s.groups, s.k, s.k}, channels_last),
            lay({s.n, s.o, s.out(), s.out()}, channels_last)},
        memory_{cu::device_memory(bytes(0)), cu::device_memory(bytes(1)), cu::device_memory(bytes(2))},
        scratch_(static_cast<std::size_t>(
            sw::operations::convolution_library_bytes(sw::dtype_v<T>, of_[0].numel(), of_[1].numel(), of_[2].numel()))) {
    plans_.set_precision(tf32 ? sw::fp32_precision::tf32 : sw::fp32_precision::ieee);
    for (int i = 0; i < 3; ++i) fill(i);
  }
  void queue(int pass, cudaStream_t stream) {
    constexpr int operands[3][3] = {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}};  // two, and the result
    const sw::custom_operation* const operation[] = {&sw::custom::conv2d, &sw::custom::conv2d_dx, &sw::custom::conv2d_dw};
    call c;
    c.a = sw::pack_attributes(s_.attributes(pass));
    c.inputs = c.all_inputs = 2;
    for (int i = 0; i < 3; ++i) {
      const int at = i < 2 ? i : result;
      c.l[at] = of_[operands[pass][i]];
      c.p[at] = memory_[operands[pass][i]].data();
      c.type[at] = sw::dtype_v<T>;
    }
    c.workspace = scratch_.data();
    cu::context ctx;
    ctx.stream = stream;
    ctx.plans = &plans_;
    cu::custom_launcher(*operation[pass], sw::dtype_v<T>)(c, ctx);
  }
  // What a pass writes; then its block is filled anew.
  std::vector<float> computed(int pass) {
    constexpr int written[] = {2, 0, 1};
    queue(pass, nullptr);
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> host(static_cast<std::size_t>(of_[written[pass]].numel()));
    cu::check(cudaMemcpy(host.data(), memory_[written[pass]].data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
    fill(written[pass]);
    return {host.begin(), host.end()};
  }

 private:
  static layout lay(const std::int64_t (&extent)[4], bool channels_last) {
    layout l;
    l.rank = 4;
    for (int d = 0; d < 4; ++d) l.ext[d] = l.global[d] = extent[d];
    if (channels_last) l.make_channels_last();
    else l.make_dense();
    return l;
  }
  std::size_t bytes(int i) const { return static_cast<std::size_t>(of_[i].numel()) * sizeof(T); }
  void fill(int i) {
    std::vector<T> host(static_cast<std::size_t>(of_[i].numel()));
    unsigned s = static_cast<unsigned>(i) + 1;
    for (T& x : host) {
      s = s * 1664525U + 1013904223U;
      x = static_cast<T>(static_cast<float>(s >> 8) / 8388608.0F - 1);
    }
    cu::check(cudaMemcpy(memory_[i].data(), host.data(), bytes(i), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  shape s_;
  layout of_[3];
  cu::device_memory memory_[3], scratch_;
  cu::matmul_plans plans_;
};

// Milliseconds of one of `calls` captured together.
template <class F>
double milliseconds(int rounds, int calls, F&& f) {
  cu::stream stream;
  f(stream.get());  // libraries load and plan
  cu::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < calls; ++i) f(stream.get());
  cu::check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  cu::check(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
  cudaEvent_t begin = nullptr, end = nullptr;
  cu::check(cudaEventCreate(&begin), "cudaEventCreate");
  cu::check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> all;
  for (int i = 0; i <= rounds; ++i) {
    cu::check(cudaEventRecord(begin, stream.get()), "cudaEventRecord");
    cu::check(cudaGraphLaunch(runs, stream.get()), "cudaGraphLaunch");
    cu::check(cudaEventRecord(end, stream.get()), "cudaEventRecord");
    cu::check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    cu::check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i > 0) all.push_back(ms / static_cast<float>(calls));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return static_cast<double>(all[static_cast<std::size_t>(rounds / 2)]);
}

template <class T>
void measure(const shape& s, const char* elements, bool tf32, int rounds) {
  const cu::convolution_library* const library = cu::used_convolution_library();
  for (const bool channels_last : {false, true}) {
    blocks<T> b(s, channels_last, tf32);
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<float> first;
      double most = 0, squares = 0;
      for (const cu::convolution_library* const by : {library, static_cast<const cu::convolution_library*>(nullptr)}) {
        if (tf32 && !by) continue;  // the own kernels round nothing
        cu::use_convolution_library(by);
        const std::vector<float> now = b.computed(pass);
        for (std::size_t i = 0; i < first.size(); ++i) {
          most = std::max(most, std::abs(static_cast<double>(now[i]) - static_cast<double>(first[i])));
          squares += static_cast<double>(now[i]) * static_cast<double>(now[i]);
        }
        const double ms = milliseconds(by ? rounds : std::min(rounds, 3), by ? 10 : 1,
                                       [&](cudaStream_t stream) { b.queue(pass, stream); });
        std::printf("%-24s %-9s %-13s %-18s %-13s %9.4f ms %7.2f TFLOP/s", s.name, elements,
                    channels_last ? "channels-last" : "contiguous", passes[pass], by ? by->name().c_str() : "own kernels",
                    ms, s.operations() / ms * 1e-9);
        if (!first.empty())
          std::printf("  largest difference %.1e of the root mean square",
                      most / std::sqrt(squares / static_cast<double>(now.size())));
        std::printf("\n");
        std::fflush(stdout);
        first = now;
      }
      cu::use_convolution_library(library);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const char* const python = argc > 2 ? argv[2] : "-";
  if (rounds < 1) return std::puts("usage: convolution_cudnn [rounds, at least 1] [python or -] [words]"), 1;
  if (!cu::used_convolution_library()) return std::puts("no library is registered: link shardwise::cudnn"), 1;
  std::string rival = std::string(python) + " " + SHARDWISE_BENCH_CONVOLUTION + "/torch_cuda.py " + std::to_string(rounds);
  for (const shape& s : shapes) {
    bool wanted = argc <= 3;
    for (int i = 3; i < argc; ++i) wanted = wanted || std::strstr(s.name, argv[i]);
    if (!wanted) continue;
    measure<float>(s, "float", false, rounds);
    measure<float>(s, "TF32", true, rounds);
    measure<sw::bfloat16>(s, "bfloat16", false, rounds);
    rival += " '" + std::string(s.name) + ":";
    for (const std::int64_t x :
         {s.n, s.c, s.side, s.o, s.k, std::int64_t{s.stride}, std::int64_t{s.padding}, std::int64_t{s.groups}})
      rival += std::to_string(x) + ",";
    rival += "'";
  }
  std::printf("%s", cu::convolution_report().c_str());
  std::fflush(stdout);
  return std::strcmp(python, "-") == 0 ? 0 : std::system(rival.c_str()) != 0;
}
