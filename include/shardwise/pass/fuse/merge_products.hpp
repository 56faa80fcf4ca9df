// SPDX-License-Identifier: Apache-2.0
// merge_products: matrix products of one operand with several others, or whose results are added up, as one product.
#pragma once

#include <shardwise/pass/fuse/sibling_groups.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace shardwise::inline v0_1 {

struct comm_fusion;     // the key of passes that fuse collectives,
struct list_optimizer;  // and of those that update lists of parameters

namespace passes {

// The new graph. A merged product's operands are views of stacks; its values are views of its blocks.
template <class In, class Out>
struct merge_state : rewrite_state<In, Out> {
  using base = rewrite_state<In, Out>;
  using base::capacity, base::to, base::cursor;

  slot_table<Out::spec_capacity> slots;
  int packed[capacity];  // the pack of the stack that begins with this base, -1: not written yet
  int seen[capacity];    // a view of all of it

  static constexpr int absent = -2;  // what is part of another term of the same sum

  constexpr void begin(const In& g) {
    base::begin(g);
    slots.clear();
    for (int i = 0; i < capacity; ++i) packed[i] = seen[i] = -1;
  }

  // The innermost module that all of them are in.
  static constexpr int common_scope(const In& g, const sibling_list& m) {
    int s = g.nodes[m.id[0]].scope;
    for (int k = 1; k < m.count; ++k)
      for (int o = g.nodes[m.id[k]].scope; s != o;) {
        int& inner = s > o ? s : o;
        inner = g.scopes[inner].parent;
      }
    return s;
  }

  // Members in the order in which their operands k lie.
  template <class Merges>
  static constexpr sibling_list as_stacked(const In& g, const Merges& m, const sibling_list& members, int k) {
    const sibling_list bases = bases_of(g, operands_of(g, members, k));
    int order[max_siblings]{};
    order_of_stack(m, m.stack(bases.id[0]), bases, order);
    return in_order(members, order);
  }

  // The pack of nodes that lie side by side in this order.
  constexpr int pack_of(builder& b, const In& g, const sibling_list& bases, int scope) {
    int ids[max_siblings]{};
    std::int64_t within[max_siblings]{};
    for (int k = 0; k < bases.count; ++k) ids[k] = to[bases.id[k]];
    return emit_pack(b, slots, ids, bases.count, g.nodes[bases.id[0]].op == op_code::param, scope, within);
  }
  // Casts of parameters that lie side by side: one cast, of which each is a block.
  constexpr void write_cast(builder& b, const In& g, const sibling_list& casts, int scope) {
    int& whole = packed[casts.id[0]];
    if (whole >= 0) return;
    const node& n = g.nodes[casts.id[0]];
    const sibling_list leaves = operands_of(g, casts, 0);
    const int from = b.intern(dense_stack(g.spec_of(leaves.id[0]), casts.count)), pack = pack_of(b, g, leaves, scope);
    const int view = b.emit(op_code::unpack, {}, 0, from, scope, pack);
    whole = b.emit(op_code::cast, n.a, n.f, b.intern(dense_stack(g.specs[n.spec], casts.count)), scope, view);
    take_apart(b, g, whole, casts);
  }
  template <class Merges>
  constexpr void write_cast_of(builder& b, const In& g, const Merges& m, int i) {
    sibling_list casts;
    for (int c = m.stack(i); c >= 0; c = m.after(c)) casts.id[casts.count++] = c;
    write_cast(b, g, casts, common_scope(g, casts));
  }

  // The tensor that the values, which lie side by side in this order, are together.
  constexpr int stack_of(builder& b, const In& g, const sibling_list& values, int scope) {
    const sibling_list bases = bases_of(g, values);
    const int lead = bases.id[0];
    const spec s = dense_stack(g.spec_of(values.id[0]), values.count);
    if (casts_leaf(g, lead)) {
      write_cast(b, g, bases, scope);
      if (b.specs[b.nodes[packed[lead]].spec] == s) return packed[lead];
      return b.emit(op_code::reshape, pack_extents(s), 0, b.intern(s), scope, packed[lead]);
    }
    if (packed[lead] < 0) packed[lead] = pack_of(b, g, bases, scope);
    const int id = b.intern(s);
    if (seen[lead] < 0 || b.nodes[seen[lead]].spec != id) {
      seen[lead] = b.emit(op_code::unpack, {}, 0, b.intern(s), scope, packed[lead]);
      b.nodes[seen[lead]].scope = scope;
    }
    return seen[lead];
  }

  // Old nodes' values are the blocks of `whole`.
  constexpr void take_apart(builder& b, const In& g, int whole, const sibling_list& values) {
    for (int k = 0; k < values.count; ++k) {
      const int old = values.id[k], scope = g.nodes[old].scope;
      spec s = b.specs[b.nodes[whole].spec];
      s.extent[0] = 1;
      if (k * s.stride[0] != 0) s.offset = 1;
      const auto of = slice_attributes{.dim = 0, .start = k, .length = 1, .one_of_many = 0};
      const int block = b.emit(op_code::slice, pack_attributes(of), 0, b.intern(s), scope, whole);
      to[old] = b.emit(op_code::reshape, pack_extents(g.spec_of(old)), 0, b.intern(g.spec_of(old)), scope, block);
    }
  }

  // What casts them and has waited for them.
  template <class Table>
  constexpr void write_waiting(builder& b, const In& g, const Table& t, const sibling_list& values) {
    for (int k = 0; k < values.count; ++k)
      if (const int u = t.first_user[values.id[k]]; u >= 0 && u < cursor && casts_value(g, u) && to[u] < 0)
        base::copy(b, g, u);
  }

  static constexpr std::int64_t with_label(std::int64_t labels) { return labels << 4 | 15; }

  template <class Table, class Merges>
  constexpr void write_shared(builder& b, const In& g, const Table& t, const Merges& m, int leader) {
    const int side = t.side[leader];
    const sibling_list members = as_stacked(g, m, members_of(t, leader), 1 - side);
    const int count = members.count, scope = common_scope(g, members);
    const node& n = g.nodes[members.id[0]];
    const sibling_list others = operands_of(g, members, 1 - side);
    int in[2]{};
    in[1 - side] = stack_of(b, g, others, scope);
    int total = -1;  // before the product, so that it may become part of its kernel
    const sibling_list sums = each_of(others, [&t](int i) { return t.row_sum[i]; });
    if (m.rows[leader]) {
      const node& r = g.nodes[sums.id[0]];
      auto of = attributes_of<sum_attributes>(r.a);
      of.dims <<= 1;
      total = b.emit(op_code::sum, pack_attributes(of), r.f, b.intern(dense_stack(g.specs[r.spec], count)), scope, in[0]);
    }
    spec same = stacked(b.specs[b.nodes[to[n.in[side]]].spec], count);
    same.stride[0] = 0;
    in[side] = b.emit(op_code::broadcast, pack_extents(same), 0, b.intern(same), scope, to[n.in[side]]);
    auto of = attributes_of<einsum_attributes>(n.a);
    of = {with_label(of.lhs), with_label(of.rhs), with_label(of.out), of.keeps_sums};
    const spec out = dense_stack(g.specs[n.spec], count);
    int whole = b.emit(op_code::einsum, pack_attributes(of), n.f, b.intern(out), scope, in[0], in[1]);
    sibling_list values = members;
    if (m.bias[leader]) {
      values = each_of(members, [&t](int i) { return t.first_user[i]; });
      const sibling_list biases = operands_of(g, values, 1);
      const spec one = g.spec_of(biases.id[0]);
      int y = stack_of(b, g, biases, scope);
      if (one.rank < out.rank - 1) {  // as many dims, those of the bias last
        spec s = one;
        const int more = out.rank - 1 - one.rank;
        s.rank = static_cast<std::uint8_t>(out.rank - 1);
        for (int d = s.rank - 1; d >= 0; --d) s.extent[d] = d < more ? 1 : one.extent[d - more];
        s.dyn = one.dyn << (max_dyn_sizes * more);
        for (int x = 0; x < s.axes; ++x)
          if (s.place[x].is_shard()) s.place[x].dim = static_cast<decltype(s.place[x].dim)>(s.place[x].dim + more);
        s = dense_stack(s, count);
        y = b.emit(op_code::reshape, pack_extents(s), 0, b.intern(s), scope, y);
      }
      whole = b.emit(op_code::add, g.nodes[values.id[0]].a, 0, b.intern(out), scope, whole, y);
    }
    take_apart(b, g, whole, values);
    write_waiting(b, g, t, values);
    if (total < 0) return;
    take_apart(b, g, total, sums);
    write_waiting(b, g, t, sums);
  }

  template <class Table, class Merges>
  constexpr void write_added(builder& b, const In& g, const Table& t, const Merges& m, int leader, int last) {
    const sibling_list members = as_stacked(g, m, members_of(t, leader), 0);
    const int scope = common_scope(g, members);
    const node& n = g.nodes[last];
    auto of = attributes_of<einsum_attributes>(n.a);
    of = {with_label(of.lhs), with_label(of.rhs), of.out, of.keeps_sums};
    const int x = stack_of(b, g, operands_of(g, members, 0), scope), y = stack_of(b, g, operands_of(g, members, 1), scope);
    for (int k = 0; k < members.count; ++k) to[members.id[k]] = absent;
    to[last] = b.emit(op_code::einsum, pack_attributes(of), n.f, b.intern(g.specs[n.spec]), scope, x, y);
  }

  template <class Table, class Merges>
  constexpr void step(builder& b, const In& g, const Table& t, const Merges& m) {
    if (cursor > g.node_count) return;
    const int i = cursor++;
    if (i == g.node_count) {
      base::set_outputs(g);
    } else if (const int leader = m.group_at(i); leader >= 0) {
      if (t.side[leader] == added_up) write_added(b, g, t, m, leader, i);
      else write_shared(b, g, t, m, leader);
    } else if (m.stack(i) >= 0 && casts_leaf(g, i)) {
      write_cast_of(b, g, m, i);
    } else if (m.role[i] != sibling_role::gone) {
      if (!casts_value(g, i) || to[g.nodes[i].in[0]] != -1) base::copy(b, g, i);
    } else if (g.nodes[i].op == op_code::add && to[i] == -1) {
      const int x = to[g.nodes[i].in[0]], y = to[g.nodes[i].in[1]];
      if (x == absent) to[i] = y;
      else if (y == absent) to[i] = x;
      else if (x >= 0 && y >= 0) base::copy(b, g, i);
    } else if (t.group[i] >= 0 && t.side[t.group[i]] == added_up) {
      to[i] = absent;
    }
  }
};

template <class State, class Graph, class Table, class Merges>
constexpr bool write_merges(State& st, const Graph& g, const Table& t, const Merges& m, stage_work work) {
  builder b = st.out.edit();
  while (st.cursor <= g.node_count && work.take(40)) {
    if (st.cursor < g.node_count && m.group_at(st.cursor) >= 0) work.take(600);
    st.step(b, g, t, m);
  }
  if (b.overflowed() && !b.error) b.error = {problem::graph_full, st.cursor - 1};
  st.out.finish(b);
  return st.cursor <= g.node_count;
}

struct collect_siblings {
  template <class Source>
  using state = sibling_table<graph_type_of<Source>::node_capacity>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return find_siblings(Source::value, st, stage_work(nodes));
  }
};

template <class Found, class Worth>
struct settle_siblings {
  template <class Source>
  using state = merge_table<graph_type_of<Source>::node_capacity>;
  static constexpr int per_stage(int nodes) {
    return nodes / 4 > 0 ? nodes / 4 : 1;
  }  // a group costs some ten thousand steps
  template <class Source>
  static constexpr int stages(int nodes) {
    return (3 + settled_group) * Found::value.groups / per_stage(nodes) + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    settle_groups<Worth>(Source::value, Found::value, st, per_stage(nodes));
  }
};

template <class Found, class Settled>
struct write_merged {
  template <class Source>
  using state =
      merge_state<graph_type_of<Source>, resized<graph_type_of<Source>, Source::value.node_count + Settled::value.nodes,
                                                 Source::value.spec_count + Settled::value.specs>>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return write_merges(st, Source::value, Found::value, Settled::value, stage_work(nodes));
  }
};

// merge_products of those groups that Worth says are worth it.
template <class Worth>
struct merging {
  using shardwise_pass = void;
  using apply_after = passes_list<cancel_redistributions, merge_common, comm_fusion, list_optimizer>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;

  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
   private:
    using found = staged<collect_siblings, Source, Nodes>;

    template <bool Any, class = void>
    struct settled {
      using type = staged<settle_siblings<found, Worth>, Source, Nodes>;
      static constexpr int kinds = type::value.kinds;
    };
    template <class T>
    struct settled<false, T> {
      static constexpr int kinds = 0;
    };
    using groups = settled<(found::value.groups > 0)>;
    template <bool Any, class G>
    struct result {
      struct written {
        static constexpr const auto& value = staged<write_merged<found, typename G::type>, Source, Nodes>::value.out;
      };
      static constexpr const auto& value = eliminate_dead<written>::value;
    };
    template <class G>
    struct result<false, G> {
      static constexpr const auto& value = Source::value;
    };

   public:
    static constexpr const auto& value = result<(groups::kinds > 0), groups>::value;
  };
  template <class Source>
  struct run : in_stages<Source> {};

  // Where the result is larger than the graph's capacity, it is refused.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    constexpr int n = Graph::node_capacity;
    sibling_table<n> t;
    t.begin(g);
    find_siblings(g, t, stage_work::all());
    merge_table<n> m;
    m.begin(g);
    settle_groups<Worth>(g, t, m, (3 + settled_group) * n);
    merge_state<Graph, resized<Graph, 8 * n + 64, Graph::spec_capacity + 16 * max_sibling_kinds>> st;
    st.begin(g);
    write_merges(st, g, t, m, stage_work::all());
    if (st.out.error) return st.out.error;
    remove_dead(st.out);
    if (st.out.node_count > n || st.out.spec_count > Graph::spec_capacity)
      return {problem::graph_full, -1, -1, -1, st.out.node_count, n};
    copy_into(g, st.out);
    return {};
  }
};

}  // namespace passes

// Products that differ in one operand become one, over operands that lie side by side: the projections of a value by
// several weights, the weights' gradients, and the sums of what goes back through them, their biases and biases'
// gradients with them. Parameters and values are placed so; nothing is copied. Parameters that are read through casts, as
// under mixed, lie side by side themselves, and one cast makes all blocks where the first is read; a gradient's cast waits
// for its block. Each block is what it was, bit for bit; what was added up is added in another order, of elements of two
// bytes on hosts in float, on GPUs rounded after each term as before. Only tensors of equal extents whose blocks fill whole
// slots of 64 bytes on every rank lie side by side, and none that another pass has placed. The prices: a block is kept as
// long as any of its siblings, and the parameters' places in the arena differ from those of the program without the pass.
struct merge_products : passes::merging<passes::where_possible> {};

}  // namespace shardwise::inline v0_1
