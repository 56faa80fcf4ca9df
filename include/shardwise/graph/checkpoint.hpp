// SPDX-License-Identifier: Apache-2.0
// Checkpoints in a graph: which calls of modules compute their values again for the backward pass, and what is kept of them.
#pragma once

#include <bit>

#include <shardwise/graph/units.hpp>

namespace shardwise::inline v0_1 {

// A region is one call of a checkpointed module, named by the scope that the call has. Whatever is recorded during the call lies
// in it, in modules below and in others; regions nest as calls do. Marks are fields of scopes, so they last through passes, and
// adjoints, which take their node's scope, lie in its region too. A program without checkpoints has no regions.

// What is kept of a region besides what it is given: the results of the named operations, or of all but the named ones.
struct checkpoint_policy {
  std::uint64_t operations[4];  // by op_code, bit by bit
  std::uint32_t collectives;    // by transition, bit by bit
  std::int32_t customs;         // names of users' operations
  const char* const* custom;
  bool keeps_named;

  constexpr bool names(op_code op) const {
    return (operations[static_cast<unsigned>(op) / 64] >> (static_cast<unsigned>(op) % 64) & 1U) != 0;
  }
};
static_assert(static_cast<int>(op_code::count) <= 256);

namespace detail {

// The region that nodes of scope s lie in, -1: none. A unit belongs to what it stands under.
constexpr int region_of(const scope* scopes, int s) {
  while (s >= 0 && is_unit(scopes[s])) s = scopes[s].parent;
  if (s < 0 || scopes[s].checkpoint != nullptr) return s;
  return scopes[s].region < 0 ? -1 : scopes[s].region;
}
// The region around a region.
constexpr int around(const scope* scopes, int region) { return scopes[region].region < 0 ? -1 : scopes[region].region; }

// Whether two scopes are calls of one module. Compilers do not say of two texts whether they lie at one address.
constexpr bool is_same_module(const scope& a, const scope& b) {
  if (a.index != b.index || a.parent != b.parent || (a.name == nullptr) != (b.name == nullptr)) return false;
  return a.name == nullptr || is_same_name(a.name, b.name);
}

// The scope of a call of the module that scope `s` was entered for: s itself where that lies in the region of the call, or if
// nothing has been called by it yet; else another one of its name and parent, in the region. A checkpointed call's is always its own.
constexpr int scope_of_call(builder& b, int s, const checkpoint_policy* checkpoint) {
  const int at = b.current_scope;
  if (b.scope_count > b.scope_capacity) return b.scope_count++;  // to be recorded once more: a bound is enough
  const int region = region_of(b.scopes, at);
  if (s < 0) return region < 0 ? s : at;  // a module that the model does not register
  scope& own = b.scopes[s];
  if (own.region == scope::uncalled) {
    own.region = region;
    own.checkpoint = checkpoint;
    return s;
  }
  if (checkpoint == nullptr) {
    if (own.region == region) return s;
    for (int i = b.scope_count - 1; i >= 0 && i > region; --i) {
      const scope& other = b.scopes[i];
      if (other.region == region && is_same_module(other, own)) return i;
    }
  }
  if (b.scope_count < b.scope_capacity) b.scopes[b.scope_count] = {own.name, own.index, own.parent, region, -1, checkpoint};
  return b.scope_count++;
}

}  // namespace detail

template <class Graph>
constexpr bool has_checkpoints(const Graph& g) {
  for (int s = 0; s < g.scope_count; ++s)
    if (g.scopes[s].checkpoint != nullptr) return true;
  return false;
}

namespace detail {
template <class Graph>
constexpr int module_scope(const Graph& g, int i) {
  int s = g.nodes[i].scope;
  while (s >= 0 && is_unit(g.scopes[s])) s = g.scopes[s].parent;
  return s;
}
}  // namespace detail

// The region whose values node i computes again, -1: none.
template <class Graph>
constexpr int replay_of(const Graph& g, int i) {
  const int s = detail::module_scope(g, i);
  return s < 0 ? -1 : g.scopes[s].replay;
}

// The piece of the batch that node i computes, of a module's nodes; 0 where a program takes its batch whole.
template <class Graph>
constexpr int turn_of(const Graph& g, int i) {
  const int s = detail::module_scope(g, i);
  return s < 0 ? 0 : g.scopes[s].turn;
}

// Whether the value of an earlier node may be read in place of an equal one: not in place of one that is computed again so that the
// earlier one need not be kept, and what one piece of the batch reads is not kept for another.
template <class Graph>
constexpr bool may_stand_for(const Graph& g, int earlier, int later) {
  const int replay = replay_of(g, later);
  return (replay < 0 || replay == replay_of(g, earlier)) && turn_of(g, earlier) == turn_of(g, later);
}

// Whether a region with this policy keeps the value of node i. Views have no storage, so one that is not named is made anew of what
// is kept; results are named by their operation.
template <class Graph>
constexpr bool keeps_value(const checkpoint_policy& p, const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (n.op == op_code::getitem) return keeps_value(p, g, n.in[0]);
  bool named = p.names(n.op);
  if (n.op == op_code::redistribute)
    named = named || (p.collectives >> static_cast<unsigned>(detail::transition_at(g, i)) & 1U) != 0;
  if (p.customs > 0 && is_custom(g, n))
    for (int k = 0; k < p.customs; ++k) named = named || is_same_name(p.custom[k], name_of(g, n));
  if (!named && p.keeps_named) return false;
  if (n.inputs > 0 && may_view(n.op) && is_view(n, g.spec_of(n.in[0]), g.specs[n.spec])) return named && p.keeps_named;
  return named == p.keeps_named;
}

// Whether a checkpoint says by its policy that the forward pass's value of node i stays.
template <class Graph>
constexpr bool keeps_value(const Graph& g, int i) {
  for (int r = detail::region_of(g.scopes, g.nodes[i].scope); r >= 0; r = detail::around(g.scopes, r))
    if (!keeps_value(*g.scopes[r].checkpoint, g, i)) return false;
  return detail::region_of(g.scopes, g.nodes[i].scope) >= 0;
}

}  // namespace shardwise::inline v0_1
