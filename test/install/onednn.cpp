// SPDX-License-Identifier: Apache-2.0
// A consumer of shardwise::onednn: linking it is all, and the program says that its convolutions run by it.
#include <cstdio>

#include <shardwise/runtime/host/convolution_library.hpp>

int main() {
  const shardwise::runtime::convolution_library* const library = shardwise::runtime::used_convolution_library();
  if (!library) return 1;
  std::printf("%s\n", library->name().c_str());
}
