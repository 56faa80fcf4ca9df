// SPDX-License-Identifier: Apache-2.0
// Casts of hundreds of tensors in few launches, of awkward sizes and alignments, some strided, have the host's bits and touch nothing else;
// and a step with casts and gradients of two bytes trains as on the host.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <place.hpp>
#include <vector>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/join_casts.hpp>
#include <shardwise/operations/pointwise/device_cast.cuh>

#include "device.hpp"

namespace device_casts {

namespace sw = shardwise;
namespace cu = shardwise::cuda;

template <class From, class To>
void check() {
  const int count = 600;  // more than a launch takes
  std::vector<sw::runtime::call> calls(count);
  std::vector<std::size_t> at(count);
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    auto& c = calls[static_cast<std::size_t>(i)];
    const std::int64_t n = i % 17 == 3 ? 0 : i % 50 == 9 ? 20000 + i : 1 + i * i % 700;
    for (int k : {0, sw::runtime::result}) {
      sw::runtime::layout& l = c.l[k];
      l.rank = 2;
      l.ext[0] = l.global[0] = i % 4 == 1 ? 3 : 1;
      l.ext[1] = l.global[1] = n;
      l.make_dense();
    }
    if (i % 8 == 1) {  // columns
      c.l[0].str[0] = 1;
      c.l[0].str[1] = 3;
    }
    c.inputs = c.all_inputs = 1;
    at[static_cast<std::size_t>(i)] = total;
    total += static_cast<std::size_t>(c.l[0].numel()) + static_cast<std::size_t>(i % 3);  // not all are aligned
  }
  std::vector<From> x(total + 8);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] =
        i % 97 == 5 ? static_cast<From>(NAN) : static_cast<From>(std::sin(static_cast<double>(i)) * (i % 11 == 3 ? 1e6 : 1));
  std::vector<std::uint16_t> want(total + 8, 0x1234), got(want);
  From* from = nullptr;
  To* to = nullptr;
  cu::check(cudaMalloc(reinterpret_cast<void**>(&from), x.size() * sizeof(From)), "cudaMalloc");
  cu::check(cudaMalloc(reinterpret_cast<void**>(&to), got.size() * sizeof(To)), "cudaMalloc");
  cu::check(cudaMemcpy(from, x.data(), x.size() * sizeof(From), cudaMemcpyHostToDevice), "cudaMemcpy");
  cu::check(cudaMemcpy(to, got.data(), got.size() * sizeof(To), cudaMemcpyHostToDevice), "cudaMemcpy");
  for (int i = 0; i < count; ++i) {
    auto& c = calls[static_cast<std::size_t>(i)];
    const std::size_t o = at[static_cast<std::size_t>(i)];
    c.p[0] = from + o;
    c.p[sw::runtime::result] = to + o;
    for (std::int64_t r = 0; r < c.l[0].ext[0]; ++r)
      for (std::int64_t j = 0; j < c.l[0].ext[1]; ++j)
        want[o + static_cast<std::size_t>(r * c.l[0].ext[1] + j)] =
            To(static_cast<float>(x[o + static_cast<std::size_t>(r * c.l[0].str[0] + j * c.l[0].str[1])])).bits;
  }
  auto& d = device_test::device::get();
  cu::cast_all<From, To>(calls.data(), calls.size(), d.ctx);
  d.sync();
  cu::check(cudaMemcpy(got.data(), to, got.size() * sizeof(To), cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(from);
  cudaFree(to);
  const auto is_nan = [](std::uint16_t bits) {
    To v{};
    v.bits = bits;
    return !(static_cast<float>(v) == static_cast<float>(v));
  };
  int wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == want[i] || (is_nan(got[i]) && is_nan(want[i])) ? 0 : 1;
  CHECK(wrong == 0);
}
TEST_CASE("many casts in few launches have the host's bits") {
  NEEDS_GPU();
  check<float, sw::bf16>();
  check<float, sw::f16>();
}

// --- a step -----------------------------------------------------------------------------------------------------------------

struct one : sw::axis<1> {};
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<40, 33>, up), (sw::layer_norm_module<33>, norm), (sw::linear<33, 7>, down));
  constexpr auto forward(const auto& x) const { return down(norm(sw::tanh(up(x)))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<24, 40>, sw::on<one, sw::shard<0>>>,
                            sw::input_tensor<std::int32_t, sw::shape<24>, sw::on<one, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& targets) const {
    return sw::cross_entropy(m(x), targets);
  }
};
template <class Backend, class Optimizer, class Pipeline>
using step = sw::train_step<net, task, sw::plan<sw::data_parallel<one>, sw::mixed<sw::bf16>>, sw::mesh<one>, Optimizer,
                            Pipeline, float, Backend>;

template <class Step, class Rank>
std::vector<float> trained(Rank& rank) {
  sw::executor<Step, Rank> ex(rank);
  ex.initialise(3);
  std::vector<float> x(24 * 40), all;
  std::vector<std::int32_t> targets(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(static_cast<double>(i) * 1.7));
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<std::int32_t>(i * 5 % 7);
  for (int s = 1; s <= 6; ++s) {
    ex.set_input(0, x);
    ex.set_input(1, targets);
    sw::step_env env;
    env.step = s;
    env.lr = 0.01;
    env.momentum = 0.9;
    env.weight_decay = 0.1;
    env.max_norm = 0.1;
    ex.run(env);
    all.push_back(ex.loss());
  }
  return all;
}
template <class Optimizer, class Pipeline>
std::vector<float> on_device() {
  std::vector<float> all;
  sw::launch_cuda<sw::mesh<one>>([&](auto& rank) { all = trained<step<sw::cuda_backend, Optimizer, Pipeline>>(rank); });
  return all;
}
template <class Optimizer>
void check_step() {
  using plain = sw::pipeline<>;
  using joined = sw::pipeline<sw::join_casts>;
  using fused = sw::pipeline<sw::fuse_kernels, sw::join_casts>;
  std::vector<float> host;
  sw::launch<sw::mesh<one>>([&](auto& rank) { host = trained<step<sw::host_backend, Optimizer, plain>>(rank); });
  const auto device = on_device<Optimizer, plain>();
  CHECK(on_device<Optimizer, joined>() == device);  // the same kernels on the same elements
  const auto together = on_device<Optimizer, fused>();
  CHECK(device.back() < device.front());
  for (std::size_t s = 0; s < host.size(); ++s) {
    CHECK(std::abs(device[s] - host[s]) < 0.02);  // of about 2: 8 bits of each value on the way
    CHECK(std::abs(together[s] - host[s]) < 0.02);
  }
}
TEST_CASE("a mixed step reads gradients of two bytes and casts all parameters at once, as on the host") {
  if (!test::place::has(1)) return;
  check_step<sw::clip_norm<sw::adamw<>>>();
  check_step<sw::clip_norm<sw::sgd<true>>>();
}

}  // namespace device_casts
