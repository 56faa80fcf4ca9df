// SPDX-License-Identifier: Apache-2.0
// The transformation behind functionalise: node by node, writes become values and views are made anew where they are read.
#pragma once

#include <shardwise/graph/verify/located.hpp>
#include <shardwise/pass/functionalise/aliasing.hpp>
#include <shardwise/operations/infer.hpp>

namespace shardwise::inline v0_1::passes {

struct functional {
  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g) {
    finding f = st.seen.find(g);
    if (!f) f = st.seen.set_problem(g);
    begin_anew(st.g, g);
    if (f && !g.error) {
      st.g.error = f;
      shardwise::detail::place_error(st.g.error, g, f.operand);
    }
    for (int i = 0; i < State::size; ++i) {
      st.now[i] = st.stamp[i] = st.home[i] = st.ahead[i] = -1;
      st.writes[i] = st.path[i] = 0;
    }
  }

  struct unseen {
    template <class State>
    constexpr void operator()(State&, builder&) const {}
  };

  // Nodes one after the other, at most `count` of them; the last call ends the graph. `root`: see finish. Before each node, and
  // behind the last one, look(state, builder).
  template <class State, class Graph, class Look = unseen>
  static constexpr void go(State& st, const Graph& g, int count, int root, Look look = {}) {
    if (st.cursor > g.node_count) return;
    builder b = st.g.edit();
    for (; count > 0 && st.cursor < g.node_count && !b.error; --count) {
      look(st, b);
      visit(st, g, b, st.cursor++);
    }
    const bool last = st.cursor == g.node_count && count > 0;
    if (last && !b.error) look(st, b);
    if (last && !b.error) finish(st, g, b, root);
    if (b.error)
      shardwise::detail::place_error(b.error, g, b.error.what == problem::mutation_view ? b.error.operand : st.cursor - 1);
    if (last) ++st.cursor;
    if (b.overflowed() && !b.error) b.error = {problem::graph_full, -1, -1, -1, b.node_count, State::capacity};
    st.g.finish(b);
  }

  // The value of node i, where the program has come to.
  template <class State, class Graph>
  static constexpr int read(State& st, const Graph& g, builder& b, int given) {
    const int i = tensor_of(g, given), r = st.seen.root[i];
    if (!st.seen.written[r]) return st.now[i];
    int from = newest(st, g, i);
    if (st.stamp[from] < st.writes[r]) {
      go_back(st, g, b, r, common(g, st.ahead[r], i, r));
      from = newest(st, g, i);
    }
    return derived(st, g, b, i, from);
  }

 private:
  // A write has the value of what it writes.
  template <class Graph>
  static constexpr int tensor_of(const Graph& g, int i) {
    while (g.nodes[i].op == op_code::copy_) i = g.nodes[i].in[0];
    return i;
  }
  template <class Graph>
  static constexpr int parent_of(const Graph& g, int i) {
    return tensor_of(g, g.nodes[i].in[0]);
  }
  template <class Graph>
  static constexpr bool is_above(const Graph& g, int above, int below, int root) {
    while (below != root && below != above) below = parent_of(g, below);
    return below == above;
  }
  // The nearest tensor that nodes i and k both are, or are views of, and that knows by itself what a write to i is: of an expanded
  // tensor, whose elements are one, the root.
  template <class Graph>
  static constexpr int common(const Graph& g, int i, int k, int root) {
    while (k != root && !is_above(g, k, i, root)) k = parent_of(g, k);
    for (int v = k; v != root; v = parent_of(g, v))
      if (g.nodes[v].op == op_code::broadcast && numel(g.spec_of(v)) != numel(g.spec_of(parent_of(g, v)))) return root;
    return k;
  }
  static constexpr const spec& spec_at(const builder& b, int id) { return b.specs[b.nodes[id].spec]; }

  static constexpr int emit(builder& b, node n, const outcome& o) {
    if (o.error && !b.error) b.error = o.error;
    n.spec = b.intern(o.out);
    return append(b, n);
  }
  // Past the capacity nothing is read back.
  static constexpr int append(builder& b, const node& n) {
    const int id = b.append(n);
    if (!b.overflowed()) return id;
    if (!b.error) b.error = {problem::graph_full, -1, -1, -1, b.node_count, b.node_capacity};
    return 0;
  }
  static constexpr int dense(builder& b, int id, int scope, bool copied = false) {
    const spec& s = spec_at(b, id);
    if (is_contiguous(s) && !copied) return id;
    node n = empty_node;
    n.op = op_code::contiguous;
    n.inputs = 1;
    n.in[0] = id;
    n.scope = scope;
    return emit(b, n, {{}, contiguous(s)});
  }
  // Users of a tensor that was stored densely take it for that.
  template <class Graph>
  static constexpr int stored_as(builder& b, const Graph& g, int i, int id) {
    return is_contiguous(g.spec_of(i)) ? dense(b, id, g.nodes[i].scope) : id;
  }

  // View i of the value `of`, stored otherwise than what i was a view of.
  template <class Graph>
  static constexpr int stored_anew(builder& b, const Graph& g, int i, int of) {
    node n = g.nodes[i];
    n.in[0] = of;
    if (n.op == op_code::wait) return emit(b, n, {{}, spec_at(b, of)});
    if (n.op == op_code::relabel)
      return emit(b, n, {{}, is_contiguous(spec_at(b, of)) ? contiguous(g.spec_of(i)) : g.spec_of(i)});
    return stored_as(b, g, i, emit(b, n, infer(n.op, n.a, &spec_at(b, of), 1)));
  }
  // View i of the value `of`.
  template <class Graph>
  static constexpr int seen_again(builder& b, const Graph& g, int i, int of) {
    node n = g.nodes[i];
    if (n.op == op_code::wait) return of;
    if (!(spec_at(b, of) == g.spec_of(n.in[0]))) return stored_anew(b, g, i, of);
    n.in[0] = of;
    return append(b, n);
  }

  // The nearest of a node and what it is a view of that has seen the most writes.
  template <class State, class Graph>
  static constexpr int newest(const State& st, const Graph& g, int i) {
    int best = i;
    for (int k = i; k != st.seen.root[i];) {
      k = parent_of(g, k);
      if (st.stamp[k] > st.stamp[best]) best = k;
    }
    return best;
  }
  // The value of node i as of the version of `from`, of which it is a view.
  template <class State, class Graph>
  static constexpr int derived(State& st, const Graph& g, builder& b, int i, int from) {
    int steps = 0;
    for (int k = i; k != from; k = parent_of(g, k)) st.path[steps++] = k;
    for (int at = from; steps > 0;) {
      const int k = st.path[--steps];
      st.now[k] = seen_again(b, g, k, st.now[at]);
      st.stamp[k] = st.stamp[from];
      at = k;
    }
    return st.now[i];
  }
  // The value of what view i is a view of, when i's is `value`.
  template <class State, class Graph>
  static constexpr int inverse(State& st, const Graph& g, builder& b, int i, int value) {
    const node& n = g.nodes[i];
    const int p = parent_of(g, i);
    const spec& whole = g.spec_of(p);
    node m = empty_node;
    m.inputs = 1;
    m.in[0] = value;
    m.scope = n.scope;
    m.op = n.op;
    bool possible = true;
    switch (n.op) {
      case op_code::wait: return value;
      case op_code::permute: {
        const auto of = attributes_of<permute_attributes>(n.a);
        permute_attributes back{.from = 0};
        for (int d = 0; d < whole.rank; ++d) back.from |= std::int64_t{d} << (4 * rules::packed_dim(of.from, d));
        m.a = pack_attributes(back);
        break;
      }
      case op_code::broadcast: possible = numel(whole) == numel(g.spec_of(i)); [[fallthrough]];
      case op_code::reshape:
        m.op = op_code::reshape;
        m.in[0] = dense(b, value, n.scope);
        m.a = pack_extents(whole);
        break;
      case op_code::slice:
        m.op = op_code::slice_scatter;
        m.a = n.a;
        m.inputs = 2;
        m.in[0] = derived(st, g, b, p, newest(st, g, p));
        m.in[1] = value;
        break;
      case op_code::relabel: {  // blocks stay blocks where no rank has another one's
        m.in[0] = dense(b, value, n.scope);
        relabel_attributes back{};
        for (int a = 0; a < whole.axes; ++a) {
          possible = possible && whole.place[a].is_shard() && g.spec_of(i).place[a].is_shard();
          back.cotangent[a] = pack(dual(g.spec_of(i).place[a]));
        }
        m.a = pack_attributes(back);
        break;
      }
      default: possible = false;
    }
    spec in[2]{};
    outcome o{{problem::mutation_view, i}, whole};
    if (possible && n.op == op_code::relabel) {
      o = {{}, contiguous(whole)};
    } else if (possible) {
      for (int k = 0; k < m.inputs; ++k) in[k] = spec_at(b, m.in[k]);
      o = infer(m.op, m.a, in, m.inputs);
      bool fits = !o.error;
      for (int a = 0; fits && a < whole.axes; ++a) fits = o.out.place[a] == whole.place[a];
      if (!fits) o.error = {problem::mutation_view, i};
    }
    return stored_as(b, g, p, emit(b, m, o));
  }
  // The write that only a view knows of becomes known to `to`, which the view is a view of: no further than somebody reads, since not
  // every view has a way back.
  template <class State, class Graph>
  static constexpr void go_back(State& st, const Graph& g, builder& b, int r, int to) {
    for (int i = st.ahead[r]; i >= 0 && i != to;) {
      const int p = parent_of(g, i);
      st.now[p] = inverse(st, g, b, i, st.now[i]);
      st.stamp[p] = st.writes[r];
      i = p;
    }
    st.ahead[r] = to == r ? -1 : to;
  }

  template <class State, class Graph>
  static constexpr void visit(State& st, const Graph& g, builder& b, int i) {
    const node& given = g.nodes[i];
    const int r = st.seen.root[i];
    if (given.op == op_code::copy_) {
      const int i0 = tensor_of(g, given.in[0]);
      const bool sets = sets_storage(given);
      int value = read(st, g, b, given.in[1]);
      if (sets ? lies_in_leaf(b, value) : true) value = dense(b, value, given.scope, sets);
      // of two views that are ahead neither may be lost, unless one is all written over, or lies in the other
      if (const int was = st.ahead[r]; was >= 0 && !is_above(g, was, i0, r) && !is_above(g, i0, was, r))
        go_back(st, g, b, r, common(g, was, i0, r));
      st.now[i0] = value;
      st.stamp[i0] = ++st.writes[r];
      st.ahead[r] = i0 == r ? -1 : i0;
      return;
    }
    if (r != i && st.seen.written[r]) return;  // a view is made where it is read
    node n = given;
    for (int k = 0; k < n.inputs; ++k) n.in[k] = read(st, g, b, n.in[k]);
    if (n.op == op_code::redistribute && given.spec == g.nodes[given.in[0]].spec)
      st.now[i] = n.in[0];  // values need no copy
    else if (lies_in_operand(given, g.specs, g.nodes) && !(spec_at(b, n.in[0]) == g.spec_of(given.in[0])))
      st.now[i] = stored_anew(b, g, i, n.in[0]);
    else st.now[i] = append(b, n);
    st.home[i] = st.now[i];
    st.stamp[i] = 0;
  }

  template <class State, class Graph>
  static constexpr bool is_written_leaf(const State& st, const Graph& g, int i) {
    return st.seen.written[i] && is_leaf(g.nodes[i].op);
  }
  // Whether a value lies in what a leaf holds, which updates may change before the value is read.
  static constexpr int stored_in(const builder& b, int id) {
    while (lies_in_operand(b.nodes[id], b.specs, b.nodes)) id = b.nodes[id].in[0];
    return id;
  }
  static constexpr bool lies_in_leaf(const builder& b, int id) { return is_leaf(b.nodes[stored_in(b, id)].op); }
  // And one that is written.
  template <class State, class Graph>
  static constexpr bool will_change(const State& st, const Graph& g, const builder& b, int id) {
    const int at = stored_in(b, id);
    for (int i = 0; i < g.node_count; ++i)
      if (is_written_leaf(st, g, i) && st.home[i] == at) return true;
    return false;
  }
  // Output o of the program again, out of the value of its root; as it was stored.
  template <class State, class Graph>
  static constexpr int from_root(State& st, const Graph& g, builder& b, int o, int root_value) {
    const int r = st.seen.root[o];
    st.now[r] = root_value;
    st.stamp[r] = st.writes[r];
    return derived(st, g, b, o, r);
  }

  // The value of root r for an output: stored as the root was, and not where a leaf is.
  template <class Graph>
  static constexpr int as_it_was(builder& b, const Graph& g, int r, int value) {
    if (!is_contiguous(g.spec_of(r)) && is_channels_last(g.spec_of(r))) {
      node n = empty_node;
      n.op = op_code::contiguous;
      n.a = attributes<contiguous_attributes>(static_cast<int>(memory_format::channels_last));
      n.inputs = 1;
      n.in[0] = value;
      n.scope = g.nodes[r].scope;
      return emit(b, n, {{}, in_format(spec_at(b, value), memory_format::channels_last)});
    }
    return lies_in_leaf(b, value) ? dense(b, value, g.nodes[r].scope, true) : value;
  }

  // Whether leaf i gets other storage.
  template <class State, class Graph>
  static constexpr bool is_set(const State& st, const Graph& g, int i) {
    if (!is_written_leaf(st, g, i)) return false;
    for (int s = i; s < g.node_count; ++s)
      if (sets_storage(g.nodes[s]) && st.seen.root[s] == i) return true;
    return false;
  }
  // The storage that leaf i gets is where its value is computed; in the next run that storage is the leaf's, and the leaf's is free.
  // Outputs are copies: they stay what they are.
  template <class State, class Graph>
  static constexpr void give_storage(State& st, const Graph& g, builder& b, int i, int spare) {
    const int value = stored_in(b, st.now[i]);
    if (numel(spec_at(b, value)) != numel(g.spec_of(i)) && !b.error) {
      b.error = {problem::set_data, i};
      return;
    }
    for (int k = 0; k < g.output_count; ++k) {
      int& o = st.g.outputs[k];
      const int of = tensor_of(g, g.outputs[k]);
      if (st.seen.root[of] == i) o = read(st, g, b, of);
      if (stored_in(b, o) == value) o = dense(b, o, g.nodes[of].scope, true);
    }
    node leaf = empty_node;
    leaf.op = op_code::state;
    leaf.a = attributes<leaf_attributes>(spare, attributes_of<leaf_attributes>(g.nodes[i].a).index, spare_storage);
    leaf.spec = b.nodes[value].spec;
    node there = empty_node;
    there.op = op_code::in_place;
    there.inputs = 2;
    there.in[0] = append(b, leaf);
    there.in[1] = value;
    there.spec = leaf.spec;
    append(b, there);
  }

  // One copy for each leaf that was written; outputs that share its storage are views of it then.
  template <class State, class Graph>
  static constexpr void finish(State& st, const Graph& g, builder& b, int root) {
    st.g.output_count = g.output_count;
    st.result = root < 0 ? -1 : read(st, g, b, root);
    for (int k = 0; k < g.output_count; ++k) {
      const int o = tensor_of(g, g.outputs[k]), r = st.seen.root[o];
      const bool written = st.seen.written[r];
      if (is_written_leaf(st, g, r)) continue;
      int id = read(st, g, b, o);
      // as it was stored, and not where a leaf is: an output is read when all is written
      if (written ? !(spec_at(b, id) == g.spec_of(o)) || lies_in_leaf(b, id) : will_change(st, g, b, id)) {
        go_back(st, g, b, r, r);
        id = from_root(st, g, b, o, as_it_was(b, g, r, st.now[r]));
      }
      st.g.outputs[k] = id;
    }
    int spares = 0;
    for (int i = 0; i < g.node_count; ++i)
      if (is_set(st, g, i)) give_storage(st, g, b, i, spares++);
    // what is copied back must not change on the way: copies of leaves come before all that writes them
    for (int i = 0; i < g.node_count; ++i) {
      if (!is_written_leaf(st, g, i) || is_set(st, g, i)) continue;
      go_back(st, g, b, i, i);
      if (st.now[i] != st.home[i] && lies_in_leaf(b, st.now[i])) st.now[i] = dense(b, st.now[i], -1, true);
    }
    for (int i = 0; i < g.node_count; ++i) {
      if (!is_written_leaf(st, g, i) || st.now[i] == st.home[i] || is_set(st, g, i)) continue;
      node n = empty_node;
      n.op = op_code::assign;
      n.inputs = 2;
      n.in[0] = st.home[i];
      n.in[1] = st.now[i];
      n.spec = g.nodes[i].spec;
      st.now[i] = append(b, n);
    }
    for (int k = 0; k < g.output_count; ++k) {
      const int o = tensor_of(g, g.outputs[k]), r = st.seen.root[o];
      if (is_written_leaf(st, g, r) && !is_set(st, g, r)) st.g.outputs[k] = from_root(st, g, b, o, st.now[r]);
    }
  }
};

}  // namespace shardwise::inline v0_1::passes
