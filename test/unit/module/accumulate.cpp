// SPDX-License-Identifier: Apache-2.0
// accumulate in graphs: how often gradients are reduced and parameters gathered, what that sends, the order of nodes, and memory.
#include <doctest/doctest.h>

#include <accumulated.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>

namespace {

using namespace test::accumulated;
namespace sw = shardwise;
using sw::program_phase;
using sw::transition;
using test::fsdp::group_text;

using two = sw::mesh<dp<2>>;
using axes = batch_axes<dp<2>>;
using sharded = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>>>;
using kept = sw::plan<sw::fully_shard<dp<2>>, blocks<dp<2>, sw::reshard_after_forward<false>>>;

template <class Plan, int Rows = rows, class Pipeline = sw::pipeline<>>
using of_two = step<Plan, two, axes, Pipeline, Rows>;

template <class Step>
constexpr int collectives(transition kind) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += sw::detail::transition_at(Step::program, i) == kind ? 1 : 0;
  return n;
}

// --- one piece is the step without ------------------------------------------------------------------------------------

static_assert(of_two<with<replicated<2>, pieces<1>>>::program.node_count == of_two<replicated<2>>::program.node_count);
static_assert(of_two<with<replicated<2>, pieces<1>>>::peak_bytes == of_two<replicated<2>>::peak_bytes);

// --- collectives ------------------------------------------------------------------------------------------------------

// Data parallel: every gradient is reduced once, whatever the number of pieces.
template <int N>
constexpr bool reduces_once() {
  using plain = of_two<replicated<2>>;
  using accumulated = of_two<with<replicated<2>, pieces<N>>>;
  static_assert(collectives<accumulated>(transition::all_reduce) == plain::parameter_total + 1);  // and the loss
  static_assert(collectives<accumulated>(transition::all_reduce) == collectives<plain>(transition::all_reduce));
  static_assert(accumulated::template comm_bytes<dp<2>> == plain::template comm_bytes<dp<2>>);
  return true;
}
static_assert(reduces_once<2>() && reduces_once<4>());

TEST_CASE("accumulate: groups that free their parameters gather them twice for each piece, and reduce once") {
  using plain = of_two<sharded>;
  using accumulated = of_two<with<sharded, pieces<2>>>;
  CHECK(group_text<plain>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.1 8 of 1552 to 3104; layers.0 8 of 1552 to 3104;");
  CHECK(group_text<accumulated>(transition::all_gather) ==
        "forward: model 4 of 208 to 416; layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.1 8 of 1552 to 3104; layers.0 8 of 1552 to 3104;\n"
        "forward: layers.0 12 of 1608 to 3216; layers.1 12 of 1608 to 3216;\n"
        "backward: layers.1 8 of 1552 to 3104; layers.0 8 of 1552 to 3104;");
  CHECK(group_text<accumulated>(transition::reduce_scatter) == group_text<plain>(transition::reduce_scatter));
  constexpr auto gathers = transition::all_gather, scatters = transition::reduce_scatter;
  static_assert(plain::comm_bytes_of<dp<2>>(gathers) == (208 + 2 * 1608 + 2 * 1552) * 8);
  static_assert(accumulated::comm_bytes_of<dp<2>>(gathers) == (208 + 2 * (2 * 1608 + 2 * 1552)) * 8);
  static_assert(accumulated::comm_bytes_of<dp<2>>(scatters) == plain::comm_bytes_of<dp<2>>(scatters));
}

TEST_CASE("accumulate: groups that keep their parameters gather them once") {
  using plain = of_two<kept>;
  using accumulated = of_two<with<kept, pieces<4>>>;
  CHECK(group_text<accumulated>(transition::all_gather) == group_text<plain>(transition::all_gather));
  CHECK(group_text<accumulated>(transition::reduce_scatter) == group_text<plain>(transition::reduce_scatter));
  static_assert(accumulated::comm_bytes<dp<2>> == plain::comm_bytes<dp<2>>);
}

TEST_CASE(
    "accumulate: a checkpointed group is gathered no more often, and no pass takes the gathers of two pieces for one") {
  using checkpoints = sw::at<"layers.*", sw::checkpoint>;
  const auto gathers = []<class Step>(const Step*) {
    int n = 0;
    for (const auto& c : test::fsdp::groups_of(Step::program, transition::all_gather)) n += c.members > 1 ? 1 : 0;
    return n;
  };
  CHECK(gathers(static_cast<of_two<with<sharded, checkpoints, pieces<4>>>*>(nullptr)) == 1 + 4 * 4);
  CHECK(gathers(static_cast<of_two<with<sharded, pieces<4>>, rows, sw::pipeline<sw::merge_common>>*>(nullptr)) == 1 + 4 * 4);
}

// --- order ------------------------------------------------------------------------------------------------------------

// Phases of the nodes that read activations, by the products alone: forward and backward in turns.
template <class Step>
constexpr int turns() {
  constexpr int n = Step::program.node_count;
  sw::passes::phase_marks<std::remove_cvref_t<decltype(Step::program)>::node_capacity> m;
  sw::passes::mark_phases(m, Step::program);
  int changes = 0;
  program_phase last = program_phase::backward;
  for (int i = 0; i < n; ++i) {
    if (Step::program.nodes[i].op != sw::op_code::einsum) continue;
    const program_phase now = m.of(i) == program_phase::forward ? program_phase::forward : program_phase::backward;
    changes += now == program_phase::forward && last != now ? 1 : 0;
    last = now;
  }
  return changes;
}
static_assert(turns<of_two<replicated<2>>>() == 1);
static_assert(turns<of_two<with<replicated<2>, pieces<4>>>>() == 4);
static_assert(turns<of_two<with<sharded, pieces<2>>>>() == 2);

// --- memory -----------------------------------------------------------------------------------------------------------

constexpr std::int64_t in_arena(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

// What a rank stores of a program's inputs, and of one gradient for each parameter as it is used: whole, unless it is split over tp.
template <class Step>
constexpr std::int64_t input_bytes() {
  constexpr int origin[sw::max_axes]{};
  std::int64_t total = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (Step::program.nodes[i].op == sw::op_code::input)
      total += in_arena(sw::local_numel(Step::program.spec_of(i), origin) *
                        static_cast<std::int64_t>(size_of(Step::program.spec_of(i).type)));
  return total;
}
// And the largest of them once more.
template <class Step>
constexpr std::int64_t gradient_bytes() {
  std::int64_t total = 0, largest = 0;
  for (int i = 0; i < Step::program.node_count; ++i) {
    if (Step::program.nodes[i].op != sw::op_code::param) continue;
    const std::int64_t bytes = in_arena(8 * numel(Step::program.spec_of(i)));
    total += bytes;
    largest = bytes > largest ? bytes : largest;
  }
  return total + largest;
}

// Of parameters that a group keeps whole for the backward pass: here from the first piece's forward pass to the last one's backward.
template <class Step>
constexpr std::int64_t kept_bytes() {
  std::int64_t total = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (sw::gathers_parameter(Step::program.nodes[i]) &&
        sw::attributes_of<sw::redistribute_attributes>(Step::program.nodes[i].a).unshard ==
            static_cast<std::int64_t>(sw::unsharding::kept))
      total += in_arena(8 * numel(Step::program.spec_of(i)));
  return total;
}

// Law: with N pieces of B / N rows a step needs no more than one of B / N rows, its inputs, a gradient for each parameter, the largest
// twice, and what groups keep.
template <class Plan, int N, class Pipeline = sw::pipeline<>, class Mesh = two, class Axes = axes, int Rows = rows>
constexpr bool is_memory_of_one() {
  using piece = step<Plan, Mesh, Axes, Pipeline, Rows / N>;
  using accumulated = step<with<Plan, pieces<N>>, Mesh, Axes, Pipeline, Rows>;
  using whole = step<Plan, Mesh, Axes, Pipeline, Rows>;
  static_assert(accumulated::peak_bytes <=
                piece::peak_bytes + input_bytes<accumulated>() + gradient_bytes<accumulated>() + kept_bytes<accumulated>());
  static_assert(accumulated::peak_bytes < whole::peak_bytes);
  return true;
}
using checked = with<replicated<2>, sw::at<"layers.*", sw::checkpoint>>;
static_assert(is_memory_of_one<replicated<2>, 2>() && is_memory_of_one<replicated<2>, 4>());
static_assert(is_memory_of_one<sharded, 2>() && is_memory_of_one<sharded, 4>() && is_memory_of_one<kept, 4>());
static_assert(is_memory_of_one<checked, 4>());
static_assert(is_memory_of_one<replicated<2>, 4, sw::pipeline<sw::merge_common, sw::merge_products>>());
static_assert(is_memory_of_one<replicated<2>, 4, sw::pipeline<sw::rematerialise<30>>>());

// Over two axes, too: no turn reads what another one has gathered over either. So an axis of one rank is none.
template <int Outer, int Inner>
using over_both =
    sw::plan<sw::fully_shard<rep<Outer>, sw::shard_over<dp<Inner>>>, blocks<rep<Outer>, sw::shard_over<dp<Inner>>>>;
template <int Outer, int Inner>
constexpr bool is_memory_of_one_over_both() {
  return is_memory_of_one<over_both<Outer, Inner>, 4, sw::pipeline<>, sw::mesh<rep<Outer>, dp<Inner>>,
                          batch_axes<rep<Outer>, dp<Inner>>, 16>();
}
static_assert(is_memory_of_one_over_both<2, 2>());
template <int Outer, int Inner>
using over_both_step =
    step<with<over_both<Outer, Inner>, pieces<4>>, sw::mesh<rep<Outer>, dp<Inner>>, batch_axes<rep<Outer>, dp<Inner>>>;
static_assert(over_both_step<2, 1>::peak_bytes == of_two<with<sharded, pieces<4>>>::peak_bytes);
static_assert(over_both_step<1, 2>::peak_bytes == of_two<with<sharded, pieces<4>>>::peak_bytes);
static_assert(over_both_step<2, 1>::comm_bytes<rep<2>> == of_two<with<sharded, pieces<4>>>::comm_bytes<dp<2>>);

static_assert(5 * of_two<with<replicated<2>, pieces<4>>>::peak_bytes < 3 * of_two<replicated<2>>::peak_bytes);

// --- what does not train takes its batch whole -------------------------------------------------------------------------

template <class Plan>
using evaluation = sw::forward_step<model, language_mean<rows, axes>, Plan, two, sw::pipeline<>, double>;
static_assert(evaluation<with<replicated<2>, pieces<4>>>::program.node_count ==
              evaluation<replicated<2>>::program.node_count);

}  // namespace
