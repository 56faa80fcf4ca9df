// SPDX-License-Identifier: Apache-2.0
// comm_fusion_with_concat and comm_fusion_in_place: gradients are summed bucket by bucket, one collective for many.
#pragma once

#include <shardwise/graph/text/text.hpp>
#include <shardwise/pass/communication/buckets.hpp>
#include <shardwise/pass/framework/holding.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

// The law of buckets. Reductions whose results go to updates, unchanged but for their place, are taken in the order in
// which their operands are computed; a bucket is closed as soon as it holds 1 MiB (the first) or Cap bytes (the others),
// what is left at the end is one too. Only like with like: the same axis, type, and placements of the result on axes that
// are still to be summed. A reduction that depends on its own bucket, by way of values or of what updates write, opens the
// next one. What is summed on one axis after another is so bucket by bucket, without leaving the first one's storage. A bucket's collective runs right after the last of its operands; users of its results that stood before it
// move behind it, in their order, and with them what must not overtake them.
template <bool Copies>
struct fuse_rules {
  template <class In, class Out>
  struct state : grouping_state<In, Out> {
    using base = grouping_state<In, Out>;
    using base::capacity, base::depends, base::to, base::work, base::storage, base::slots, base::within, base::list,
        base::waiting, base::waits;
    static constexpr int step_cost = 60;

    bool wanted[capacity]{};                                  // goes to an update
    bool listed[capacity]{};                                  // a pack or an update says where it lies
    int bucket[capacity];                                     // of a reduction; -1: it is not fused
    int next_reduction[capacity], first_reduction[capacity];  // of an operand
    int next_member[capacity];                                // reductions of a bucket
    int first_member[capacity], last_member[capacity];        // by bucket
    int members[capacity]{}, missing[capacity]{};
    int flat[capacity]{};           // by bucket: the new node that is its sum
    std::int64_t slot[capacity]{};  // of a reduction: the byte of its bucket at which its result begins
    int open[capacity]{};           // by kind of reduction
    std::int64_t open_bytes[capacity]{}, threshold[capacity]{};
    std::uint64_t key[capacity]{};
    int keys = 0, buckets = 0;
    std::int64_t caps[max_axes]{}, first = mebibyte;  // by axis, 0: reductions there are left alone; set before begin

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i)
        bucket[i] = next_reduction[i] = first_reduction[i] = next_member[i] = first_member[i] = last_member[i] = -1;
      for (int i = g.node_count - 1; i >= 0; --i) mark(g, i);
    }

    // From updates back through what only moves values.
    constexpr void mark(const In& g, int i) {
      const node& n = g.nodes[i];
      const bool update = is_update(n.op);
      if (n.op == op_code::pack)
        for (int k = 0; k < n.inputs; ++k) listed[n.in[k]] = true;
      if (n.op == op_code::in_place) listed[n.in[1]] = true;
      if (wanted[i] || update) {
        const bool passes_on = update || n.op == op_code::redistribute || n.op == op_code::contiguous ||
                               n.op == op_code::pack || n.op == op_code::unpack || n.op == op_code::mul ||
                               n.op == op_code::cast || is_optimizer_term(n.op);
        for (int k = 0; passes_on && k < n.inputs; ++k) wanted[n.in[k]] = true;
      }
      if (!wanted[i] || n.op != op_code::redistribute || shardwise::detail::transition_at(g, i) != transition::all_reduce)
        return;
      if (caps[attributes_of<redistribute_attributes>(n.a).axis] == 0) return;
      const op_code root = g.nodes[storage.owner[n.in[0]]].op;
      if (is_variable_leaf(root) || places_leaves(g.nodes[storage.owner[n.in[0]]]) || g.specs[n.spec].dyn != 0) return;
      next_reduction[i] = first_reduction[n.in[0]];
      first_reduction[n.in[0]] = i;
    }

    static constexpr std::uint64_t key_of(const In& g, int reduction) {
      const node& n = g.nodes[reduction];
      const spec& from = g.specs[g.nodes[n.in[0]].spec];
      const auto of = attributes_of<redistribute_attributes>(n.a);
      std::uint64_t h = static_cast<std::uint64_t>(of.axis) | static_cast<std::uint64_t>(from.type) << 8 |
                        static_cast<std::uint64_t>(of.to) << 16;
      for (int a = 0; a < from.axes; ++a)
        h = h * 31 + (from.place[a].is_partial() ? static_cast<std::uint64_t>(pack(from.place[a])) : 0);
      return h;
    }

    constexpr void join(const In& g, int reduction, int operand) {
      const std::uint64_t h = key_of(g, reduction);
      int k = 0;
      while (k < keys && key[k] != h) ++k;
      if (k == keys) {
        key[keys++] = h;
        open[k] = -1;
        threshold[k] = first;
      }
      if (open[k] >= 0 && depends[operand] > open[k]) open[k] = -1;
      if (open[k] < 0) {
        open[k] = buckets++;
        open_bytes[k] = 0;
      }
      const int b = bucket[reduction] = open[k];
      if (members[b]++ == 0) first_member[b] = reduction;
      else next_member[last_member[b]] = reduction;
      last_member[b] = reduction;
      ++missing[b];
      constexpr int origin[max_axes]{};
      const spec& s = g.specs[g.nodes[reduction].spec];
      open_bytes[k] += local_numel(s, origin) * static_cast<std::int64_t>(size_of(s.type));
      if (open_bytes[k] < threshold[k]) return;
      open[k] = -1;
      threshold[k] = caps[attributes_of<redistribute_attributes>(g.nodes[reduction].a).axis];
    }

    constexpr void group(const In& g, int i) {
      base::set_dependence(g, i, base::dependence(g, i, bucket[i] + 1));
      for (int r = first_reduction[i]; r >= 0; r = next_reduction[r]) join(g, r, i);
    }

    constexpr bool ready(const In& g, int i) const {
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k)
        if (to[n.in[k]] < 0) return false;
      return !base::conflicts(g, i);
    }

    // Returns whether a bucket was written.
    constexpr bool write(builder& b, const In& g, int i) {
      base::copy(b, g, i);
      return computed(b, g, i);
    }
    // The value of node i is there: buckets whose last operand it is are written.
    constexpr bool computed(builder& b, const In& g, int i) {
      bool any = false;
      for (int r = first_reduction[i]; r >= 0; r = next_reduction[r])
        if (bucket[r] >= 0 && --missing[bucket[r]] == 0) {
          write_bucket(b, g, bucket[r]);
          any = true;
        }
      return any;
    }

    // The bucket whose results are what this one sums on another axis; -1: they are from several places.
    constexpr int chained_to(const In& g, int which) const {
      const int before = bucket[g.nodes[first_member[which]].in[0]];
      if (before < 0 || members[before] != members[which]) return -1;
      for (int r = first_member[which]; r >= 0; r = next_member[r])
        if (bucket[g.nodes[r].in[0]] != before) return -1;
      return before;
    }

    constexpr void write_bucket(builder& b, const In& g, int which) {
      const int count = members[which], head = first_member[which];
      work.take(40 * count);
      if (count == 1) {
        base::copy(b, g, head);
        computed(b, g, head);
        return;
      }
      const int before = chained_to(g, which);
      int at = -1;
      if (before >= 0) {  // summed where the other axis' sum lies
        at = flat[before];
        int k = 0;
        for (int r = head; r >= 0; r = next_member[r]) within[k++] = slot[g.nodes[r].in[0]];
      } else {
        int k = 0;
        for (int r = head; r >= 0; r = next_member[r], ++k) {
          const int x = g.nodes[r].in[0];
          int id = to[x];
          const bool elsewhere = bucket[x] >= 0 && members[bucket[x]] > 1;  // in another bucket
          if (Copies || elsewhere || listed[x] || storage.owner[x] != x || !has_storage(g, x))
            id = emit_one(b, op_code::contiguous, id, b.intern(contiguous(b.specs[b.nodes[id].spec])));
          else listed[x] = true;
          list[k] = id;
        }
        at = emit_pack(b, slots, list, count, false, -1, within);
      }
      node n = g.nodes[last_member[which]];  // as the last one of them says
      const int axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
      spec sum = b.specs[b.nodes[at].spec];
      sum.place[axis] = g.specs[n.spec].place[axis];
      n.in[0] = at;
      n.spec = b.intern(sum);
      n.scope = -1;
      at = flat[which] = b.append(n);
      const std::int64_t size = static_cast<std::int64_t>(size_of(sum.type));
      int k = 0;
      for (int r = head; r >= 0; r = next_member[r], ++k) {
        node u = empty_node;
        u.op = op_code::unpack;
        u.inputs = 1;
        u.in[0] = at;
        slot[r] = within[k];
        u.a = pack_attributes(storage_attributes{.at = within[k] / size, .goes_on = 0, .leaves = 0});
        u.spec = g.nodes[r].spec;
        u.scope = g.nodes[r].scope;
        to[r] = b.append(u);
        if (listed[r]) to[r] = emit_one(b, op_code::contiguous, to[r], u.spec);  // a slot lies in its bucket already
      }
      for (int r = head; r >= 0; r = next_member[r]) computed(b, g, r);  // what another axis sums next
    }

    constexpr void place(builder& b, const In& g, int i) {
      if (bucket[i] >= 0) return;  // with its bucket
      if (!ready(g, i)) {
        waiting[waits++] = i;
        base::hold(g, i, 1);
        return;
      }
      if (!write(b, g, i)) return;
      for (bool again = waits > 0; again;) {
        again = false;
        const int n = waits;
        work.take(60 * n);
        for (int k = 0; k < n; ++k) base::hold(g, waiting[k], -1);
        waits = 0;
        for (int k = 0; k < n; ++k) {
          const int w = waiting[k];
          const int before = waits;
          waits = k + 1;  // earlier ones that still wait are held: look at them
          const bool now = ready(g, w);
          waits = before;
          if (now) {
            again = write(b, g, w) || again;
          } else {
            waiting[waits++] = w;
            base::hold(g, w, 1);
          }
        }
        again = again && waits > 0;
      }
    }

    constexpr bool step(const In& g, builder& b) { return base::walk_on(*this, g, b); }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    int sums = 0;
    for (int i = 0; i < g.node_count; ++i)
      sums +=
          g.nodes[i].op == op_code::redistribute && shardwise::detail::transition_at(g, i) == transition::all_reduce ? 1 : 0;
    return {g.node_count + 4 * sums + 4, g.spec_count + (sums < 64 ? 2 * sums : 128 + sums / 4) + 4};
  }
};

template <std::int64_t Cap, bool Copies>
struct fuse_with_cap : fuse_rules<Copies> {
  template <class In, class Out>
  struct state : fuse_rules<Copies>::template state<In, Out> {
    using base = typename fuse_rules<Copies>::template state<In, Out>;
    constexpr void begin(const In& g) {
      for (std::int64_t& c : base::caps) c = Cap;
      base::begin(g);
    }
  };
};
template <bool Copies, std::int64_t... Cap>
struct fuse_on_axes : fuse_rules<Copies> {
  template <class In, class Out>
  struct state : fuse_rules<Copies>::template state<In, Out> {
    using base = typename fuse_rules<Copies>::template state<In, Out>;
    constexpr void begin(const In& g) {
      int a = 0;
      ((base::caps[a++] = Cap), ...);
      base::begin(g);
    }
  };
};

}  // namespace passes

// What other passes name as their prerequisite: either form, whatever its bound.
struct comm_fusion;

// Reductions of gradients that an update waits for are joined into buckets of CapMiB mebibytes: copied side by side,
// summed at once, and read where they lie. Every element has the same summands in the same order: the same bits.
template <std::int64_t CapMiB = 100>
struct comm_fusion_with_concat : passes::rewriting<passes::fuse_with_cap<CapMiB * mebibyte, true>> {
  using key = comm_fusion;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

// The same without the copies: gradients are computed where their bucket lies, and the collective runs over that range of
// the arena. What cannot be (a view, or a value that lies elsewhere already) is copied. The price: a bucket's bytes are
// taken when the first of its gradients is computed.
template <std::int64_t CapMiB = 100>
struct comm_fusion_in_place : passes::rewriting<passes::fuse_with_cap<CapMiB * mebibyte, false>> {
  using key = comm_fusion;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

// The same with a bound of its own for each axis of the mesh, in their order; 0: reductions on that axis are left alone. What a
// plan implies whose data_parallel has buckets.
template <std::int64_t... CapMiB>
struct comm_fusion_on_axes : passes::rewriting<passes::fuse_on_axes<false, CapMiB * mebibyte...>> {
  using key = comm_fusion;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1
