// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN, behind the library's table, is the host's in float: causal and not, times that no tile divides, groups of heads,
// both layouts, queries cut from a longer text, slices of a large adjoint; captured in a graph as well, and equal from run to run.
#include "attention_blocks.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <shardwise/cuda.cuh>
#include <shardwise/shardwise.hpp>

namespace {

using namespace attention_test;

template <class T>
void queue(const blocks<T>& b, cudaStream_t stream) {
  REQUIRE(kernels::attend_by_library(b.call(), b.out(), b.lse(), b.scratch(), stream));
  b.multiply(stream);
  REQUIRE(kernels::attend_back_by_library(b.call(), b.gradients(), b.scratch(), stream));
}

template <class T>
outcome run(const blocks<T>& b) {
  cu::stream stream;
  b.forget();
  cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  queue(b, stream.get());
  return b.results();
}

// The same captured once, and replayed twice.
template <class T>
outcome run_captured(const blocks<T>& b) {
  cu::stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  queue(b, stream.get());
  cu::check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  cu::check(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 2; ++i) {
    b.forget();
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    cu::check(cudaGraphLaunch(runs, stream.get()), "cudaGraphLaunch");
    cu::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  }
  const outcome r = b.results();
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
  return r;
}

template <class T>
void check_cudnn(const problem& p) {
  INFO(text_of<T>(p));
  const operands<T> of(p);
  const blocks<T> b(p, of);
  const outcome first = run(b);
  check_alike(first, on_host(p, of));
  CHECK(are_equal(run(b), first));
  CHECK(are_equal(run_captured(b), first));
}

TEST_CASE("cuDNN is registered when the program begins") { CHECK(cu::used_attention_library() != nullptr); }

TEST_CASE("attention by cuDNN is the host's in float, in a graph too, and equal from run to run") {
  if (!has_gpu()) return;
  cu::clear_attention_report();
  for (const problem& p : problems()) check_cudnn<sw::bfloat16>(p);
  for (const int i : {0, 3, 6, 10}) check_cudnn<sw::float16>(problems()[static_cast<std::size_t>(i)]);
  const std::string report = cu::attention_report();
  CHECK(report.find(": cuDNN ") != std::string::npos);
  CHECK(report.find("own kernel") == std::string::npos);
  std::puts(report.c_str());
}

// 12 heads of 1536 x 1536 are 57 MB of scores a row of the batch: four rows a slice, and two at the end.
TEST_CASE("slices of a large adjoint give what the rows alone give") {
  if (!has_gpu()) return;
  const problem all{{10, 12, 4, 1536, 1536, 64, 64}, 1};
  const auto slice = sw::operations::attention_slice_of(all.e, true);
  REQUIRE(slice.rows < 10);
  REQUIRE(10 % slice.rows != 0);
  const operands<sw::bfloat16> of(all);
  const blocks<sw::bfloat16> b(all, of);
  const outcome whole = run(b);
  problem one = all;
  one.e.batch = 1;
  for (const std::size_t row : {std::size_t{0}, static_cast<std::size_t>(slice.rows), std::size_t{9}}) {
    operands<sw::bfloat16> part(one);
    const auto cut = [&](const auto& from, auto& to) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(row * to.size()), to.size(), to.begin());
    };
    cut(of.q, part.q);
    cut(of.k, part.k);
    cut(of.v, part.v);
    cut(of.dout, part.dout);
    const outcome alone = run(blocks<sw::bfloat16>(one, part));
    const auto is_at = [&](const std::vector<float>& in, const std::vector<float>& x) {
      return difference(x, {in.begin() + static_cast<std::ptrdiff_t>(row * x.size()),
                            in.begin() + static_cast<std::ptrdiff_t>((row + 1) * x.size())}) < 0.01;
    };
    CHECK(is_at(whole.out, alone.out));
    CHECK(is_at(whole.dq, alone.dq));
    CHECK(is_at(whole.dk, alone.dk));
    CHECK(is_at(whole.dv, alone.dv));
  }
}

TEST_CASE("adjoints that need not be ordered are the host's in float as well") {
  if (!has_gpu()) return;
  cu::order_attention_adjoints(false);
  for (const std::size_t i : {1, 3, 6, 9}) {
    const problem& p = problems()[i];
    INFO(text_of<sw::bfloat16>(p));
    const operands<sw::bfloat16> of(p);
    check_alike(run(blocks<sw::bfloat16>(p, of)), on_host(p, of));
  }
  cu::order_attention_adjoints(true);
}

TEST_CASE("what cuDNN does not take is refused with a reason, and a plan is not built while a stream is captured") {
  if (!has_gpu()) return;
  cu::clear_attention_report();
  const problem odd{{1, 2, 2, 40, 40, 20, 20}, 1};
  const operands<sw::bfloat16> of(odd);
  const blocks<sw::bfloat16> b(odd, of);
  cu::stream stream;
  CHECK(!kernels::attend_by_library(b.call(), b.out(), b.lse(), b.scratch(), stream.get()));
  CHECK(cu::attention_report().find("own kernel (the size of a head is no multiple of 8)") != std::string::npos);

  const problem unknown{{1, 3, 3, 56, 56, 64, 64}, 1};
  const operands<sw::bfloat16> its(unknown);
  const blocks<sw::bfloat16> c(unknown, its);
  cudaGraph_t graph = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  CHECK_THROWS_AS(kernels::attend_by_library(c.call(), c.out(), c.lse(), c.scratch(), stream.get()), std::logic_error);
  cudaStreamEndCapture(stream.get(), &graph);
  cudaGraphDestroy(graph);
  cudaGetLastError();
  CHECK(kernels::attend_by_library(c.call(), c.out(), c.lse(), c.scratch(), stream.get()));
  cu::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
}

// --- programs --------------------------------------------------------------------------------------------------------------

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
struct attend {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::scaled_dot_product_attention<sw::attention_options{.causal = true}>(q, k, v);
  }
};
template <class T>
using block_of = sw::input_tensor<T, sw::shape<sw::dyn<7>, 2, 24, 64>>;
template <class T, class Backend>
using step = sw::gradient_step<attend, mesh, sw::inputs<block_of<T>, block_of<T>, block_of<T>>, sw::wrt<0, 1, 2>,
                               sw::pipeline<>, Backend>;

// The result and the three gradients of one executor, batch size by batch size, twice each; operands that bf16 holds exactly.
template <class T, class Backend, class Rank>
std::vector<std::vector<double>> run_batches(Rank& rank) {
  std::vector<std::vector<double>> all;
  sw::executor<step<T, Backend>, Rank> ex(rank);
  for (const std::int64_t n : {7, 3, 0, 5, 1, 7}) {
    ex.resize(n);
    for (int k = 0; k < 3; ++k) {
      std::vector<T> x(static_cast<std::size_t>(n * 2 * 24 * 64));
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] =
            static_cast<T>(static_cast<float>(sw::bfloat16(std::sin(0.7F * static_cast<float>(i) + static_cast<float>(k)))));
      ex.set_input(k, x);
    }
    std::vector<double> of[2];
    for (auto& values : of) {
      ex.run(sw::step_env{});
      for (int k = 0; k < 4; ++k) {
        const auto block = ex.template output<T>(k);
        for (std::size_t i = 0; i < block.size(); ++i) values.push_back(static_cast<double>(static_cast<float>(block[i])));
      }
    }
    CHECK(of[0] == of[1]);
    all.push_back(of[0]);
  }
  return all;
}

TEST_CASE(
    "programs on a GPU: a batch of run-time size has its plans of attention built before its capture, of no rows, too") {
  if (!has_gpu()) return;
  std::vector<std::vector<double>> on_host, on_device;
  sw::launch<mesh>([&](auto& rank) { on_host = run_batches<float, sw::host_backend>(rank); });
  cu::clear_attention_report();
  sw::launch_cuda<mesh>([&](auto& rank) { on_device = run_batches<sw::bfloat16, sw::cuda_backend>(rank); });
  REQUIRE(on_host.size() == on_device.size());
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    REQUIRE(on_host[i].size() == on_device[i].size());
    double most = 0, apart = 0;
    for (std::size_t e = 0; e < on_host[i].size(); ++e) {
      most = std::max(most, std::abs(on_host[i][e]));
      const double d = std::abs(on_host[i][e] - on_device[i][e]);
      apart = d <= apart ? apart : d;
    }
    CHECK(apart <= 2e-2 * most);
  }
  const std::string report = cu::attention_report();
  INFO(report);
  CHECK(report.find("adjoint of bfloat16, batch 5") != std::string::npos);
  CHECK(report.find(": cuDNN ") != std::string::npos);
  CHECK((report.find("own kernel (") == std::string::npos ||
         report.find("own kernel (a block is empty)") != std::string::npos));
}

}  // namespace
