// SPDX-License-Identifier: Apache-2.0
// Blocks of updates over lists: finding them, taking copies out of them.
#pragma once

#include <shardwise/pass/analysis/descendants.hpp>
#include <shardwise/pass/framework/rewrite.hpp>

namespace shardwise::inline v0_1 {

// One update over lists. All five lists, and with amsgrad a sixth, name the same parameters in the same order, one slot each; the gradients' may
// have one flat tensor for several slots.
struct optimizer_block {
  int update = -1;  // adam (with options or without), or the adam_term that gives the parameters
  int step = -1;    // what advances the counters; -1: nothing within five levels
  int parameters = -1, gradients = -1, first_moments = -1, second_moments = -1, steps = -1;  // packs
  int largest = -1;  // of the largest second moments, -1: there are none
  bool fused = false;
  bool is_block = false;
};

namespace passes {

inline constexpr int search_levels = 5;

// Breadth first from operands of `from`, at most search_levels of them: the first node that `f` accepts, -1: none.
template <class Graph, class F>
constexpr int find_ancestor(const Graph& g, int from, F&& f) {
  constexpr int most = 1024;
  int queue[most]{}, count = 0, begin = 0;
  const auto push = [&](int i) {
    for (int k = 0; k < g.nodes[i].inputs && count < most; ++k) queue[count++] = g.nodes[i].in[k];
  };
  push(from);
  for (int level = 0; level < search_levels; ++level)
    for (const int end = count; begin < end; ++begin) {
      if (f(queue[begin])) return queue[begin];
      push(queue[begin]);
    }
  return -1;
}

template <class Graph>
constexpr optimizer_block block_at(const Graph& g, int i) {
  optimizer_block b;
  const node& n = g.nodes[i];
  const bool fused = is_adam(n.op) && g.nodes[n.in[0]].op == op_code::pack;
  const bool foreach = n.op == op_code::adam_term && attributes_of<adam_term_attributes>(n.a).which == 2 &&
                       g.nodes[n.in[0]].op == op_code::pack;
  if (!fused && !foreach) return b;
  b.is_block = true;
  b.fused = fused;
  b.update = i;
  b.parameters = n.in[0];
  if (fused) {
    b.gradients = n.in[1];
    b.first_moments = n.in[2];
    b.second_moments = n.in[3];
    if (n.op == op_code::adam_with && (update_options_of(n.a) & keeps_largest) != 0) b.largest = n.in[4];
  } else {
    b.first_moments = g.nodes[n.in[1]].in[0];
    b.gradients = g.nodes[n.in[1]].in[1];
    int second = n.in[2];
    if (attributes_of<adam_term_attributes>(g.nodes[second].a).which == 3) {
      b.largest = g.nodes[second].in[0];
      second = g.nodes[second].in[1];
    }
    b.second_moments = g.nodes[second].in[0];
  }
  b.step = find_ancestor(g, i, [&](int k) { return g.nodes[k].op == op_code::advance; });
  if (b.step >= 0) b.steps = g.nodes[b.step].in[0];
  return b;
}

}  // namespace passes

// The fused updates of a graph, in order: node ids that fused_block takes.
template <class Graph>
constexpr node_list<Graph::node_capacity> get_all_fused_optimizer_blocks(const Graph& g) {
  node_list<Graph::node_capacity> r;
  for (int i = 0; i < g.node_count; ++i)
    if (is_adam(g.nodes[i].op) && g.nodes[g.nodes[i].in[0]].op == op_code::pack) r.id[r.count++] = i;
  return r;
}

// The block whose update is node `update`, or why there is none.
struct block_outcome {
  optimizer_block block;
  finding error;
};
template <class Graph>
constexpr block_outcome fused_block(const Graph& g, int update) {
  if (update < 0 || update >= g.node_count) return {{}, {problem::split_unsupported, update}};
  block_outcome r{passes::block_at(g, update), {}};
  if (!r.block.is_block || !r.block.fused) r.error = {problem::split_unsupported, update};
  else if (r.block.step < 0) r.error = {problem::optim_step_missing, update};
  return r;
}

namespace passes {

struct remove_copy_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::out, base::to, base::cursor, base::work;

    storage_map<capacity> storage;
    slot_table<Out::spec_capacity> slots;
    int uses[capacity]{};
    bool listed[capacity]{};    // a pack or an update says where it lies
    int block_of[capacity];     // of a pack that is written anew: the block's update; -1: none
    bool tail[capacity]{};      // its last link
    bool flat[capacity]{};      // a sum of a bucket that becomes a list's operand
    int order[capacity]{};      // by position in the new list: position in the old one; blocks one after another
    int order_begin[capacity];  // by update
    std::int64_t within[capacity]{};
    int list[capacity]{};
    int ordered = 0;

    constexpr void begin(const In& g) {
      base::begin(g);
      slots.clear();
      for (int i = 0; i < capacity; ++i) block_of[i] = order_begin[i] = -1;
      for (int i = 0; i < g.node_count; ++i) {
        const node& n = g.nodes[i];
        for (int k = 0; k < n.inputs; ++k) ++uses[n.in[k]];
        if (n.op == op_code::pack)
          for (int k = attributes_of<storage_attributes>(n.a).goes_on != 0 ? 1 : 0; k < n.inputs; ++k)
            listed[n.in[k]] = true;
        if (n.op == op_code::in_place) listed[n.in[1]] = true;
      }
      for (int k = 0; k < g.output_count; ++k) ++uses[g.outputs[k]];
    }

    // The bucket's sum that position `x` of a list is copied from, -1: it is no such copy.
    constexpr int copied_from(const In& g, int x) const {
      const node& n = g.nodes[x];
      if (n.op != op_code::contiguous || uses[x] != 1) return -1;
      const node& u = g.nodes[n.in[0]];
      if (u.op != op_code::unpack) return -1;
      const int sum = u.in[0];
      return g.nodes[sum].op == op_code::redistribute && has_storage(g, sum) && storage.owner[sum] == sum && !listed[sum]
                 ? sum
                 : -1;
    }

    constexpr bool links_used_once(const In& g, int pack) const {
      for (; attributes_of<storage_attributes>(g.nodes[pack].a).goes_on != 0; pack = g.nodes[pack].in[0])
        if (uses[g.nodes[pack].in[0]] != 1) return false;
      return true;
    }
    constexpr void claim(const In& g, int pack, int update) {
      tail[pack] = true;
      for (;; pack = g.nodes[pack].in[0]) {
        block_of[pack] = update;
        if (attributes_of<storage_attributes>(g.nodes[pack].a).goes_on == 0) return;
      }
    }

    // Gradients that are copied out of their bucket stand where the bucket lies, and the bucket in the list: the lists
    // take the buckets' order. Only if all of a bucket is in the list.
    constexpr void reorder(const In& g, int update) {
      const optimizer_block block = block_at(g, update);
      if (!block.is_block || block.step < 0 || g.nodes[block.gradients].op != op_code::pack) return;
      const int packs[] = {block.parameters,     block.gradients, block.first_moments,
                           block.second_moments, block.steps,     block.largest};
      for (const int p : packs)
        if (p >= 0 && (g.nodes[p].op != op_code::pack || block_of[p] >= 0 || !links_used_once(g, p))) return;
      const auto items = packed_tensors(g, block.gradients);
      if (packed_tensors(g, block.parameters).count != items.count) return;
      work.take(60 * items.count);
      int sum_of[capacity]{};                  // by position, plus one; 0: no copy of a sum that is free
      int head[capacity]{}, next[capacity]{};  // a sum's positions, the last one first; plus one
      std::int64_t bytes[capacity]{};          // of a sum, in this list
      for (int k = 0; k < items.count; ++k) {
        const int sum = copied_from(g, items.id[k]);
        if (sum < 0 || flat[sum]) continue;
        sum_of[k] = sum + 1;
        next[k] = head[sum];
        head[sum] = k + 1;
        bytes[sum] += slot_bytes(g.spec_of(items.id[k]));
      }
      const int begin = ordered;
      const auto offset = [&](int position) {
        return attributes_of<storage_attributes>(g.nodes[g.nodes[items.id[position]].in[0]].a).at;
      };
      for (int k = 0; k < items.count; ++k) {
        const int sum = sum_of[k] - 1;
        if (sum < 0 || flat[sum] || bytes[sum] != slot_bytes(g.spec_of(sum))) continue;
        flat[sum] = true;
        const int first = ordered;
        for (int j = head[sum]; j > 0; j = next[j - 1]) order[ordered++] = j - 1;
        sort(first, ordered, offset);
      }
      if (ordered == begin) return;
      for (int k = 0; k < items.count; ++k)
        if (sum_of[k] == 0 || !flat[sum_of[k] - 1]) order[ordered++] = k;
      order_begin[update] = begin;
      for (const int p : packs)
        if (p >= 0) claim(g, p, update);
    }
    // Positions order[begin] to order[end - 1] by offset; what is in order already costs little.
    template <class Offset>
    constexpr void sort(int begin, int end, const Offset& offset) {
      for (int width = 1; width < end - begin; width *= 2)
        for (int low = begin; low + width < end; low += 2 * width) {
          const int middle = low + width, high = middle + width < end ? middle + width : end;
          if (offset(order[middle - 1]) <= offset(order[middle])) continue;
          work.take(10 * (high - low));
          int x = low, y = middle, count = 0;
          while (x < middle || y < high)
            list[count++] = y == high || (x < middle && offset(order[x]) <= offset(order[y])) ? order[x++] : order[y++];
          for (int k = 0; k < count; ++k) order[low + k] = list[k];
        }
    }

    constexpr int write_list(builder& b, const In& g, int pack, int update) {
      const auto items = packed_tensors(g, pack);
      work.take(30 * items.count);
      const int* const by = order + order_begin[update];
      int count = 0, before = -1;
      for (int k = 0; k < items.count; ++k) {
        const int x = items.id[by[k]];
        const int sum = copied_from(g, x);
        const bool joined = sum >= 0 && flat[sum];
        if (joined && sum == before) continue;
        before = joined ? sum : -1;
        list[count++] = to[joined ? sum : x];
      }
      const bool leaves = attributes_of<storage_attributes>(g.nodes[pack].a).leaves != 0;
      return emit_pack(b, slots, list, count, leaves, g.nodes[pack].scope, within);
    }

    // Whether the value that node i assigns may be computed where it goes: nothing reads what was there in between, and
    // nothing else is written there before the value's last use.
    constexpr bool may_lie_there(const In& g, int i) {
      const node& n = g.nodes[i];
      const int value = n.in[1], place = storage.owner[n.in[0]];
      const node& x = g.nodes[value];
      if (!is_adam_term(x.op) || listed[value] || storage.owner[value] != value || uses[i] != 0) return false;
      if (x.in[0] != n.in[0] || !(g.specs[n.spec] == g.specs[x.spec])) return false;
      work.take(8 * (g.node_count - value));
      for (int j = value + 1; j < g.node_count; ++j) {
        if (j == i) continue;
        const node& y = g.nodes[j];
        for (int k = 0; k < y.inputs; ++k)
          if (storage.owner[y.in[k]] == place && (j < i || writes_operand(y, k))) return false;
      }
      return true;
    }

    constexpr bool step(const In& g, builder& b) {
      const int n = g.node_count;
      if (cursor > 2 * n) return false;
      const int at = cursor++;
      if (at < n) {
        if (is_adam(g.nodes[at].op) || is_adam_term(g.nodes[at].op)) reorder(g, at);
        return true;
      }
      if (at == 2 * n) {
        base::set_outputs(g);
        return false;
      }
      const int i = at - n;
      if (block_of[i] >= 0) {
        if (tail[i]) to[i] = write_list(b, g, i, block_of[i]);
      } else {
        base::copy(b, g, i);
        node& copied = out.nodes[to[i]];
        if (copied.op == op_code::assign && may_lie_there(g, i)) copied.op = op_code::in_place;
        if (copied.op == op_code::unpack) move_slot(g, i, copied);
      }
      return true;
    }

    // A slot of an update whose list is in another order.
    constexpr void move_slot(const In& g, int i, node& n) {
      int source = g.nodes[i].in[0];
      if (g.nodes[source].op == op_code::assign || g.nodes[source].op == op_code::in_place) source = g.nodes[source].in[1];
      if (order_begin[source] < 0) return;
      const auto items = packed_tensors(g, block_at(g, source).parameters);
      work.take(12 * items.count);
      const std::int64_t size = static_cast<std::int64_t>(size_of(g.spec_of(i).type));
      const std::int64_t at = attributes_of<storage_attributes>(n.a).at;
      std::int64_t old = 0;
      int position = 0;
      for (; position < items.count && old < at; ++position) old += slot_bytes(g.spec_of(items.id[position])) / size;
      std::int64_t moved = 0;
      for (const int* by = order + order_begin[source]; *by != position; ++by)
        moved += slot_bytes(g.spec_of(items.id[*by])) / size;
      n.a = pack_attributes(storage_attributes{.at = moved, .goes_on = 0, .leaves = 0});
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    return {g.node_count + 16, g.spec_count + 16};
  }
};

}  // namespace passes

// An assignment of a list's new values becomes the place where they are computed, and gradients that were copied out of
// their bucket's sum are read where it lies: the optimizer's lists take the order of the buckets. The same bits.
struct remove_copy_from_optimizer : passes::rewriting<passes::remove_copy_rules> {
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates>;
};

}  // namespace shardwise::inline v0_1
