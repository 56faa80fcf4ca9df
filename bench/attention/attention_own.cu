// SPDX-License-Identifier: Apache-2.0
// Times attention of bfloat16 on a GPU by the library's own kernels, forward and adjoint, with tensor cores and without: GPT-2's shape
// (batch 16, 12 heads, 1024 x 64) and one of heads of 128 (batch 4, 16 heads, 2048 x 128); causal, times before heads, 12 layers
// captured in one graph, as a step runs them.
// Usage: attention_own [rounds]; medians for one layer, and the largest difference between the two.
#include "gpt2_attention.hpp"

int main(int argc, char** argv) {
  using namespace gpt2_attention;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  if (rounds < 1) return std::puts("usage: attention_own [rounds], at least 1"), 1;
  const sw::attention_extents large{4, 16, 16, 2048, 2048, 128, 128};
  for (const sw::attention_extents& e : {gpt2, large}) {
    const tensors t(e);
    std::printf("batch %d, %d heads, %d x %d, causal\n", static_cast<int>(e.batch), static_cast<int>(e.heads),
                static_cast<int>(e.queries), static_cast<int>(e.size));
    print_differences(t, way::plain, way::tensor_cores);
    print_times("tensor cores", t, way::tensor_cores, rounds);
    print_times("without tensor cores", t, way::plain, rounds / 8 + 1);
  }
}
