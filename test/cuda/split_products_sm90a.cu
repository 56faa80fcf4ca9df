// SPDX-License-Identifier: Apache-2.0
// Products of float as three of TF32: each element is as near to the exact one as the law of split_product says, however factors lie, with the depth in any
// number of splits, of batches, added to what is there, with a bias and relu behind them; again with the same bits. The test's target is
// compiled for sm_90a.
#define SHARDWISE_TEST_DEVICES 1
#include "device.hpp"

#include <models.hpp>
#include <place.hpp>

#include <shardwise/operations/contraction/device_split_product.cuh>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace {

using namespace device_test;
using cu::split_product;

struct split_problem {
  cu::matmul_shape s;
  float alpha = 1, beta = 0;
  bool integers = false;  // small ones, whose low parts are 0
};

cu::matmul_shape shape(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool turned_a, bool turned_b,
                       std::int64_t gap = 0) {
  cu::matmul_shape s;
  s.rows = rows;
  s.columns = columns;
  s.depth = depth;
  s.type = CUDA_R_32F;
  s.transposed_a = turned_a ? 1 : 0;
  s.transposed_b = turned_b ? 1 : 0;
  s.ld_a = (turned_a ? depth : rows) + gap;
  s.ld_b = (turned_b ? columns : depth) + gap;
  s.ld_d = (rows + 3) / 4 * 4 + gap;
  return s;
}

std::vector<float> numbers(std::size_t n, std::uint32_t seed, bool integers) {
  std::vector<float> v(n);
  for (float& x : v) {
    seed = seed * 1664525U + 1013904223U;
    x = integers ? static_cast<float>(seed >> 28) - 7 : static_cast<float>(seed >> 8) * 0x1p-23F - 1;
  }
  return v;
}

bool is_there() {
  if (split_product::is_compiled()) return true;
  std::puts("skipped: 0 GPUs that this is compiled for");
  return false;
}

std::size_t size_of(std::int64_t ld, std::int64_t lines, std::int64_t step, std::int64_t batch) {
  return static_cast<std::size_t>(ld * lines + step * (batch - 1));
}

// All of it in double; the largest error in units of what the law allows.
void check(const split_problem& p, int splits) {
  const cu::matmul_shape& s = p.s;
  CAPTURE(s.rows);
  CAPTURE(s.columns);
  CAPTURE(s.depth);
  CAPTURE(s.transposed_a);
  CAPTURE(s.transposed_b);
  CAPTURE(splits);
  REQUIRE(split_product::takes(s));
  REQUIRE(split_product::takes_splits(s, splits));
  const auto a = numbers(size_of(s.ld_a, s.transposed_a ? s.rows : s.depth, s.step_a, s.batch), 1, p.integers),
             b = numbers(size_of(s.ld_b, s.transposed_b ? s.depth : s.columns, s.step_b, s.batch), 2, p.integers),
             before = numbers(size_of(s.ld_d, s.columns, s.step_d, s.batch), 3, p.integers),
             bias = numbers(static_cast<std::size_t>(s.rows * s.batch), 4, p.integers);
  const device_bytes da(a.size() * 4), db(b.size() * 4), dd(before.size() * 4), dbias(bias.size() * 4);
  const device_bytes scratch(static_cast<std::size_t>(sw::device_scratch::product_bytes));
  da.upload(a.data());
  db.upload(b.data());
  dbias.upload(bias.data());
  const bool has_bias = s.epilogue == CUBLASLT_EPILOGUE_BIAS || s.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  const bool relu = s.epilogue == CUBLASLT_EPILOGUE_RELU || s.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  std::vector<float> d[2];
  for (std::vector<float>& to : d) {
    dd.upload(before.data());
    split_product::run(s, splits, &p.alpha,
                       {da.data(), db.data(), dd.data(), dd.data(), has_bias ? dbias.data() : nullptr, nullptr}, &p.beta,
                       scratch.data(), device::get().ctx);
    device::get().sync();
    to.resize(before.size());
    dd.download(to.data());
    CHECK(dd.intact());
  }
  CHECK(std::memcmp(d[0].data(), d[1].data(), d[0].size() * 4) == 0);
  std::vector<float> expected = before;  // gaps stay what they are
  double most = 0;
  for (std::int64_t k = 0; k < s.batch; ++k)
    for (std::int64_t j = 0; j < s.columns; ++j)
      for (std::int64_t i = 0; i < s.rows; ++i) {
        double sum = 0, all = 0;
        for (std::int64_t e = 0; e < s.depth; ++e) {
          const double x = a[static_cast<std::size_t>(k * s.step_a + (s.transposed_a ? i * s.ld_a + e : e * s.ld_a + i))],
                       y = b[static_cast<std::size_t>(k * s.step_b + (s.transposed_b ? e * s.ld_b + j : j * s.ld_b + e))];
          sum += x * y;
          all += std::fabs(x * y);
        }
        const auto at = static_cast<std::size_t>(k * s.step_d + j * s.ld_d + i);
        double value = p.alpha * sum + p.beta * static_cast<double>(before[at]);
        if (has_bias) value += static_cast<double>(bias[static_cast<std::size_t>(k * s.rows + i)]);
        if (relu && value < 0) value = 0;
        // parts: 2^-19; twelve sums of tensor cores, which cut; a sum of float for every 32 of the depth and every split; the rest
        const double rounding = 0x1p-24 * (24 + static_cast<double>(s.depth) / 32 + splits);
        const double bound = std::fabs(p.alpha) * all * (0x1p-19 + rounding) + 0x1p-22 * (std::fabs(p.alpha) * all + 2);
        const double off = std::fabs(static_cast<double>(d[0][at]) - value);
        most = std::max(most, p.integers ? off * 1e30 : off / bound);
        expected[at] = d[0][at];
      }
  CHECK(most <= 1);
  CHECK(std::memcmp(expected.data(), d[0].data(), d[0].size() * 4) == 0);
}

}  // namespace

TEST_CASE("products of float as three of TF32 are as near to the exact ones as their law says") {
  NEEDS_GPU();
  if (!is_there()) return;
  for (const bool turned_a : {false, true})
    for (const bool turned_b : {false, true})
      for (const std::int64_t gap : {0, 4}) {
        for (const auto& [rows, columns, depth] : {std::array<std::int64_t, 3>{4, 1, 4},
                                                   {100, 36, 68},
                                                   {128, 128, 32},
                                                   {132, 260, 100},
                                                   {256, 130, 1000},
                                                   {260, 1, 2048}}) {
          const std::int64_t odd = turned_b ? columns % 2 : 0;  // columns that only a factor along its depth may have
          for (const int splits : {1, 2, 3, 8}) check({shape(rows, columns + odd, depth, turned_a, turned_b, gap)}, splits);
        }
        if (turned_a) check({shape(101, turned_b ? 34 : 33, 64, turned_a, turned_b, gap)}, 1);  // and such rows
        check({shape(124, 40, 96, turned_a, turned_b, gap), 1, 0, true}, 2);
      }
}

TEST_CASE("products of float as three of TF32: batches, what is added, bias and relu, more tiles than multiprocessors") {
  NEEDS_GPU();
  if (!is_there()) return;
  for (const bool turned_a : {false, true})
    for (const bool turned_b : {false, true}) {
      split_problem p{shape(136, 72, 160, turned_a, turned_b)};
      p.s.batch = 3;
      p.s.step_a = p.s.rows * p.s.depth + 8;
      p.s.step_b = p.s.columns * p.s.depth + 4;
      p.s.step_d = p.s.rows * p.s.columns + 4;
      for (const int splits : {1, 4}) {
        p.alpha = -0.5F;
        p.beta = 0;
        p.s.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
        check(p, splits);
        p.beta = 1.5F;
        check(p, splits);
        p.s.epilogue = CUBLASLT_EPILOGUE_BIAS;
        check(p, splits);
        p.s.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
        check(p, splits);
        p.beta = 0;
        p.s.epilogue = CUBLASLT_EPILOGUE_RELU;
        check(p, splits);
      }
      check({shape(2304, 1160, 64, turned_a, turned_b)}, 2);  // 180 tiles
    }
}

TEST_CASE("which products may be three of TF32, and in how many splits, unmeasured") {
  CHECK_FALSE(split_product::takes(shape(101, 32, 64, false, false)));  // rows of a factor that lies along them
  CHECK_FALSE(split_product::takes(shape(104, 32, 66, true, true)));
  CHECK_FALSE(split_product::takes(shape(104, 32, 66, false, false)));
  CHECK(split_product::takes(shape(104, 34, 66, false, true)));
  CHECK_FALSE(split_product::takes(shape(104, 33, 66, false, true)));
  cu::matmul_shape s = shape(104, 32, 64, true, false);
  s.align_a = 8;
  CHECK_FALSE(split_product::takes(s));
  s.align_a = 16;
  s.epilogue = CUBLASLT_EPILOGUE_GELU;
  CHECK_FALSE(split_product::takes(s));
  CHECK_FALSE(split_product::takes_splits(shape(8192, 8192, 512, true, false), 2));  // more parts than scratch holds
  // 32 tiles of 132 multiprocessors: in 4 splits each has one; a short depth is not worth dividing
  CHECK(split_product::splits_of(shape(4096, 128, 4096, true, false)) == 4);
  CHECK(split_product::splits_of(shape(8192, 8192, 512, true, false)) == 1);
  CHECK(split_product::splits_of(shape(128, 128, 128, true, false)) == 0);
}

TEST_CASE("plans compute products of float as three of TF32 where that is allowed, unmeasured and measured") {
  NEEDS_GPU();
  if (!is_there()) return;
  // large ones are three of TF32, unmeasured and measured, and not where nobody allows it; what cannot be so is cuBLASLt's of float, bit
  // by bit
  const cu::matmul_shape large = shape(1024, 2048, 1024, true, false), refused = shape(1022, 2048, 1024, false, false, 2);
  CHECK(split_product::splits_of(large) > 0);
  CHECK_FALSE(split_product::takes(refused));
  const auto a = numbers(std::size_t{1} << 20, 1, false), b = numbers(std::size_t{1} << 21, 2, false);
  const device_bytes da(a.size() * 4), db((b.size() + 4096) * 4), dd((std::size_t{1} << 23) + 16384);
  const device_bytes scratch(static_cast<std::size_t>(sw::device_scratch::product_bytes));
  cu::context ctx = device::get().ctx;
  const auto run = [&](const cu::matmul_shape& s, bool allowed, bool measured) {
    cu::matmul_plans plans;
    plans.set_precision(allowed ? sw::fp32_precision::tf32x3 : sw::fp32_precision::ieee);
    if (measured) plans.begin_search({sw::product_choice::measured, 10, false, ""}, ctx.stream);
    const float alpha = 1, beta = 0;
    std::vector<float> d(static_cast<std::size_t>(s.ld_d * s.columns)), with_gaps((b.size() + 4096), 0.5F);
    std::copy(b.begin(), b.end(), with_gaps.begin());
    for (int time = 0; time < 2; ++time) {  // a search overwrites the factors
      da.upload(a.data());
      db.upload(with_gaps.data());
      cu::check(cudaMemset(dd.data(), 0, d.size() * 4), "cudaMemset");
      plans.run(s, &alpha, da.data(), db.data(), &beta, dd.data(), scratch.data(), ctx, &split_product::candidate);
      device::get().sync();
      if (measured && time == 0) {
        const sw::product_report r = plans.end_search();
        CHECK(r.shapes == 1);
        CHECK(r.measured + r.remembered == 1);
      }
    }
    cu::check(cudaMemcpy(d.data(), dd.data(), d.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return d;
  };
  const auto by_float = run(large, false, false), by_parts = run(large, true, false), searched = run(large, true, true);
  const auto most = [&](const std::vector<float>& x) {
    double m = 0;
    for (std::size_t i = 0; i < by_float.size(); ++i) m = std::max(m, static_cast<double>(std::fabs(by_float[i] - x[i])));
    return m;
  };
  CHECK(most(by_parts) > 0);
  CHECK(most(by_parts) < 1e-4);  // of sums of 1,024 products below 1; factors rounded to TF32 are off by 1e-2
  CHECK(most(searched) > 0);
  CHECK(most(searched) < 1e-4);
  CHECK(searched == run(large, true, true));
  CHECK(run(refused, true, false) == run(refused, false, false));
}

// --- steps ------------------------------------------------------------------------------------------------------------------

namespace split_steps {

namespace sw = shardwise;
using namespace test;

template <int N>
struct dp : sw::axis<N> {};
using mesh = sw::mesh<dp<1>>;
constexpr int width = 1024, rows = 1024;  // where three of TF32 take half the time of float
template <class Backend>
using step = sw::train_step<relu_stack<2, width>::template model, sum_task<float, rows, width, sw::on<dp<1>, sw::shard<0>>>,
                            sw::plan<sw::data_parallel<dp<1>>>, mesh, sw::adam<>, sw::pipeline<>, float, Backend>;

template <class Backend>
std::vector<float> losses(sw::product_choice choice) {
  std::vector<float> all;
  sw::launch_cuda<mesh>([&](auto& rank) {
    sw::executor<step<Backend>, std::remove_reference_t<decltype(rank)>> ex(
        rank, sw::device_options{sw::device_execution::graph, sw::executor_checks::none, {choice, 10, false, ""}});
    std::vector<float> x(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101 - 0.3F;
    ex.initialise(3);
    ex.set_input(0, x);
    sw::step_env env;
    env.lr = 1e-3;
    for (env.step = 1; env.step <= 3; ++env.step) {
      ex.run(env);
      all.push_back(ex.loss());
    }
  });
  return all;
}

}  // namespace split_steps

TEST_CASE("a step whose products may be three of TF32 has the losses of float, and the same bits again") {
  NEEDS_GPU();
  if (!is_there()) return;
  using namespace split_steps;
  const auto exact = losses<sw::cuda_backend>(sw::product_choice::deterministic);
  for (const sw::product_choice choice : {sw::product_choice::deterministic, sw::product_choice::measured}) {
    const auto by_parts = losses<sw::cuda_backend_tf32x3>(choice);
    CHECK(by_parts != exact);
    CHECK(std::fabs(by_parts[0] - exact[0]) <= 1e-5F * std::fabs(exact[0]));
    for (const float loss : by_parts) CHECK(std::isfinite(loss));
    CHECK(losses<sw::cuda_backend_tf32x3>(choice) == by_parts);
  }
}
