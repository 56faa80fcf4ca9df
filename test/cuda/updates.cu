// SPDX-License-Identifier: Apache-2.0
// Hundreds of parameters of awkward sizes updated in few launches get what the host's optimizer gives each.
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

template <class T, sw::op_code Op>
void check() {
  const int count = 300, arrays = 4;
  std::vector<sw::runtime::call> calls(count);
  std::vector<std::size_t> at(count);
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t n = i % 17 == 3 ? 0 : i % 10 == 9 ? 9000 + i : 1 + i * i % 700;
    for (int k : {0, 1, 2, 3, sw::runtime::result}) {
      auto& l = calls[static_cast<std::size_t>(i)].l[k];
      l.rank = 1;
      l.ext[0] = l.global[0] = n;
      l.make_dense();
    }
    at[static_cast<std::size_t>(i)] = total;
    total += static_cast<std::size_t>(n) + static_cast<std::size_t>(i % 3);  // not all are aligned
  }
  const std::size_t span = total + 8;
  std::vector<T> host(span * arrays);
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<T>(std::abs(std::sin(static_cast<double>(i) * 0.7)) + 0.1);
  T* device = nullptr;
  cu::check(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T)), "cudaMalloc");
  cu::check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  sw::runtime::step_env env;
  env.step = 3;
  env.lr = 0.01;
  env.momentum = 0.9;
  env.weight_decay = 0.1;
  auto& d = device_test::device::get();
  cu::set_env(env, d.env, d.ctx.stream);
  const auto bind = [&](T* base) {
    for (int i = 0; i < count; ++i) {
      auto& c = calls[static_cast<std::size_t>(i)];
      c.inputs = Op == sw::op_code::adam ? 4 : 3;
      c.a.v[1] = 1;
      c.f = i % 2;
      for (int k = 0; k < arrays; ++k) c.p[k] = base + span * static_cast<std::size_t>(k) + at[static_cast<std::size_t>(i)];
    }
  };
  bind(device);
  cu::kernel<Op>::template run_all<T>(calls.data(), calls.size(), d.ctx);
  std::vector<T> got(host.size());
  d.sync();
  cu::check(cudaMemcpy(got.data(), device, got.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  cudaFree(device);
  bind(host.data());
  for (const auto& c : calls) {
    sw::host::operands<T> q;
    for (int k = 0; k < arrays; ++k) q.p[k] = static_cast<T*>(c.p[k]);
    sw::host::kernel<Op>::template run<T>(c, q, env);
  }
  double worst = 0;
  for (std::size_t i = 0; i < host.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(host[i])));
  CHECK(worst <= (sizeof(T) == 8 ? 1e-14 : 1e-6));
}

TEST_CASE("many parameters in few launches are updated as one by one") {
  NEEDS_GPU();
  check<float, sw::op_code::sgd>();
  check<double, sw::op_code::sgd>();
  check<float, sw::op_code::adam>();
  check<double, sw::op_code::adam>();
}

}  // namespace
