// SPDX-License-Identifier: Apache-2.0
// Hundreds of parameters of awkward sizes updated in few launches get what the host's optimizer gives each; gradients of two bytes are
// read as floats, to the bits of the update of their casts.
#include <doctest/doctest.h>

#include <cmath>
#include "device.hpp"
#include <shardwise/runtime/cuda/device/env.cuh>
#include <shardwise/runtime/cuda/kernels.cuh>
#include <shardwise/runtime/host/kernels.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;

// What parameters, gradients and states have become, one after the other. T: of gradients.
template <class T, sw::op_code Op>
std::vector<sw::computed_in<T>> updated(bool clipped, std::int64_t options, double* from_host) {
  using C = sw::computed_in<T>;
  const bool largest = (options & sw::keeps_largest) != 0;
  const int count = 300, arrays = largest ? 5 : 4;
  std::vector<sw::runtime::call> calls(count);
  std::vector<std::size_t> at(count);
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t n = i % 17 == 3 ? 0 : i % 10 == 9 ? 9000 + i : 1 + i * i % 700;
    for (int k : {0, 1, 2, 3, 4, sw::runtime::result}) {
      auto& l = calls[static_cast<std::size_t>(i)].l[k];
      l.rank = 1;
      l.ext[0] = l.global[0] = n;
      l.make_dense();
    }
    at[static_cast<std::size_t>(i)] = total;
    total += static_cast<std::size_t>(n) + static_cast<std::size_t>(i % 3);  // not all are aligned
  }
  const std::size_t span = total + 8;
  std::vector<C> host(span * arrays + 1);
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<C>(std::abs(std::sin(static_cast<double>(i) * 0.7)) + 0.1);
  std::vector<T> gradients(span);
  for (std::size_t i = 0; i < span; ++i) {  // that bf16 has, and f16
    gradients[i] = static_cast<T>(static_cast<C>(static_cast<sw::bf16>(static_cast<float>(host[span + i]))));
    host[span + i] = static_cast<C>(gradients[i]);
  }
  C* device = nullptr;
  T* low = nullptr;
  cu::check(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(C)), "cudaMalloc");
  cu::check(cudaMalloc(reinterpret_cast<void**>(&low), span * sizeof(T)), "cudaMalloc");
  cu::check(cudaMemcpy(device, host.data(), host.size() * sizeof(C), cudaMemcpyHostToDevice), "cudaMemcpy");
  cu::check(cudaMemcpy(low, gradients.data(), span * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  sw::runtime::step_env env;
  env.step = 3;
  env.lr = 0.01;
  env.momentum = 0.9;
  env.weight_decay = 0.1;
  env.dampening = 0.3;
  env.clip_value = 0.5;
  auto& d = device_test::device::get();
  cu::set_env(env, d.env, d.ctx.stream);
  const auto bind = [&](C* base, void* g, std::size_t size) {
    for (int i = 0; i < count; ++i) {
      auto& c = calls[static_cast<std::size_t>(i)];
      c.inputs = (largest ? 5 : sw::is_adam(Op) || Op == sw::op_code::muon ? 4 : 3) + (clipped ? 1 : 0);
      c.a.v[0] = clipped ? 1 : 0;
      c.a.v[1] = 1;
      c.a.v[4] = options;
      c.f = i % 2;
      for (int k = 0; k < arrays; ++k) c.p[k] = base + span * static_cast<std::size_t>(k) + at[static_cast<std::size_t>(i)];
      c.p[1] = static_cast<char*>(g) + at[static_cast<std::size_t>(i)] * size;
      if (clipped) c.p[c.inputs - 1] = base + span * arrays;
      c.type[0] = sw::dtype_v<C>;
      c.type[1] = sw::dtype_v<T>;
    }
  };
  bind(device, low, sizeof(T));
  cu::kernel<Op>::template run_all<T>(calls.data(), calls.size(), d.ctx);
  std::vector<C> got(host.size());
  d.sync();
  cu::check(cudaMemcpy(got.data(), device, got.size() * sizeof(C), cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(device);
  cudaFree(low);
  bind(host.data(), host.data() + span, sizeof(C));
  for (const auto& c : calls) {
    sw::host::operands<C> q;
    for (int k = 0; k < c.inputs; ++k) q.p[k] = static_cast<C*>(c.p[k]);
    sw::host::kernel<Op>::template run<C>(c, q, env);
  }
  *from_host = 0;
  for (std::size_t i = 0; i < host.size(); ++i)
    *from_host = std::max(*from_host, std::abs(static_cast<double>(got[i]) - static_cast<double>(host[i])));
  return got;
}

template <sw::op_code Op>
void check(bool clipped, std::int64_t options = 0) {
  CAPTURE(clipped);
  CAPTURE(options);
  double apart = 0;
  updated<double, Op>(clipped, options, &apart);
  CHECK(apart <= 1e-14);
  const auto wide = updated<float, Op>(clipped, options, &apart);
  CHECK(apart <= 1e-6);
  CHECK((updated<sw::bf16, Op>(clipped, options, &apart) == wide));
  CHECK(apart <= 1e-6);
  updated<sw::f16, Op>(clipped, options, &apart);
  CHECK(apart <= 1e-6);
}

TEST_CASE("many parameters in few launches are updated as one by one") {
  NEEDS_GPU();
  for (const bool clipped : {false, true}) {
    check<sw::op_code::sgd>(clipped);
    check<sw::op_code::adam>(clipped);
    for (const std::int64_t options : {std::int64_t{sw::dampens}, std::int64_t{sw::clips_values | sw::maximises}})
      check<sw::op_code::sgd_with>(clipped, options);
    for (const std::int64_t options :
         {std::int64_t{sw::keeps_largest}, std::int64_t{sw::maximises}, std::int64_t{sw::keeps_largest | sw::clips_values}})
      check<sw::op_code::adam_with>(clipped, options);
    for (const std::int64_t options : {std::int64_t{0}, std::int64_t{sw::clips_values | sw::maximises}})
      check<sw::op_code::lion>(clipped, options), check<sw::op_code::muon>(clipped, options);
  }
}

TEST_CASE("parameters of two bytes are refused") {
  NEEDS_GPU();
  sw::runtime::call c;
  c.type[0] = c.type[1] = sw::dtype::bf16;
  CHECK_THROWS_AS(cu::kernel<sw::op_code::adam>::run<sw::bf16>(c, device_test::device::get().ctx), std::logic_error);
}

}  // namespace
