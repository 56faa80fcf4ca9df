// SPDX-License-Identifier: Apache-2.0
// Greedy decoding with a key/value cache, beside the whole forward pass over the text so far.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <shardwise/more_functions.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
inline constexpr int positions = 24, heads = 2, size = 8, width = heads * size, words = 11;

template <bool Cached>
struct decoder_of {
  template <class Bound = sw::unbound>
  struct block : sw::module<block<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::rms_norm_module<width>, norm), (sw::linear<width, width>, wq),
                      (sw::linear<width, width>, wk), (sw::linear<width, width>, wv), (sw::linear<width, width>, wo),
                      (std::conditional_t<Cached, sw::kv_cache<1, positions, heads, size>, sw::absent>, cache));
    static constexpr auto split(const auto& x) { return sw::unflatten<-1, heads, size>(x); }
    constexpr auto forward(const auto& x, const auto& position) const {
      constexpr sw::rotary_options turned{.layout = sw::head_layout::bthd};
      constexpr sw::attention_options causal{.causal = true, .layout = sw::head_layout::bthd};
      const auto n = norm(x);
      const auto q = sw::rotary_embedding<turned>(split(wq(n)), position),
                 k = sw::rotary_embedding<turned>(split(wk(n)), position);
      if constexpr (Cached) return x + wo(sw::flatten<2, 3>(cache(q, k, split(wv(n)), position)));
      else return x + wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<causal>(q, k, split(wv(n)))));
    }
  };
  template <class Bound = sw::unbound>
  struct decoder : sw::module<decoder<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::embedding_table<words, width>, tokens), (sw::repeat<2, block>, layers),
                      (sw::linear<width, words>, head));
    constexpr auto forward(const auto& ids, const auto& position) const { return head(layers(tokens(ids), position)); }
  };
};
struct logits {  // of so many tokens, of which the first stands at a position
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<1, sw::dyn<positions>>>,
                            sw::input_tensor<std::int32_t, sw::shape<1>>>;
  constexpr auto operator()(const auto& model, const auto& ids, const auto& position) const { return model(ids, position); }
};
template <bool Cached>
using program = sw::executor<sw::forward_step<decoder_of<Cached>::template decoder, logits, sw::plan<>, mesh>>;

std::int32_t next_token(auto& run, const std::vector<std::int32_t>& ids, int position) {
  run.resize(ids.size());
  run.set_input(0, ids);
  run.set_input(1, std::vector<std::int32_t>{position});
  run.run({});
  const auto last = run.output().subspan((ids.size() - 1) * words, words);
  return static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
}

int main() {
  sw::launch<mesh>([](auto& rank) {
    program<true> cached(rank);
    program<false> whole(rank);
    cached.initialise(/*seed*/ 1);
    whole.initialise(/*seed*/ 1);  // by paths: the same weights
    std::vector<std::int32_t> text{3, 1, 4, 1, 5};
    std::int32_t token = next_token(cached, text, 0);  // the prompt at once
    while (static_cast<int>(text.size()) < positions) {
      check(token == next_token(whole, text, 0), "a token is that of the whole pass");
      text.push_back(token);
      if (static_cast<int>(text.size()) < positions) token = next_token(cached, {token}, static_cast<int>(text.size()) - 1);
    }
  });
}
