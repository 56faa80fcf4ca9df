// SPDX-License-Identifier: Apache-2.0
// Times attention of bfloat16 on a GPU, forward and adjoint, by cuDNN (ordered and not) and by the library's own kernels: GPT-2's shape
// (batch 16, 12 heads, 1024 x 64, causal, times before heads), 12 layers captured in one graph, as a step runs them.
// Usage: attention_cudnn [rounds]; medians for one layer, and the largest difference between the two.
#include "gpt2_attention.hpp"

#include <string>

int main(int argc, char** argv) {
  using namespace gpt2_attention;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  if (rounds < 1) return std::puts("usage: attention_cudnn [rounds], at least 1"), 1;
  if (!cu::used_attention_library()) return std::puts("no library is registered: link shardwise::cudnn"), 1;
  const tensors t;
  print_differences(t, way::tensor_cores, way::library);
  const std::string name = cu::used_attention_library()->name();
  print_times((name + ", ordered").c_str(), t, way::library, rounds);
  cu::order_attention_adjoints(false);
  print_times((name + ", not ordered").c_str(), t, way::library, rounds);
  cu::order_attention_adjoints(true);
  print_times("own kernels", t, way::tensor_cores, rounds);
  std::printf("%s", cu::attention_report().c_str());
}
