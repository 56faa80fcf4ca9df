// SPDX-License-Identifier: Apache-2.0
// block_access: the leaves of an executor by node, whatever memory they lie in, for what saves and restores them.
#pragma once

#include <string>
#include <vector>

#include <shardwise/runtime/executor/executor_base.hpp>

namespace shardwise::inline v0_1::runtime {

// E is an executor of any backend. What each member does stands at executor_base.
struct block_access {
  // The program that E runs, as host code sees it.
  template <class E>
  struct program {
    using type = typename E::source;
  };
  template <class E>
  static auto& rank(E& e) {
    return *e.rank_;
  }
  template <class E>
  static void check_parameters(const char* call_name, const E& e) {
    e.check_parameters(call_name);
  }
  // f(elements), this rank's block of node `id` as it is stored.
  template <class E, class F>
  static void read(E& e, int id, const F& f) {
    f(e.shown(id));
    e.hidden();
  }
  template <class E, class F>
  static void fill(E& e, int id, const F& f) {
    e.fill_block(id, f);
  }
  // Whether the block has never been given: of parameter or buffer number `table` (-1: of a state) nobody has set a value, and all its
  // bytes are 0, as after construction.
  template <class E>
  static bool holds_nothing(E& e, int id, int table) {
    if (table >= 0) return !e.given().has_parameter(table);
    bool nothing = true;
    read(e, id, [&](const auto* x) {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(x);
      const std::size_t n = static_cast<std::size_t>(e.layout_of(id).numel()) * sizeof(*x);
      for (std::size_t i = 0; i < n && nothing; ++i) nothing = bytes[i] == 0;
    });
    return nothing;
  }
  // Collective: the whole tensor on rank `root`, nothing on the others.
  template <class E>
  static auto whole(E& e, int id, int root) {
    return e.full(id, root);
  }
  // All parameters and buffers have values, and no sum of gradients is of them.
  template <class E>
  static void all_given(E& e) {
    for (int at = 0; at < E::table_count(); ++at) e.given().parameter(at);
    e.forget_sums();
  }
  template <class E>
  static void buffer_given(E& e, int number) {
    e.given().parameter(E::parameter_count() + number);
  }
  // Each buffer that has no value gets its initial one.
  template <class E>
  static void draw_other_buffers(E& e, std::uint64_t seed) {
    for (int at = E::parameter_count(); at < E::table_count(); ++at)
      if (!e.given().has_parameter(at)) e.draw_leaf(at, seed);
  }
};

}  // namespace shardwise::inline v0_1::runtime
