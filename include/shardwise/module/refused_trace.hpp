// SPDX-License-Identifier: Apache-2.0
// What a trace says of an operation that it refuses. Operations on traced tensors are refused without a word, and the
// builder keeps the first. The program is then instantiated once more, by tensors whose report is refusal_at: of those, the
// operation that was refused says so, on the line that calls it, with its own facts and with module and node.
#pragma once

#include <shardwise/graph/verify/located.hpp>
#include <shardwise/graph/tensor.hpp>

namespace shardwise::inline v0_1::detail {

// Source: `value`, the graph up to there, and `refused`.
template <class Source>
struct refusal_at {
  static constexpr refusal found = Source::refused;
  static constexpr problem what = found.what;
  static constexpr op_code op = found.op;

  using module = in_module<exact_text<module_text<Source, found.scope>>::value>;
  static constexpr bool exists = [] {
    const auto& g = Source::value;
    return found.by_value && g.node_count > found.at && g.nodes[found.at].op == op;
  }();
  using text =
      std::conditional_t<op == no_node, call_text<Source, found.scope>,
                         std::conditional_t<exists, node_text<Source, found.at>, next_node_text<Source, op, found.at>>>;
  using node = at_node<exact_text<text>::value>;

  template <int... K>
  static constexpr auto reads(std::integer_sequence<int, K...>) -> std::integer_sequence<int, found.in[K]...>;
  using operands = typename reading_of<Source, decltype(reads(std::make_integer_sequence<int, found.inputs>{}))>::type;

  // Whether an operation on X is the one: it reads a tensor of the same type.
  template <problem P, op_code Op, class... X>
  static constexpr bool is() {
    if (P != what || Op != op) return false;
    if (found.inputs == 0) return true;
    const spec& read = Source::value.specs[Source::value.nodes[found.in[0]].spec];
    return ((X::sp == read) || ...);
  }
};

// Says what Source's trace refused. Again::with<Report> is the program's instantiation by tensors of that report. In what is
// never called it is said at once.
template <class Source, class Again, bool Noted, bool ByValue>
struct refusal_of {
  static constexpr bool ok = Source::resolved || sizeof(typename Again::template with<said>) > 0;
};
template <class Source, class Again>
struct refusal_of<Source, Again, true, false> {
  static constexpr bool ok = sizeof(typename Again::template with<refusal_at<Source>>) > 0;
};
template <class Source, class Again>
struct refusal_of<Source, Again, true, true> {
  using at = refusal_at<Source>;
  static constexpr bool ok = refused_program<at::what, Source::value.error.have, Source::value.error.want,
                                             typename at::module, typename at::node, typename at::operands>::ok;
};
template <class Source, class Again>
using say_refusal = refusal_of<Source, Again, Source::refused.what != problem::none, Source::refused.by_value>;

}  // namespace shardwise::inline v0_1::detail
