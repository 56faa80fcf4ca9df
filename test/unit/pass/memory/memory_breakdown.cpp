// SPDX-License-Identifier: Apache-2.0
// What memory is for, against a plain count of live buffers; bytes by collective and phase against their total.
#include <doctest/doctest.h>

#include <algorithm>
#include <gpt.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <class Step>
struct program_of {
  static constexpr const auto& value = Step::program;
};

// The law of the breakdown, by looking at every buffer at every node.
template <class Step>
void check_breakdown() {
  static constexpr const sw::memory_breakdown& b = Step::memory_use::value;
  static_assert(b.live() == std::max({b.phase[0], b.phase[1], b.phase[2]}));
  static_assert(b.live() <= Step::peak_bytes);
  const auto& g = Step::program;
  const auto& plan = Step::memory::value;
  auto leaf = [&](int i) { return sw::is_leaf(g.nodes[i].op); };

  sw::passes::phase_marks<std::remove_cvref_t<decltype(g)>::node_capacity> marks;
  sw::passes::mark_phases(marks, g);
  std::int64_t phase[sw::program_phases]{}, parameters = 0, states = 0;
  for (int at = 0; at < g.node_count; ++at) {
    if (leaf(at)) {
      (g.nodes[at].op == sw::op_code::param ? parameters : states) +=
          g.nodes[at].op == sw::op_code::input ? 0 : sw::passes::align_up(plan.bytes[at]);
      continue;
    }
    std::int64_t live = plan.workspace;
    for (int i = 0; i < g.node_count; ++i)
      if (plan.owner[i] == i && (leaf(i) || (i <= at && at <= plan.last_use[i])))
        live += sw::passes::align_up(plan.bytes[i]);
    std::int64_t& most = phase[static_cast<int>(marks.of(at))];
    most = std::max(most, live);
  }
  for (int p = 0; p < sw::program_phases; ++p) CHECK(phase[p] == b.phase[p]);
  CHECK(b.kind[static_cast<int>(sw::memory_kind::parameters)] == parameters);
  CHECK(b.kind[static_cast<int>(sw::memory_kind::optimizer)] >= states);
  CHECK(b.kind[static_cast<int>(sw::memory_kind::workspace)] == plan.workspace);
  CHECK(b.fullest >= 0);

  const sw::memory_breakdown& small = sw::passes::memory_breakdown_of<typename Step::memory, program_of<Step>, 17>::value;
  CHECK(std::equal(b.kind, b.kind + sw::memory_kinds, small.kind));
  CHECK(small.fullest == b.fullest);
}

TEST_CASE("live bytes by kind and phase are those of a plain count") {
  check_breakdown<step<float, 1, 1>>();
  check_breakdown<step<float, 2, 2>>();
  check_breakdown<step<double, 3, 1>>();
}

template <class Step, class Axis>
void check_bytes() {
  using enum sw::transition;
  for (int r = 0; r < Step::mesh_type::size; ++r) {
    std::int64_t by_kind = 0, by_phase = 0;
    for (sw::transition t : {all_reduce, reduce_scatter, all_gather, all_to_all})
      by_kind += Step::template comm_bytes_of<Axis>(t, sw::program_phase::count, r);
    for (int p = 0; p < sw::program_phases; ++p)
      by_phase += Step::template comm_bytes_of<Axis>(none, static_cast<sw::program_phase>(p), r);
    CHECK(by_kind == Step::template comm_bytes_of<Axis>(none, sw::program_phase::count, r));
    CHECK(by_phase == by_kind);
  }
  CHECK(Step::template comm_bytes_of<Axis>(none) == Step::template comm_bytes<Axis>);
}

TEST_CASE("bytes by collective and by phase add up to those of the step") {
  using one = step<float, 2, 2>;
  check_bytes<one, test::gpt::dp<2>>();
  check_bytes<one, test::gpt::tp<2>>();
  // a data axis: gradients and the loss alone
  CHECK(one::comm_bytes_of<test::gpt::dp<2>>(sw::transition::all_gather) == 0);
  CHECK(one::comm_bytes_of<test::gpt::dp<2>>(sw::transition::none, sw::program_phase::backward) > 0);
}

}  // namespace
