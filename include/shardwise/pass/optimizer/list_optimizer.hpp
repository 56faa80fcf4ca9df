// SPDX-License-Identifier: Apache-2.0
// fused_optimizer, foreach_optimizer: Adam on lists of parameters, as one update or as one operation for each of its steps.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/pass/framework/holding.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

inline constexpr int max_update_kinds = 8;  // of a group of parameters

// Updates that differ in nothing but their tensors are put off until something reads what one of them writes, or the graph
// ends, and then done together over packs. Their steps are counted in states, one for each parameter, so a block of
// updates may run in another iteration than the run's number of the step says.
//
// Of parameters whose states are in shards rows are updated, values that are computed where the list lies. What gathers updated
// rows and writes them into the parameter is put off, too, in its order, and comes behind the updates.
template <bool Fused>
struct list_rules {
  template <class In, class Out>
  struct state : holding_state<In, Out> {
    using base = holding_state<In, Out>;
    using base::capacity, base::out, base::to, base::cursor, base::work, base::storage, base::slots, base::within,
        base::list, base::waiting, base::waits;

    bool listed[capacity]{};                // lies in a pack
    bool used[capacity]{};                  // an update's result that somebody reads
    static constexpr int write_cost = 320;  // statements of an update that is written

    int parameters[capacity]{};
    bool any_low = false;
    int widened[capacity]{};    // 1: gradient of two bytes, which a list has as floats; then its cast's new node, plus 2
    int followers[capacity]{};  // what is put off because it moves updated values
    int follows = 0;
    bool follower[capacity]{};
    bool batched = false;            // some of them are
    int counters = 0;                // states so far
    int clip[1 << max_axes];         // by axes that split a gradient
    int scaled[Out::spec_capacity];  // spec of the product with it, by the gradient's

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int& c : clip) c = -1;
      for (int& s : scaled) s = -1;
      for (int i = 0; i < g.node_count; ++i) {
        const node& n = g.nodes[i];
        if (n.op == op_code::state)
          if (const std::int64_t index = attributes_of<leaf_attributes>(n.a).index; index >= counters)
            counters = static_cast<int>(index) + 1;
        if (n.op == op_code::pack)
          for (int k = 0; k < n.inputs; ++k) listed[n.in[k]] = true;
        if (n.op == op_code::in_place) listed[n.in[1]] = true;
        for (int k = 0; k < n.inputs; ++k) used[n.in[k]] = used[n.in[k]] || is_update(g.nodes[n.in[k]].op);
      }
      any_low = has_low_precision(g);
      for (int i = 0; any_low && i < g.node_count; ++i)
        if (has_low_gradient(g, i) && may_join(g, i)) widened[g.nodes[i].in[1]] = 1;
      for (int k = 0; k < g.output_count; ++k) used[g.outputs[k]] = true;
    }

    static constexpr bool has_low_gradient(const In& g, int i) {
      return is_adam(g.nodes[i].op) && is_low_precision(g.specs[g.nodes[g.nodes[i].in[1]].spec].type);
    }
    // A node, and behind a gradient of two bytes its cast.
    constexpr void copy_widened(builder& b, const In& g, int i) {
      base::copy(b, g, i);
      if (!any_low || widened[i] == 0) return;
      spec s = contiguous(b.specs[b.nodes[to[i]].spec]);
      s.type = dtype::f32;
      const op_attr a = attributes<cast_attributes>(static_cast<std::int64_t>(dtype::f32));
      widened[i] = 2 + b.emit(op_code::cast, a, 0, b.intern(s), b.nodes[to[i]].scope, to[i]);
    }
    constexpr bool may_join(const In& g, int i) const {
      const node& n = g.nodes[i];
      if (!is_adam(n.op) || attributes_of<adam_attributes>(n.a).counts != 0) return false;
      for (int k : {0, 2, 3, has_largest(n) ? 4 : 3})
        if (!(is_variable_leaf(g.nodes[n.in[k]].op) || (k == 0 && writes_rows(g, i))) || listed[n.in[k]] ||
            !is_contiguous(g.specs[g.nodes[n.in[k]].spec]))
          return false;
      return true;
    }
    static constexpr bool has_largest(const node& n) {
      return n.op == op_code::adam_with && (update_options_of(n.a) & keeps_largest) != 0;
    }
    // Whether it updates rows of a parameter, a value of their own.
    constexpr bool writes_rows(const In& g, int i) const {
      const int rows = g.nodes[i].in[0];
      return g.nodes[rows].op == op_code::redistribute && storage.owner[rows] == rows && has_storage(g, rows);
    }
    // Whether node i moves what updates that wait will have written: it may wait with them, of a batch's members with the
    // first one all.
    constexpr bool may_follow(const In& g, int i) const {
      if (joins_batch(g, i)) return follower[i - 1];
      const node& n = g.nodes[i];
      bool any = false;
      for (int k = 0; k < n.inputs; ++k) any = any || to[n.in[k]] < 0;
      return any && waits > 0 && (n.op == op_code::redistribute || n.op == op_code::assign);
    }
    static constexpr bool writes_leaf(const In& g, int i) { return is_variable_leaf(g.nodes[g.nodes[i].in[0]].op); }
    static constexpr bool alike(const In& g, int i, int j) {
      const node &x = g.nodes[i], &y = g.nodes[j];
      const auto a = attributes_of<adam_attributes>(x.a), c = attributes_of<adam_attributes>(y.a);
      return writes_leaf(g, i) == writes_leaf(g, j) && x.op == y.op && update_options_of(x.a) == update_options_of(y.a) &&
             a.clipped == c.clipped && a.decoupled == c.decoupled && a.group == c.group && x.f == y.f &&
             g.specs[x.spec].type == g.specs[y.spec].type && (a.clipped == 0 || x.in[x.inputs - 1] == y.in[y.inputs - 1]);
    }

    // The list of operand k of the updates in list[0], ..., which are leaves or rows.
    constexpr int pack_operands(builder& b, const In& g, int count, int k) {
      for (int j = 0; j < count; ++j) {
        const int own = g.nodes[list[j]].in[k];
        listed[own] = true;
        parameters[j] = to[own];
      }
      return emit_pack(b, slots, parameters, count, k > 0 || writes_leaf(g, list[0]), -1, within);
    }
    // The clip factor, equal on all ranks, by the name that a product with gradient `id` asks for.
    constexpr int clip_for(builder& b, int factor, int id) {
      const unsigned split = split_axes(b.specs[b.nodes[id].spec]);
      int& known = clip[split];
      if (known >= 0) return known;
      known = factor;
      for (int a = 0; a < max_axes; ++a) {
        if (((split >> a) & 1U) == 0) continue;
        spec s = b.specs[b.nodes[known].spec];
        if (s.place[a].is_reduced()) continue;
        s.place[a] = reduced_value();
        const auto of = redistribute_attributes{.axis = a, .to = pack(reduced_value())};
        known = b.emit(op_code::redistribute, pack_attributes(of), 0, b.intern(s), -1, known);
      }
      return known;
    }
    constexpr int pack_gradients(builder& b, const In& g, int count) {
      for (int& c : clip) c = -1;
      for (int& s : scaled) s = -1;
      for (int j = 0; j < count; ++j) {
        const node& n = g.nodes[list[j]];
        const int x = n.in[1];
        int id = widened[x] > 1 ? widened[x] - 2 : to[x];
        if (attributes_of<adam_attributes>(n.a).clipped == 1) {  // scaled by the clip factor
          const int factor = clip_for(b, to[n.in[n.inputs - 1]], id);
          int& product = scaled[b.nodes[id].spec];
          if (product < 0) {
            const spec in[] = {b.specs[b.nodes[id].spec], b.specs[b.nodes[factor].spec]};
            const outcome o = infer(op_code::mul, {}, in, 2);
            if (o.error && !b.error) b.error = o.error;
            product = b.intern(o.out);
          }
          const int scope = b.nodes[id].scope;
          id = b.emit(op_code::mul, {}, 0, product, -1, id, factor);
          b.nodes[id].scope = scope;
        } else if (listed[x] || (widened[x] == 0 && (storage.owner[x] != x || !has_storage(g, x)))) {
          id = emit_one(b, op_code::contiguous, id, b.intern(contiguous(b.specs[b.nodes[id].spec])));
        }
        listed[x] = true;
        parameters[j] = id;
      }
      return emit_pack(b, slots, parameters, count, false, -1, within);
    }
    constexpr int pack_steps(builder& b, const In& g, int count) {
      int spec_id = -1;
      for (int j = 0; j < count; ++j) {
        const node& n = g.nodes[list[j]];
        if (spec_id < 0) spec_id = b.intern(scalar_like(g.specs[n.spec]));
        const std::int64_t parameter = attributes_of<leaf_attributes>(g.nodes[n.in[2]].a).parameter;
        const auto of = leaf_attributes{.index = counters++, .parameter = parameter, .which = step_count};
        parameters[j] = b.emit(op_code::state, pack_attributes(of), 0, spec_id, -1);
        b.nodes[parameters[j]].scope = n.scope;
      }
      return emit_pack(b, slots, parameters, count, true, -1, within);
    }

    // All updates that wait, kind by kind.
    constexpr void write_waiting(builder& b, const In& g) {
      const int all = waits;
      work.take(write_cost * all);
      for (int k = 0; k < all; ++k) base::hold(g, waiting[k], -1);
      waits = 0;
      for (int k = 0; k < all; ++k) {
        const int head = waiting[k];
        if (head < 0) continue;
        int count = 0;
        for (int j = k; j < all; ++j)
          if (waiting[j] >= 0 && alike(g, head, waiting[j])) {
            list[count++] = waiting[j];
            waiting[j] = -1;
          }
        const node& n = g.nodes[head];
        const int p = pack_operands(b, g, count, 0), m = pack_operands(b, g, count, 2), v = pack_operands(b, g, count, 3);
        const int largest = has_largest(n) ? pack_operands(b, g, count, 4) : -1;
        const int d = pack_gradients(b, g, count);
        const int flat = b.nodes[p].spec;
        // a dynamic loss scale's factor says whether all this happens; -1: it does
        const int factor = attributes_of<adam_attributes>(n.a).clipped == 2 ? to[n.in[n.inputs - 1]] : -1;
        const std::int64_t clipped = factor >= 0 ? 2 : 0;
        const int steps = emit_steps(b, g, count, factor);
        int done = p;
        const std::int64_t decoupled = attributes_of<adam_attributes>(n.a).decoupled,
                           group = attributes_of<adam_attributes>(n.a).group;
        if constexpr (Fused) {
          const auto of = adam_attributes{.clipped = clipped, .decoupled = decoupled, .counts = 1, .group = group};
          op_attr a = pack_attributes(of);
          a.v[4] = update_options_of(n.a);
          done = b.emit(n.op, a, n.f, flat, -1, p, d, m, v, largest < 0 ? steps : largest);
          if (largest >= 0) add_operand(b, done, steps);
          if (factor >= 0) add_operand(b, done, factor);
        } else {
          const int state = b.nodes[m].spec;
          const std::int64_t options = update_options_of(n.a);
          const auto term = [clipped, decoupled, group, options](int which) {
            op_attr a = pack_attributes(
                adam_term_attributes{.clipped = clipped, .decoupled = decoupled, .which = which, .group = group});
            a.v[4] = which == 2 ? 0 : options;
            return a;
          };
          const op_code moments = n.op == op_code::adam ? op_code::adam_term : op_code::adam_term_with;
          const int m1 = b.emit(moments, term(0), n.f, state, -1, m, d, p, factor);
          const int v1 = b.emit(moments, term(1), n.f, state, -1, v, d, p, factor);
          const int w1 = largest < 0 ? v1 : b.emit(moments, term(3), n.f, state, -1, largest, v1, factor);
          const int p1 = b.emit(op_code::adam_term, term(2), n.f, flat, -1, p, m1, w1, steps, factor);
          b.emit(op_code::assign, {}, 0, state, -1, m, m1);
          b.emit(op_code::assign, {}, 0, state, -1, v, v1);
          if (largest >= 0) b.emit(op_code::assign, {}, 0, state, -1, largest, w1);
          done = writes_leaf(g, head) ? b.emit(op_code::assign, {}, 0, flat, -1, p, p1) : p1;  // rows are gathered
        }
        const std::int64_t size = static_cast<std::int64_t>(size_of(b.specs[flat].type));
        std::int64_t at = 0;
        for (int j = 0; j < count; ++j) {
          const int leaf = to[g.nodes[list[j]].in[0]];
          const op_attr slot = pack_attributes(storage_attributes{.at = at, .goes_on = 0, .leaves = 0});
          to[list[j]] = used[list[j]] ? b.emit(op_code::unpack, slot, 0, b.nodes[leaf].spec, -1, done) : done;
          at += slots.of(b, leaf) / size;
        }
      }
    }
    constexpr void write_followers(builder& b, const In& g) {
      work.take(40 * follows);
      for (int k = 0; k < follows; ++k) {
        base::hold(g, followers[k], -1);
        base::copy(b, g, followers[k]);
      }
      follows = 0;
    }
    constexpr int emit_steps(builder& b, const In& g, int count, int factor) {
      const int s = pack_steps(b, g, count);
      return b.emit(op_code::advance, {}, 0, b.nodes[s].spec, -1, s, factor);
    }
    static constexpr void add_operand(builder& b, int i, int operand) {
      if (i >= b.node_capacity) return;  // one that did not fit
      node& n = b.nodes[i];
      n.in[n.inputs++] = operand;
    }

    constexpr bool step(const In& g, builder& b) {
      if (cursor > g.node_count) return false;
      const int i = cursor;
      bool depends = i == g.node_count;
      if (!depends)
        each_starting(g, i, [&](int j) {
          depends = depends || base::conflicts(g, j);
          for (int k = 0; k < g.nodes[j].inputs; ++k) depends = depends || to[g.nodes[j].in[k]] < 0;
        });
      const bool later = i < g.node_count && may_follow(g, i);
      if (depends && !later && work.defer(write_cost * waits)) return true;
      ++cursor;
      if (depends && !later) {
        write_waiting(b, g);
        write_followers(b, g);
      }
      if (later) {
        follower[i] = true;
        followers[follows++] = i;
        batched = batched || batch_number(g.nodes[i]) != 0;
        base::hold(g, i, 1);
      } else if (i < g.node_count) {
        if (may_join(g, i)) {
          waiting[waits++] = i;
          base::hold(g, i, 1);
        } else {
          copy_widened(b, g, i);
        }
      } else {
        base::set_outputs(g);
        if (batched && !b.overflowed()) number_batches(b);  // updates came before some of them
      }
      return cursor <= g.node_count;
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    int updates = 0, low = 0, largest = 0, groups = 1;  // the largest number of a group, and the main one
    bool rows = false;
    for (int i = 0; i < g.node_count; ++i) {
      if (!is_adam(g.nodes[i].op)) continue;
      ++updates;
      if (g.nodes[i].op == op_code::adam_with) ++largest;
      low += is_low_precision(g.specs[g.nodes[g.nodes[i].in[1]].spec].type) ? 1 : 0;
      rows = rows || !is_variable_leaf(g.nodes[g.nodes[i].in[0]].op);
      if (const int group = static_cast<int>(optimizer_group(g.nodes[i].op, g.nodes[i].a)); group >= groups)
        groups = group + 1;
    }
    return {g.node_count + 9 * updates + 2 * largest + low + groups * max_update_kinds * (rows ? 64 : 32) + 2,
            g.spec_count + (updates < 32 ? 4 * updates : 128) + low + 4};
  }
};

}  // namespace passes

// Adam of all parameters as one update over contiguous ranges of the arena: parameters side by side, and their gradients,
// moments and step counters in the same order. Element by element the same arithmetic: the same bits. Clipped gradients
// are scaled by an operation of their own, rounded once more where weight decay is added. Gradients of two bytes are cast to floats,
// which a list has. Rows of parameters whose states are in
// shards are a list of their own; the price: the rows of all modules are stored at once.
struct fused_optimizer : passes::rewriting<passes::list_rules<true>> {
  using key = struct list_optimizer;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs>;
};

// The same as a chain over the lists: steps advanced, first moments, second moments, parameters, each a new value that is
// then assigned.
struct foreach_optimizer : passes::rewriting<passes::list_rules<false>> {
  using key = struct list_optimizer;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs>;
};

}  // namespace shardwise::inline v0_1
