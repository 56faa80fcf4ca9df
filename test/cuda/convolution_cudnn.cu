// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN, behind the library's table, are the host's in double: every option, both memory formats and mixed ones, all three
// passes, every element type; captured in a graph as well, equal from run to run, and beside the library's own kernels. In programs: batches
// of run-time sizes, TF32 where it is asked for, empty blocks.
#define SHARDWISE_TEST_DEVICES 1
#include <convolving.hpp>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/convolution/device_low.cuh>
#include <shardwise/runtime/cuda/resources.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace convolution_cudnn {

using namespace convolving;
namespace cu = shardwise::cuda;
constexpr which passes[] = {which::forward, which::dx, which::dw};

bool has_gpu() { return test::on_devices::has(1); }

const sw::custom_operation& operation_of(which k) {
  return k == which::forward ? sw::custom::conv2d : k == which::dx ? sw::custom::conv2d_dx : sw::custom::conv2d_dw;
}

// Without a library while it lives.
struct own_kernels {
  const cu::convolution_library* const before = cu::used_convolution_library();
  own_kernels() { cu::use_convolution_library(nullptr); }
  ~own_kernels() { cu::use_convolution_library(before); }
};
bool says(const std::string& text) { return cu::convolution_report().find(text) != std::string::npos; }

// A call on a device: blocks that lie in these formats, what lies between their elements no numbers, with guards around the scratch.
template <class T>
class device_call {
 public:
  device_call(const sizes& s, which k, const std::vector<T>& x, const std::vector<T>& y, const format (&f)[3], bool tf32)
      : of_(&operation_of(k)),
        memory_{cu::device_memory(bytes(s, k, f, 0)), cu::device_memory(bytes(s, k, f, 1)),
                cu::device_memory(bytes(s, k, f, 2))} {
    const auto e = operands_of(s, k);
    sw::spec specs[3]{};
    c_.a = sw::pack_attributes(s.a);
    c_.inputs = c_.all_inputs = 2;
    for (int i = 0; i < 3; ++i) {
      const layout l = laid(e[static_cast<std::size_t>(i)], f[i]);
      specs[i].rank = 4;
      specs[i].type = sw::dtype_v<T>;
      for (int d = 0; d < 4; ++d) specs[i].extent[d] = l.ext[d];
      const int at = i < 2 ? i : result;
      c_.l[at] = l;
      c_.p[at] = memory_[i].data();
      c_.type[at] = sw::dtype_v<T>;
      const std::vector<T> stored_as = i < 2 ? stored(i == 0 ? x : y, l) : std::vector<T>(l.span(), T(-99));
      if (!stored_as.empty())
        cu::check(cudaMemcpy(memory_[i].data(), stored_as.data(), stored_as.size() * sizeof(T), cudaMemcpyHostToDevice),
                  "cudaMemcpy");
    }
    const sw::spec* const in[] = {&specs[0], &specs[1]};
    bytes_ = static_cast<std::size_t>(record_of(k).device_scratch.value(c_.a, in, 2, specs[2]));
    scratch_ = std::make_unique<cu::device_memory>(bytes_ + 2 * guard);
    cu::check(cudaMemset(scratch_->data(), 0xA5, bytes_ + 2 * guard), "cudaMemset");
    c_.workspace = scratch_->data() + guard;
    plans_.set_precision(tf32 ? sw::fp32_precision::tf32 : sw::fp32_precision::ieee);
    ctx_.plans = &plans_;
    ctx_.stream = stream_.get();
  }
  void prepare() {
    if (const cu::launcher f = cu::custom_preparer(*of_, sw::dtype_v<T>)) f(c_, ctx_);
  }
  void queue() { cu::custom_launcher(*of_, sw::dtype_v<T>)(c_, ctx_); }
  // Captured once, without a run before, and replayed twice; the result of the last.
  std::vector<T> captured() {
    prepare();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runs = nullptr;
    cu::check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    queue();
    cu::check(cudaStreamEndCapture(stream_.get(), &graph), "cudaStreamEndCapture");
    cu::check(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
    for (int i = 0; i < 2; ++i) {
      forget();
      cu::check(cudaGraphLaunch(runs, stream_.get()), "cudaGraphLaunch");
      cu::check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    }
    cudaGraphExecDestroy(runs);
    cudaGraphDestroy(graph);
    return results();
  }
  std::vector<T> run() {
    forget();
    queue();
    cu::check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    return results();
  }

 private:
  static constexpr std::size_t guard = 4096;
  static std::size_t bytes(const sizes& s, which k, const format (&f)[3], int i) {
    return laid(operands_of(s, k)[static_cast<std::size_t>(i)], f[i]).span() * sizeof(T) + 16;
  }
  void forget() {  // no numbers, whatever the elements
    cu::check(cudaMemset(memory_[2].data(), 0xff, c_.l[result].span() * sizeof(T)), "cudaMemset");
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  std::vector<T> results() {
    std::vector<T> all(c_.l[result].span());
    cu::check(cudaMemcpy(all.data(), memory_[2].data(), all.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::vector<unsigned char> around(bytes_ + 2 * guard);
    cu::check(cudaMemcpy(around.data(), scratch_->data(), around.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    bool intact = true;
    for (std::size_t i = 0; i < guard; ++i) intact = intact && around[i] == 0xA5 && around[guard + bytes_ + i] == 0xA5;
    CHECK(intact);
    return read(all.data(), c_.l[result]);
  }

  const sw::custom_operation* of_;
  cu::device_memory memory_[3];
  std::unique_ptr<cu::device_memory> scratch_;
  std::size_t bytes_ = 0;
  cu::stream stream_;
  cu::matmul_plans plans_;
  cu::context ctx_;
  call c_;
};

// The exact result and, element by element, the sum of the products' magnitudes.
struct exact {
  std::vector<double> value, magnitude;

  template <class T>
  exact(const sizes& s, which k, const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<double> x, y, ax, ay;
    for (const T v : a) x.push_back(static_cast<double>(static_cast<sw::computed_in<T>>(v)));
    for (const T v : b) y.push_back(static_cast<double>(static_cast<sw::computed_in<T>>(v)));
    for (const double v : x) ax.push_back(std::abs(v));
    for (const double v : y) ay.push_back(std::abs(v));
    value = computed<double>(s, k, x, y, plain, 1, true);
    magnitude = computed<double>(s, k, ax, ay, plain, 1, true);
  }
  // The largest distance, in units of the magnitude; infinite where one is no number. Law: of sums in any order less than the number of
  // summands times half an epsilon, of which rounding uses a few; of a wrong stride, order of dims or format about 1.
  template <class T>
  double apart(const std::vector<T>& got) const {
    if (got.size() != value.size()) return HUGE_VAL;
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double off = std::abs(static_cast<double>(static_cast<sw::computed_in<T>>(got[i])) - value[i]);
      const double share = magnitude[i] > 0 ? off / magnitude[i] : off > 0 ? HUGE_VAL : 0;
      if (!(share <= worst)) worst = std::isnan(share) ? HUGE_VAL : share;
    }
    return worst;
  }
};

// What rounding may take: results of two bytes half a last place of the value, which is within the magnitude.
template <class T>
constexpr double allowed(bool tf32) {
  if (sizeof(T) == 8) return 1e-13;
  if (sizeof(T) == 4) return tf32 ? 2e-3 : 2e-5;
  return std::is_same_v<T, sw::bfloat16> ? 5e-3 : 1e-3;
}

template <class T>
std::vector<T> rounded(std::int64_t n, int salt) {
  std::vector<T> x;
  for (const double v : some<double>(n, salt)) x.push_back(static_cast<T>(static_cast<float>(v)));
  return x;
}

int taken = 0, refused = 0;

template <class T>
void check(const sizes& s, which k, const format (&f)[3], bool tf32 = false) {
  const auto e = operands_of(s, k);
  const auto x = rounded<T>(count(e[0]), 0), y = rounded<T>(count(e[1]), 1);
  const exact of(s, k, x, y);
  cu::clear_convolution_report();
  device_call<T> c(s, k, x, y, f, tf32);
  const std::vector<T> first = c.captured();
  const std::string report = cu::convolution_report();
  INFO(report);
  CAPTURE(static_cast<int>(f[0]));
  CAPTURE(static_cast<int>(f[1]));
  CAPTURE(static_cast<int>(f[2]));
  (report.find(": cuDNN ") != std::string::npos ? taken : refused) += 1;
  if (report.find("own kernel") != std::string::npos) std::printf("not by cuDNN: %s", report.c_str());
  CHECK(of.apart(first) < allowed<T>(tf32));
  CHECK(same_bits(c.run(), first));
  CHECK(same_bits(device_call<T>(s, k, x, y, f, tf32).run(), first));
  const own_kernels none;
  CHECK(of.apart(c.run()) < allowed<T>(false));
}

constexpr format c = format::contiguous, l = format::channels_last, apart = format::spread;
constexpr format formats[][3] = {{c, c, c}, {l, l, l}};
constexpr format mixed[][3] = {{l, c, l}, {l, c, c}, {c, l, c}, {c, c, l}, {apart, c, c}, {l, apart, l}, {c, c, apart}};

const sizes problems[] = {
    {2, 8, 12, 10, 16, 3, 3, with(1, 1)},        // the usual one
    {2, 4, 6, 5, 6, 3, 2, with(1, 1)},           // extents that no vector divides, height unlike width
    {3, 6, 7, 9, 4, 3, 3, with(2, 1, 1, 2)},     // groups
    {2, 3, 9, 8, 5, 2, 3, with(1, 0, 2)},        // dilation
    {2, 3, 9, 8, 5, 2, 2, with(1, 0, 1, 1, 1)},  // padding behind alone, as "same" of even kernels
    {2, 8, 9, 9, 8, 3, 3, with(1, 1, 1, 8)},     // depthwise
    {2, 6, 9, 8, 12, 3, 3, with(2, 1, 1, 6)},    // depthwise, two outputs each
    {2, 6, 8, 8, 6, 3, 3, with(3, 0, 1, 6)},     // rows behind the last window, whose gradients are 0
    {4, 16, 5, 7, 8, 1, 1, with(1, 0)},          // pixels
    {4, 7, 1, 1, 3, 1, 1, with(1, 0)},           // one place
    {1, 1, 11, 9, 1, 5, 5, with(1, 2)},          // one channel
    {2, 3, 30, 26, 16, 7, 7, with(2, 3)},        // a first one
    {2, 4, 8, 9, 6, 3, 2, {{2, 1}, {1, 0}, {1, 2}, 1, {0, 0}, {0, 1}}},  // height and width with options of their own
    // windows that see none of the image, as the gradient of a cut one has
    {2, 4, 5, 6, 6, 3, 3, {{2, 1}, {3, 1}, {1, 1}, 1, {0, 0}, {-2, 0}}},
};

TEST_CASE("cuDNN's convolutions are registered when the program begins") {
  CHECK(cu::used_convolution_library() != nullptr);
}

TEST_CASE(
    "convolutions by cuDNN are the host's in double, in both formats and mixed ones, captured, and equal from run to run") {
  if (!has_gpu()) return;
  taken = refused = 0;
  for (const sizes& s : problems)
    for (const which k : passes) {
      for (const auto& f : formats) {
        check<float>(s, k, f);
        check<double>(s, k, f);
        check<sw::bfloat16>(s, k, f);
        check<sw::float16>(s, k, f);
      }
      for (const auto& f : mixed) check<float>(s, k, f);
      check<sw::bfloat16>(s, k, {l, c, l});
    }
  std::printf("%d by cuDNN, %d by the own kernels\n", taken, refused);
  CHECK(taken > 10 * refused);
}

TEST_CASE("TF32 is used where it is asked for, and there alone") {
  if (!has_gpu()) return;
  const sizes s{4, 64, 28, 28, 64, 3, 3, with(1, 1)};
  for (const which k : passes)
    for (const auto& f : formats) {
      const auto e = operands_of(s, k);
      const auto x = some<float>(count(e[0]), 0), y = some<float>(count(e[1]), 1);
      const exact of(s, k, x, y);
      cu::clear_convolution_report();
      const double off = of.apart(device_call<float>(s, k, x, y, f, true).run());
      CHECK(says(", TF32: cuDNN "));
      CHECK(off < allowed<float>(true));
      CHECK(of.apart(device_call<float>(s, k, x, y, f, false).run()) < 1e-5);
      WARN(off > 1e-5);  // it may be, and on H100 it is
      std::printf("with TF32 %.1e of the magnitude\n", off);
    }
}

TEST_CASE("convolutions that need not be ordered are the host's as well") {
  if (!has_gpu()) return;
  cu::order_convolutions(false);
  const sizes s{4, 64, 28, 28, 64, 3, 3, with(1, 1)};
  for (const which k : passes)
    for (const auto& f : formats) {
      const auto e = operands_of(s, k);
      const auto x = rounded<sw::bfloat16>(count(e[0]), 0), y = rounded<sw::bfloat16>(count(e[1]), 1);
      CHECK(exact(s, k, x, y).apart(device_call<sw::bfloat16>(s, k, x, y, f, false).run()) < allowed<sw::bfloat16>(false));
    }
  cu::order_convolutions(true);
}

TEST_CASE(
    "blocks without elements call no library; sums over none are zeros; a plan is not built while a stream is captured") {
  if (!has_gpu()) return;
  cu::clear_convolution_report();
  const sizes none{0, 4, 6, 5, 6, 3, 3, with(1, 1)};
  CHECK(device_call<float>(none, which::forward, {}, std::vector<float>(6 * 4 * 9, 1.0F), plain, false).run().empty());
  CHECK(cu::convolution_report().empty());
  for (const float v : device_call<float>(none, which::dw, {}, {}, plain, false).run()) CHECK(v == 0);
  CHECK(says("own kernel (a block is empty)"));

  cudaStream_t stream = nullptr;
  cu::check(cudaStreamCreate(&stream), "cudaStreamCreate");
  cu::convolution_request r;
  r.of.n = 1;
  r.of.c = r.of.i = 3;
  r.of.h = r.of.w = r.of.oh = r.of.ow = 23;
  r.of.o = 4;
  r.of.kh = r.of.kw = 1;
  sw::runtime::make_dense({1, 3, 23, 23}, false, r.of.image);
  sw::runtime::make_dense({4, 3, 1, 1}, false, r.of.weight);
  sw::runtime::make_dense({1, 4, 23, 23}, false, r.of.result);
  r.bytes = 1 << 20;
  cudaGraph_t graph = nullptr;
  cu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  CHECK_THROWS_AS(cu::convolution_library_for(r, stream), std::logic_error);
  cudaStreamEndCapture(stream, &graph);
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  CHECK(cu::convolution_library_for(r, stream) != nullptr);
  cudaStreamDestroy(stream);
}

// --- programs --------------------------------------------------------------------------------------------------------------

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

// Channels-last inside: the second convolution's result, its weight contiguous.
struct network {
  constexpr auto operator()(const auto& x, const auto& first, const auto& second) const {
    constexpr sw::convolution_options halved{.stride = 2, .padding = 1}, depthwise{.padding = "same", .groups = 12};
    const auto y = sw::contiguous<sw::memory_format::channels_last>(sw::conv2d<halved>(x, first));
    return sw::conv2d<depthwise>(y, second);
  }
};
template <class T, std::int64_t N, class Backend>
using step =
    sw::gradient_step<network, mesh,
                      sw::inputs<sw::input_tensor<T, sw::shape<N, 6, 17, 15>>, sw::input_tensor<T, sw::shape<12, 6, 3, 3>>,
                                 sw::input_tensor<T, sw::shape<12, 1, 3, 4>>>,
                      sw::wrt<0, 1, 2>, sw::pipeline<>, Backend>;

// The results and gradients of one executor at several batch sizes, twice each.
template <class Step, class T, std::int64_t N, class Rank>
std::vector<std::vector<double>> run_batches(Rank& rank, const std::vector<std::int64_t>& batches) {
  std::vector<std::vector<double>> all;
  sw::executor<Step, Rank> ex(rank);
  ex.set_input(1, some<T>(12 * 6 * 9, 1));
  ex.set_input(2, some<T>(12 * 12, 2));
  for (const std::int64_t n : batches) {
    if constexpr (N < 0) ex.resize(n);
    ex.set_input(0, some<T>(n * 6 * 17 * 15, 0));
    std::vector<double> of[2];
    for (auto& values : of) {
      ex.run(sw::step_env{});
      for (int k = 0; k < 4; ++k) {
        const auto block = ex.template output<T>(k);
        for (std::size_t i = 0; i < block.size(); ++i) values.push_back(static_cast<double>(block[i]));
      }
    }
    CHECK(of[0] == of[1]);
    all.push_back(of[0]);
  }
  return all;
}
template <class T, std::int64_t N, class Backend>
void compare(const std::vector<std::int64_t>& batches, double most) {
  std::vector<std::vector<double>> on_host, on_device;
  sw::launch<mesh>([&](auto& rank) { on_host = run_batches<step<double, N, sw::host_backend>, double, N>(rank, batches); });
  cu::clear_convolution_report();
  sw::launch_cuda<mesh>([&](auto& rank) { on_device = run_batches<step<T, N, Backend>, T, N>(rank, batches); });
  REQUIRE(on_host.size() == on_device.size());
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    CAPTURE(batches[i]);
    REQUIRE(on_host[i].size() == on_device[i].size());
    CHECK(convolving::apart(on_device[i], on_host[i]) < most);
  }
  INFO(cu::convolution_report());
  CHECK(says(": cuDNN "));
  CHECK((!says("own kernel (") || says("own kernel (a block is empty)")));
}

TEST_CASE("programs on a GPU: convolutions by cuDNN, of float and of TF32") {
  if (!has_gpu()) return;
  compare<double, 5, sw::cuda_backend>({5}, 1e-12);
  compare<float, 5, sw::cuda_backend>({5}, 1e-5);
  CHECK(!says("TF32"));
  compare<float, 5, sw::cuda_backend_tf32>({5}, 1e-2);
  CHECK(says(", TF32: cuDNN "));
}
TEST_CASE("programs on a GPU: a batch of run-time size has its plans built before its capture, of no images, too") {
  if (!has_gpu()) return;
  compare<float, sw::dyn<7>, sw::cuda_backend>({7, 3, 0, 5, 1, 7}, 1e-5);
}

// Height cut over two ranks: blocks with rows of the other one, padding at one end alone.
struct rows : sw::axis<2> {};
template <int Stride>
struct windows {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<sw::convolution_options{.stride = Stride, .padding = 1}>(x, w);
  }
};
template <int Stride, class Backend>
using cut_step = sw::gradient_step<windows<Stride>, sw::mesh<rows>,
                                   sw::inputs<sw::input_tensor<double, sw::shape<2, 4, 11, 8>, sw::on<rows, sw::shard<2>>>,
                                              sw::input_tensor<double, sw::shape<6, 4, 3, 3>, sw::on<rows, sw::reduced>>>,
                                   sw::wrt<0, 1>, sw::pipeline<>, Backend>;
template <class Step, class Rank>
std::vector<double> run_cut(Rank& rank) {
  sw::executor<Step, Rank> ex(rank);
  ex.set_input(0, some<double>(2 * 4 * 88, 0));
  ex.set_input(1, some<double>(6 * 36, 1));
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 3; ++k) {
    const auto block = ex.template output<double>(k);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
  }
  return all;
}
template <int Stride>
void compare_cut() {
  std::vector<double> on_host[2], on_device[2];
  sw::launch<sw::mesh<rows>>([&](auto& rank) { on_host[rank.index()] = run_cut<cut_step<Stride, sw::host_backend>>(rank); });
  cu::clear_convolution_report();
  sw::launch_cuda<sw::mesh<rows>>(
      [&](auto& rank) { on_device[rank.index()] = run_cut<cut_step<Stride, sw::cuda_backend>>(rank); });
  INFO(cu::convolution_report());
  CHECK(says(": cuDNN "));
  for (int r = 0; r < 2; ++r) {
    REQUIRE(on_device[r].size() == on_host[r].size());
    CHECK(convolving::apart(on_device[r], on_host[r]) < 1e-12);
  }
}
TEST_CASE("programs on 2 GPUs: an image cut in height, with the other rank's rows as halos") {
  if (!test::on_devices::has(2)) return;
  compare_cut<1>();
  compare_cut<2>();
}

}  // namespace convolution_cudnn
