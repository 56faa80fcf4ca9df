// SPDX-License-Identifier: Apache-2.0
// mixed in whole steps: memory of a language model in shards, gathers ahead of their use, and what texts say of element types.
#include <doctest/doctest.h>

#include <string>

#include <fsdp_memory.hpp>
#include <shardwise/io/dump.hpp>
#include <shardwise/io/explain.hpp>
#include <shardwise/pass/communication/prefetch.hpp>

namespace {

using namespace test;
using namespace test::fsdp;
using sw::bf16;
using sw::mixed;
using sw::op_code;
using sw::transition;

// --- memory ---------------------------------------------------------------------------------------------------------------

template <class... E>
using shards = deep<4, sw::fully_shard<dp<4>>, sw::at<"layers.*", sw::fully_shard<dp<4>>>, E...>;
template <class Step>
constexpr std::int64_t use(sw::memory_kind k) {
  return Step::memory_use::value.kind[static_cast<int>(k)];
}
// Scratch is the host's: its kernels widen what they read.
template <class Step>
constexpr std::int64_t without_scratch = Step::peak_bytes - use<Step>(sw::memory_kind::workspace);

TEST_CASE("mixed: a language model in shards") {
  using wide = shards<>;
  using low = shards<mixed<bf16>>;
  const auto sent = [](transition t, bool in_bf16) {
    return in_bf16 ? low::comm_bytes_of<dp<4>>(t) : wide::comm_bytes_of<dp<4>>(t);
  };
  CHECK(2 * sent(transition::all_gather, true) == sent(transition::all_gather, false));
  CHECK(sent(transition::reduce_scatter, true) == sent(transition::reduce_scatter, false));
  CHECK(use<low>(sw::memory_kind::optimizer) == use<wide>(sw::memory_kind::optimizer));
  CHECK(2 * use<low>(sw::memory_kind::activations) < use<wide>(sw::memory_kind::activations));
  CHECK(20 * without_scratch<low> < 19 * without_scratch<wide>);
}

// --- gathers ahead of their use ---------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return sw::tanh(net(x)); }
};
template <class Bound = sw::unbound>
struct blocks : sw::module<blocks<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<3, block>, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp<2>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class Pipeline, class... E>
using step = sw::train_step<blocks, task, sw::plan<sw::at<"layers.*", sw::fully_shard<dp<2>>>, E...>, sw::mesh<dp<2>>,
                            sw::sgd<>, Pipeline>;
// "g" a batch of gathers, "p" a product of the forward pass, in order.
template <class Step>
std::string order() {
  std::string r;
  const auto& g = Step::program;
  for (int i = 0; i < g.node_count && r.size() < 6; ++i) {
    if (sw::detail::transition_at(g, i) == transition::all_gather && sw::batch_begin(g, i) == i) r += 'g';
    if (g.nodes[i].op == op_code::einsum) r += 'p';
  }
  return r;
}
TEST_CASE("mixed: shards are cast and gathered while the layer before computes") {
  CHECK(order<step<sw::pipeline<>, mixed<bf16>>>() == "gpgpgp");
  CHECK(order<step<sw::pipeline<sw::prefetch<1>>>>() == "ggpgpp");
  CHECK(order<step<sw::pipeline<sw::prefetch<1>>, mixed<bf16>>>() == "ggpgpp");
}

// --- texts ------------------------------------------------------------------------------------------------------------------

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
TEST_CASE("mixed: texts say which type is cast to which") {
  using low = step<sw::pipeline<>, mixed<bf16>>;
  const std::string text = sw::to_text(low::program);
  CHECK(says(text, "%cast = cast(%input) bfloat16(4, 8) [shard<0>]"));
  CHECK(says(text, "= cast(%param) bfloat16(8, 8) [shard<0>]  # layers.0.net\n"));
  CHECK(says(text, "= redistribute(%cast_1) bfloat16(8, 8) [reduced]  # layers.0\n"));
  CHECK(says(text, ") float(8, 8) [partial]  # layers.2.net\n"));
  CHECK_FALSE(says(sw::to_text(step<sw::pipeline<>>::program), "float"));
  for (const auto format : {sw::text_format::graphviz, sw::text_format::mermaid})
    CHECK(says(sw::to_text(low::program, format), "bfloat16(4, 8)"));
  CHECK(says(sw::explain<low>(), "cast"));
}

}  // namespace
