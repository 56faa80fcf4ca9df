// SPDX-License-Identifier: Apache-2.0
// Attention of two-byte elements by the library's own kernels on a GPU is the host's in float, and equal from run to run.
#include "attention_blocks.hpp"

namespace {

using namespace attention_test;

template <class T>
void check_own(const problem& p) {
  INFO(text_of(p));
  const operands<T> of(p);
  const blocks<T> on_device(p, of);
  cu::stream stream;
  const auto run = [&] {
    on_device.forget();
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto x = on_device.call();
    kernels::attend(x, sw::host::attention_block<T>(on_device.out(), x.a, x.heads, x.queries, x.value_size), on_device.lse(),
                    stream.get());
    on_device.multiply(stream.get());
    kernels::attend_back(x, on_device.gradients(), stream.get());
    return on_device.results();
  };
  const outcome first = run();
  check_alike(first, on_host(p, of));
  CHECK(are_equal(run(), first));
}

TEST_CASE("attention of bfloat16 and float16 by own kernels is the host's in float") {
  if (!has_gpu()) return;
  for (const problem& p : problems()) check_own<sw::bfloat16>(p);
  check_own<sw::float16>(problems()[3]);
  check_own<sw::float16>(problems()[6]);
  check_own<sw::bfloat16>({{1, 2, 2, 40, 40, 20, 20}, 1});  // what no library takes
  check_own<sw::bfloat16>({{1, 2, 2, 90, 9, 16, 16}, 0, true, 3});
}

}  // namespace
