// SPDX-License-Identifier: Apache-2.0
// What memory fully_shard promises to a language model, by a formula of the model's numbers alone, and the step that is held to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fsdp.hpp>

namespace test::fsdp {

struct twelve_layers : transformer_sizes {
  static constexpr int vocabulary = 256;
  static constexpr int width = 64;
  static constexpr int layers = 12;
};

// 12 layers of width 64 with Adam in float, on Ranks ranks that split 8 rows.
inline constexpr int deep_batch = 8;
template <int Ranks, class... Entries>
using deep = sw::train_step<transformer<twelve_layers>::template model, language_task<twelve_layers, deep_batch, dp<Ranks>>,
                            sw::plan<Entries...>, sw::mesh<dp<Ranks>>, sw::adam<>, sw::pipeline<>>;
// A group for each layer, and one of the rest.
template <int Ranks>
using deep_in_shards = deep<Ranks, sw::fully_shard<dp<Ranks>>, sw::at<"layers.*", sw::fully_shard<dp<Ranks>>>>;

// Bytes of a rank: elements are floats, Adam keeps two moments. Law:
//   promised = parts(4) + gathered(2) + rest + layer + activations
//   parts(k) = k elements / ranks: parameters, two moments, gradients, all in shards
// and beside them what is whole: two gathered layers, the group of the rest throughout, and a layer's gradients before they are
// scattered. Not all of it is there at a time: a layer's share of the gradients comes when its activations go, and a second layer is
// gathered only by prefetching. So a program that does not prefetch is close to
//   at_once = parts(3) + gathered(1) + 2 rest + layer + max(activations, parts(1) + work)
// where the rest's gradients count as well: the tied table's begins with the loss, and waits for what the embedding adds at the end.
template <class Sizes, int Batch, int Ranks>
struct memory_formula {
  static constexpr std::int64_t width = Sizes::width, float_bytes = 4;
  static constexpr std::int64_t tokens = (Batch + Ranks - 1) / Ranks * Sizes::time;

  // Four projections without bias, two of four times the width with bias, two norms; tables and the last norm.
  static constexpr std::int64_t layer = float_bytes * (12 * width * width + 9 * width);
  static constexpr std::int64_t rest = float_bytes * (Sizes::vocabulary + Sizes::time + 2) * width;
  static constexpr std::int64_t all = Sizes::layers * layer + rest;
  static constexpr std::int64_t parts(int k) { return k * all / Ranks; }
  static constexpr std::int64_t gathered(int layers) { return Ranks > 1 ? layers * layer : 0; }  // one rank gathers nothing

  // What a layer leaves for its adjoint, of a token: two norms' results, q, k, v, what attention gives, two sums with what came in, and
  // the hidden layer before and after its function; probabilities; mean and deviation of two norms.
  static constexpr std::int64_t kept = (2 + 3 + 1 + 2 + 2 * 4) * width + Sizes::heads * Sizes::time + 4;
  // What the loss or a layer's adjoint works on: the logits and their cotangent, or the hidden layer's and the sum's.
  static constexpr std::int64_t work = float_bytes * tokens * std::max(2 * Sizes::vocabulary, (2 * 4 + 1) * Sizes::width);
  static constexpr std::int64_t activations = float_bytes * tokens * (Sizes::layers * kept + width + 2) + work;

  static constexpr std::int64_t promised = parts(4) + gathered(2) + rest + layer + activations;
  static constexpr std::int64_t at_once = parts(3) + gathered(1) + 2 * rest + layer + std::max(activations, parts(1) + work);
};
template <int Ranks>
using deep_formula = memory_formula<twelve_layers, deep_batch, Ranks>;

}  // namespace test::fsdp
