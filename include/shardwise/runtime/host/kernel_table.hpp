// SPDX-License-Identifier: Apache-2.0
// kernel_table: the entry of each host kernel, by operation and element type; what executor and eager tensors call.
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include <shardwise/graph/verify/located.hpp>
#include <shardwise/operations/written/host.hpp>
#include <shardwise/runtime/program/blocks.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/signatures.hpp>
#include <shardwise/runtime/host/widened.hpp>
#include <shardwise/runtime/rank.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace runtime {
inline namespace SHARDWISE_HOST_BUILD {

template <class Rank>
using kernel_function = void (*)(const call&, const step_env&, Rank&);

// Integers are moved, compared, added and multiplied; other arithmetic exists for floating-point elements.
constexpr bool has_kernel(op_code op, dtype type) {
  const element_rule elements = traits_of(op).elements;
  return is_floating(type) || rules::only_moves(op) || op == op_code::redistribute || op == op_code::opaque ||
         is_comparison(op) || elements == element_rule::converted ||
         (elements == element_rule::number && type != dtype::boolean);
}
// Whether a function of this element type computes it: elements of two bytes may be widened to floats, and expressions stand behind.
constexpr bool is_computed_by_itself(op_code op, dtype type) {
  return has_kernel(op, type) && op != op_code::fused && !(is_low_precision(type) && widens(op));
}

[[noreturn]] inline void refuse_kernel(op_code op, dtype type) {
  throw std::logic_error(std::string("shardwise: a table of kernels calls ") + name_of(op) + " of " + name_of(type) +
                         ", of which there is no kernel by itself; a table that kernel_entry makes has none of those");
}

// Knows no rank, and is not inlined where one is: meshes share the machine code of all kernels. Its text needs no kernel's: those
// that are compiled apart are declared in extern_kernels.hpp, and nothing of them is read here.
template <op_code Op, class T>
__attribute__((noinline)) void compute(const call& c, const step_env& env) {
  if constexpr (!is_computed_by_itself(Op, dtype_v<T>)) {
    refuse_kernel(Op, dtype_v<T>);
  } else {
    host::operands<T> q;
    for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
    constexpr int index = index_operand(Op);
    if constexpr (index >= 0) q.index = static_cast<const std::int32_t*>(c.p[index]);
    if constexpr (makes_indices(Op)) q.index_out = static_cast<std::int32_t*>(c.p[result]);
    if constexpr (!host::kernel_written<Op, T>) {
      static_assert(raise<problem::kernel_unwritten, typename shardwise::detail::op_tag<Op>::type, T>::ok);
    } else {
      host::kernel<Op>::template run<T>(c, q, env);
    }
  }
}
// How the kernel may be cut among threads. No constant, for the same reason.
template <op_code Op>
__attribute__((noinline)) host::cut_kind cut_of_kernel() {
  return host::cut_of<Op>();
}

// A kernel, if Op is one, and the expression that follows it.
template <op_code Op, class T, expression Then>
__attribute__((noinline)) void compute_then(const call& c, const step_env& env) {
  if constexpr (Op != op_code::fused) compute<Op, T>(c, env);
  host::operands<T> q;
  for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
  host::evaluate<T, Then>(c, q);
}

// The same of elements of two bytes: the kernel of floats, between copies. What an expression computes, it rounds step by step, to the
// type of the kernel's result, which may be float (wide_values).
template <op_code Op, class Low, expression Then>
__attribute__((noinline)) void compute_widened(const call& c, const step_env& env) {
  if constexpr (widens(Op)) {
    const host::widened<Low> w(c, c.written);
    compute<Op, float>(w.as_floats(), env);
    w.write_back();
  }
  if constexpr (Op == op_code::rand) {  // below 1 as floats, and still
    Low* const x = static_cast<Low*>(c.p[result]);
    for (std::int64_t i = 0; i < c.l[result].numel(); ++i)
      if (x[i] == Low(1)) x[i] = Low::of_bits(static_cast<std::uint16_t>(Low(1).bits - 1));
  }
  if constexpr (Then.head != 0) {
    using T = std::conditional_t<(operation_of(Op).wide.value.results & 1U) != 0, float, Low>;
    host::operands<T> q;
    for (int k = 0; k <= max_inputs; ++k) q.p[k] = static_cast<T*>(c.p[k]);
    host::evaluate<T, Then>(c, q);
  }
}

template <op_code Op, class T, expression Then, class Rank>
void run_kernel(const call& c, const step_env& env, Rank& rank) {
  if constexpr (Op == op_code::redistribute) {
    if (communicates(c.kind)) {
      runtime::communicate<T>(c, rank);
      return;
    }
  }
  if constexpr (is_low_precision(dtype_v<T>) && (widens(Op) || Op == op_code::fused)) compute_widened<Op, T, Then>(c, env);
  else if constexpr (Then.head != 0) compute_then<Op, T, Then>(c, env);
  else if constexpr (Op != op_code::fused) compute<Op, T>(c, env);
}

template <const custom_operation& Op, class Low, class Rank>
void run_custom_widened(const call& c, const step_env& env, Rank&) {
  const host::widened<Low> w(c, c.written);
  compute_custom<Op, float>(w.as_floats(), env);
  w.write_back();
}
template <const custom_operation& Op, dtype Type, class Rank>
constexpr kernel_function<Rank> custom_entry() {
  using T = element_t<Type>;
  if constexpr (is_low_precision(Type)) {
    return &run_custom_widened<Op, T, Rank>;
  } else if constexpr (is_floating(Type) || Op.record.elements == element_rule::any) {
    return &run_custom<Op, T, Rank>;
  } else {
    static_assert(raise<problem::kernel_missing, shardwise::detail::custom_tag<Op>, T>::ok);
    return nullptr;
  }
}
// Place: further facts of the error, if there is none.
template <signature S, class Rank, class Place = shardwise::detail::type_list<>>
constexpr kernel_function<Rank> kernel_entry() {
  constexpr op_code op = S.op;
  using T = element_t<S.type>;
  if constexpr (has_kernel(op, S.type)) {
    return &run_kernel<op, T, S.then, Rank>;
  } else {
    using facts = shardwise::detail::type_list<typename shardwise::detail::op_tag<op>::type, T>;
    return shardwise::detail::raise_list<problem::kernel_missing,
                                         typename shardwise::detail::joined_lists<facts, Place>::type>::ok
               ? nullptr
               : nullptr;
  }
}

// The first node of Source whose kernel is number K, where there is none.
template <bool Missing, class Source, int K>
struct missing_at {
  using type = shardwise::detail::type_list<>;
};
template <class Source, int K>
struct missing_at<true, Source, K> {
  static constexpr int node = [] {
    int i = 0;
    while (i + 1 < Source::value.node_count && kernels_of<Source>::list.of[i] != K) ++i;
    return i;
  }();
  using place = shardwise::detail::located<Source, node>;
  using type = shardwise::detail::type_list<typename place::module, typename place::node, typename place::operands>;
};

// One entry for each signature of a program, and each node's.
template <class Source, class Rank>
struct kernel_table {
  using kernels = kernels_of<Source>;

  template <std::size_t K>
  static constexpr kernel_function<Rank> entry() {
    constexpr dtype type = kernels::signatures.item[K].type;
    if constexpr (kernels::signatures.item[K].op == op_code::custom)
      return custom_entry<*kernels::signatures.custom[K], type, Rank>();
    else
      return kernel_entry<
          signature{kernels::signatures.item[K].op, type, kernels::signatures.item[K].then}, Rank,
          typename missing_at<!has_kernel(kernels::signatures.item[K].op, type), Source, static_cast<int>(K)>::type>();
  }
  template <std::size_t... K>
  static constexpr auto make(std::index_sequence<K...>) {
    return std::array<kernel_function<Rank>, sizeof...(K) + 1>{entry<K>()..., nullptr};
  }
  // How the kernel of each may be cut among threads.
  template <std::size_t K>
  static host::cut_kind cut() {
    constexpr op_code op = kernels::signatures.item[K].op;
    if constexpr (op == op_code::custom) return cut_of_custom<*kernels::signatures.custom[K]>();
    else if constexpr (op == op_code::fused) return host::cut_kind::places;
    else return cut_of_kernel<op>();
  }
  template <std::size_t... K>
  static auto make_cuts(std::index_sequence<K...>) {
    return std::array<host::cut_kind, sizeof...(K) + 1>{cut<K>()..., host::cut_kind::whole};
  }

  static constexpr auto entries = make(std::make_index_sequence<static_cast<std::size_t>(kernels::signatures.count)>{});

  // Each node's entry, without the list that names operations and so their rules.
  struct entry_numbers {
    std::int16_t of[Source::value.node_count > 0 ? Source::value.node_count : 1];
  };
  static constexpr entry_numbers numbers = [] {
    entry_numbers n;
    n.of[0] = -1;
    for (int i = 0; i < Source::value.node_count; ++i) n.of[i] = kernels::list.of[i];
    return n;
  }();

  static kernel_function<Rank> of(int node_id) {
    const int at = numbers.of[node_id];
    return at < 0 ? nullptr : entries[static_cast<std::size_t>(at)];
  }
  static host::cut_kind cut_of(int node_id) {
    static const auto cuts = make_cuts(std::make_index_sequence<static_cast<std::size_t>(kernels::signatures.count)>{});
    const int at = numbers.of[node_id];
    return at < 0 ? host::cut_kind::whole : cuts[static_cast<std::size_t>(at)];
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace runtime

}  // namespace shardwise::inline v0_1
