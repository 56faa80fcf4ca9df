// SPDX-License-Identifier: Apache-2.0
// split_fused_optimizer: one fused update becomes two, by its gradients.
#pragma once

#include <shardwise/pass/optimizer/optimizer_blocks.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

struct split_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::out, base::to, base::cursor, base::work;
    static constexpr int step_cost = 30;

    slot_table<Out::spec_capacity> slots;
    optimizer_block block;
    bool chosen[capacity]{};    // gradients: operands of the block's list
    bool replaced[capacity]{};  // packs, step and update of the block
    bool in_first[capacity]{};  // by position among the parameters
    std::int64_t within[capacity]{};
    int list[capacity]{};
    int parts[2] = {-1, -1};

    constexpr void begin(const In& g) {
      base::begin(g);
      slots.clear();
    }

    // Which block, once `chosen` is set: `count` gradients were asked for.
    constexpr void choose(const In& g, int update, int count) {
      const block_outcome found = fused_block(g, update);
      block = found.block;
      if (found.error) {
        out.error = found.error;
        return;
      }
      if (count < 1) {
        out.error = {problem::split_empty, update};
        return;
      }
      const auto parameters = packed_tensors(g, block.parameters), gradients = packed_tensors(g, block.gradients);
      int first = 0, position = 0;
      std::int64_t begin = 0, end = 0;
      for (int k = 0; k < gradients.count; ++k) {
        end += slot_bytes(g.spec_of(gradients.id[k]));
        for (; position < parameters.count && begin < end; ++position) {
          in_first[position] = chosen[gradients.id[k]];
          first += in_first[position] ? 1 : 0;
          begin += slot_bytes(g.spec_of(parameters.id[position]));
        }
      }
      if (first == 0 || first == parameters.count) {
        out.error = {problem::split_one_sided, update, -1, -1, first, parameters.count};
        return;
      }
      replaced[block.update] = replaced[block.step] = true;
      for (int pack :
           {block.parameters, block.gradients, block.first_moments, block.second_moments, block.steps, block.largest})
        for (; pack >= 0; pack = g.nodes[pack].in[0]) {
          replaced[pack] = true;
          if (attributes_of<storage_attributes>(g.nodes[pack].a).goes_on == 0) break;
        }
    }

    constexpr int write_list(builder& b, const In& g, int pack, bool first) {
      const auto items = packed_tensors(g, pack);
      work.take(40 * items.count);
      int count = 0;
      for (int k = 0; k < items.count; ++k)
        if ((pack == block.gradients ? chosen[items.id[k]] : in_first[k]) == first) list[count++] = to[items.id[k]];
      const bool leaves = attributes_of<storage_attributes>(g.nodes[pack].a).leaves != 0;
      return emit_pack(b, slots, list, count, leaves, g.nodes[pack].scope, within);
    }

    constexpr int write_block(builder& b, const In& g, bool first) {
      node n = g.nodes[block.update];
      n.in[0] = write_list(b, g, block.parameters, first);
      n.in[1] = write_list(b, g, block.gradients, first);
      n.in[2] = write_list(b, g, block.first_moments, first);
      n.in[3] = write_list(b, g, block.second_moments, first);
      const int steps = block.largest < 0 ? 4 : 5;
      if (block.largest >= 0) n.in[4] = write_list(b, g, block.largest, first);
      node s = g.nodes[block.step];
      s.in[0] = write_list(b, g, block.steps, first);
      s.spec = b.nodes[s.in[0]].spec;
      if (s.inputs > 1) s.in[1] = to[s.in[1]];  // a dynamic loss scale's factor
      if (n.inputs > steps + 1) n.in[steps + 1] = to[n.in[steps + 1]];
      n.in[steps] = b.append(s);
      n.spec = b.nodes[n.in[0]].spec;
      return b.append(n);
    }

    constexpr bool step(const In& g, builder& b) {
      if (b.error || cursor > g.node_count) return false;
      const int i = cursor++;
      if (i == g.node_count) {
        base::set_outputs(g);
        return false;
      }
      if (i == block.update) {
        parts[0] = write_block(b, g, true);
        parts[1] = write_block(b, g, false);
      } else if (!replaced[i]) {
        if (g.nodes[i].op == op_code::unpack && g.nodes[i].in[0] == block.update) copy_slot(b, g, i);
        else base::copy(b, g, i);
      }
      return true;
    }

    // A slot of the update's result: of one of the two now.
    constexpr void copy_slot(builder& b, const In& g, int i) {
      const auto items = packed_tensors(g, block.parameters);
      work.take(20 * items.count);
      const std::int64_t size = static_cast<std::int64_t>(size_of(g.spec_of(i).type));
      const std::int64_t begin = attributes_of<storage_attributes>(g.nodes[i].a).at;
      std::int64_t at = 0, before[2] = {0, 0};
      int k = 0;
      for (; k < items.count && at < begin; ++k) {
        const std::int64_t slot = slot_bytes(g.spec_of(items.id[k])) / size;
        at += slot;
        before[in_first[k] ? 0 : 1] += slot;
      }
      node n = g.nodes[i];
      n.in[0] = parts[in_first[k] ? 0 : 1];
      n.a = pack_attributes(storage_attributes{.at = before[in_first[k] ? 0 : 1], .goes_on = 0, .leaves = 0});
      to[i] = b.append(n);
    }
  };

  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    return {g.node_count + 24, g.spec_count + 16};
  }
};

// Block number Block by the gradients at the given positions of its list.
template <int Block, int... Gradients>
struct split_at : split_rules {
  template <class In, class Out>
  struct state : split_rules::template state<In, Out> {
    using base = split_rules::template state<In, Out>;
    constexpr void begin(const In& g) {
      base::begin(g);
      const auto blocks = get_all_fused_optimizer_blocks(g);
      if (Block < 0 || Block >= blocks.count) {
        base::out.error = {problem::split_unsupported, Block};
        return;
      }
      const auto gradients = packed_tensors(g, block_at(g, blocks.id[Block]).gradients);
      const int wanted[] = {Gradients..., -1};
      for (const int k : wanted)
        if (k >= 0 && k < gradients.count) base::chosen[gradients.id[k]] = true;
      base::choose(g, blocks.id[Block], static_cast<int>(sizeof...(Gradients)));
    }
  };
};

}  // namespace passes

// Fused update number Block becomes two: of the gradients at positions Gradients of its list, and of the others, each in
// the order they had, each with counters of its own.
template <int Block, int... Gradients>
struct split_fused_optimizer : passes::rewriting<passes::split_at<Block, Gradients...>> {
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::collectives>;
};

}  // namespace shardwise::inline v0_1
