// SPDX-License-Identifier: Apache-2.0
// The model of model.hpp for generating: with a key/value cache, and what gives its logits.
#pragma once

#include <shardwise/module/kv_cache.hpp>

#include "model.hpp"

namespace train_text {

// For a batch of another size; called with (bytes, position), it keeps keys and values of C::time positions. Parameters have the names
// that they have in training.
template <class C, int Batch>
struct decoding : config<Batch, C::time, C::width, C::heads, C::layers, C::bytes> {
  static constexpr bool cached = true;
  using cache = sw::kv_cache<Batch, C::time, C::heads, C::head>;
  static constexpr auto position_ids(const auto& bytes, const auto& position) { return sw::position_ids(bytes, position); }
};

// The logits of whole windows, and of 1 to C::time bytes that follow those in the cache.
template <class C>
struct predict {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<C::batch, C::time>>>;
  constexpr auto operator()(const auto& model, const auto& bytes) const { return model(bytes); }
};
template <class C>
struct predict_next {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<C::batch, sw::dyn<C::time>>>,
                            sw::input_tensor<std::int32_t, sw::shape<C::batch>>>;
  constexpr auto operator()(const auto& model, const auto& bytes, const auto& at) const { return model(bytes, at); }
};

}  // namespace train_text
