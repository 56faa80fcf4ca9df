// SPDX-License-Identifier: Apache-2.0
// Trains the model of model.hpp on the bytes of files for 200 steps, on one GPU, and prints the mean loss of the last fifty: what one
// element type learns beside another one on the same data. Windows of the text are drawn from a seed; the learning rate rises for 25
// steps and stays. Ends with 1 if the mean is not below half of the first step's loss, or if a second run's losses differ in a bit.
// usage: bench_gpt2_losses_..._cuda [--twice] FILE...
#include <shardwise/cuda.cuh>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/operations/attention/device_elements.cuh>

#ifndef GPT2_BATCH
#define GPT2_BATCH 4
#endif
#define GPT2_VOCABULARY 256  // bytes
#include "model.hpp"

namespace {

namespace sw = shardwise;
using step = gpt2::step<sw::GPT2_BACKEND>;
SHARDWISE_DEVICE_ATTENTION(gpt2::activation)
using gpt2::size;
constexpr int steps = 200, judged = 50, warm_up = 25;
constexpr double highest_rate = 3e-4;

std::string text_of(int count, char** paths) {
  std::string all;
  for (int k = 0; k < count; ++k) {
    std::ifstream file(paths[k], std::ios::binary);
    if (!file) throw std::runtime_error(std::string("losses: cannot read ") + paths[k]);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  if (all.size() < 16 * size::time)
    throw std::runtime_error("losses: " + std::to_string(all.size()) + " bytes of text are given; give " +
                             std::to_string(16 * size::time) + " or more");
  return all;
}

std::vector<float> train(auto& rank, const std::string& text) {
  sw::executor<step, std::remove_reference_t<decltype(rank)>> ex(rank);
  ex.initialise(1);
  sw::step_env env;
  env.beta2 = 0.95;
  env.weight_decay = 0.1;
  env.max_norm = 1;
  std::vector<float> losses;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(size::batch) * size::time), next(ids.size());
  std::uint32_t seed = 12345;
  for (int k = 1; k <= steps; ++k) {
    for (std::size_t row = 0; row < ids.size(); row += size::time) {
      seed = seed * 1664525U + 1013904223U;
      const std::size_t at = (std::uint64_t{seed} * (text.size() - size::time - 1)) >> 32;
      for (std::size_t i = 0; i < size::time; ++i) {
        ids[row + i] = static_cast<unsigned char>(text[at + i]);
        next[row + i] = static_cast<unsigned char>(text[at + i + 1]);
      }
    }
    ex.set_input(0, ids);
    ex.set_input(1, next);
    env.step = k;
    env.lr = highest_rate * (k < warm_up ? static_cast<double>(k) / warm_up : 1.0);
    ex.run(env);
    losses.push_back(static_cast<float>(ex.loss()));
  }
  return losses;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (sw::cuda::device_count() == 0) {
      std::printf("no GPU found: nothing is trained\n");
      return 0;
    }
    const bool twice = argc > 1 && std::strcmp(argv[1], "--twice") == 0;
    const std::string text = text_of(argc - 1 - twice, argv + 1 + twice);
    std::vector<float> losses, again;
    sw::launch_cuda<gpt2::mesh>([&](auto& rank) {
      losses = train(rank, text);
      if (twice) again = train(rank, text);
    });
    double mean = 0;
    for (int k = steps - judged; k < steps; ++k) mean += static_cast<double>(losses[static_cast<std::size_t>(k)]) / judged;
    const bool equal = !twice || std::memcmp(losses.data(), again.data(), losses.size() * sizeof(float)) == 0;
    std::printf(
        "{\"what\": \"gpt2_losses\", \"name\": \"" GPT2_NAME
        "\", \"batch\": %d, \"text_bytes\": %zu, \"first_loss\": %.6f, \"mean_of_last_%d\": %.6f, \"runs_equal\": %s}\n",
        size::batch, text.size(), static_cast<double>(losses[0]), judged, mean,
        !twice  ? "null"
        : equal ? "true"
                : "false");
    for (int k = 1; k <= steps; k *= 2)
      std::printf("step %d: %.7f\n", k, static_cast<double>(losses[static_cast<std::size_t>(k - 1)]));
    return equal && std::isfinite(mean) && mean < losses[0] / 2 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
