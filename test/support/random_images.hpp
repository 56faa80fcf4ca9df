// SPDX-License-Identifier: Apache-2.0
// Random graphs of convolutions and what may stand between them.
#pragma once

#include <shardwise/shardwise.hpp>

#include <random>
#include <vector>

namespace random_images {

namespace sw = shardwise;
using sw::op_code;
using sw::placement;

constexpr int graph_nodes = 64;
using graph = sw::graph<graph_nodes, graph_nodes, 1, 8>;

// Images (2, channels, 5, 4) and weights (channels, channels / groups, 3, 3) in convolutions, their adjoints, functions, views, largest elements and redistributions.
struct maker {
  graph g{};
  sw::builder b = g.edit();
  std::mt19937_64 random;
  std::vector<int> images, weights;

  std::int64_t channels;
  std::int32_t groups;
  sw::op_attr window, of_weight;

  explicit maker(std::uint64_t seed, std::int64_t of = 3, std::int32_t in_groups = 1)
      : random(seed),
        channels(of),
        groups(in_groups),
        window(sw::pack_attributes(sw::convolution_attributes{{1, 1}, {1, 1}, {1, 1}, groups, {5, 4}})),
        of_weight(sw::pack_attributes(sw::convolution_attributes{{1, 1}, {1, 1}, {1, 1}, groups, {3, 3}})) {}
  int below(std::size_t n) { return static_cast<int>(random() % n); }
  int one(const std::vector<int>& of) { return of[static_cast<std::size_t>(below(of.size()))]; }
  const sw::spec& spec_of(int i) const { return b.specs[b.nodes[i].spec]; }

  int leaf(int index, std::int64_t a, std::int64_t c, std::int64_t h, std::int64_t w, placement p, int ranks) {
    const std::int32_t sizes[] = {ranks};
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    s.rank = 4;
    const std::int64_t e[] = {a, c, h, w};
    for (int d = 0; d < 4; ++d) s.extent[d] = e[d];
    sw::make_contiguous(s);
    s.place[0] = p;
    sw::node n = sw::empty_node;
    n.op = op_code::input;
    n.a.v[0] = index;
    n.spec = b.intern(s);
    return b.append(n);
  }
  // -1: no rule admits it.
  int apply(op_code op, const sw::op_attr& a, std::initializer_list<int> operands,
            const sw::custom_operation* own = nullptr) {
    sw::node n = sw::empty_node;
    n.op = op;
    n.a = a;
    if (own) b.set_operation(n, own);
    sw::spec in[sw::max_inputs]{};
    for (const int x : operands) {
      if (x < 0) return -1;
      in[n.inputs] = spec_of(x);
      n.in[n.inputs++] = x;
    }
    const sw::outcome o = own ? sw::infer(own->record, a, in, n.inputs) : sw::infer(op, a, in, n.inputs);
    if (o.error) return -1;
    n.spec = b.intern(o.out);
    return b.append(n);
  }
  void grow(int ranks) {
    using sw::attributes;
    const int x = one(images), y = one(images);
    int made = -1;
    switch (below(13)) {
      case 0:
      case 1: made = apply(op_code::custom, window, {x, one(weights)}, &sw::custom::conv2d); break;
      case 2: made = apply(op_code::custom, window, {x, one(weights)}, &sw::custom::conv2d_dx); break;
      case 3:
        if (const int w = apply(op_code::custom, of_weight, {x, y}, &sw::custom::conv2d_dw);
            w >= 0 && !spec_of(w).place[0].is_partial())
          weights.push_back(apply(op_code::tanh, {}, {w}));
        return;
      case 4: made = apply(op_code::relu, {}, {x}); break;
      case 5: made = apply(op_code::tanh, {}, {x}); break;
      case 6: made = apply(op_code::add, {}, {x, y}); break;
      case 7: made = apply(op_code::mul, {}, {x, y}); break;
      case 8: {
        const std::int64_t flat[] = {2, channels, 20}, back[] = {2, channels, 5, 4};
        made = apply(op_code::reshape, sw::pack_extents(back, 4), {apply(op_code::reshape, sw::pack_extents(flat, 3), {x})});
        break;
      }
      case 9:
        made = apply(op_code::add, {}, {x, apply(op_code::amax, attributes<sw::extent_one_attributes>(2), {x})});
        break;
      case 10: made = apply(op_code::softmax, attributes<sw::softmax_attributes>(0), {x}); break;
      case 11: {
        const std::int64_t turn = 0 | 1 << 4 | 3 << 8 | 2 << 12;
        const int t = apply(op_code::permute, attributes<sw::permute_attributes>(turn), {x});
        made = apply(op_code::permute, attributes<sw::permute_attributes>(turn), {apply(op_code::relu, {}, {t})});
        if (made >= 0) made = apply(op_code::contiguous, {}, {made});
        break;
      }
      default: {
        const placement to = spec_of(x).place[0].is_shard() ? sw::reduced_value() : sw::shard_value(0);
        if (ranks > 1) made = apply(op_code::redistribute, attributes<sw::redistribute_attributes>(0, sw::pack(to)), {x});
      }
    }
    if (made >= 0 && !spec_of(made).place[0].is_partial() && sw::is_contiguous(spec_of(made))) images.push_back(made);
  }
  graph finish(int ranks) {
    for (int k = 0; k < 3; ++k)
      images.push_back(leaf(k, 2, channels, 5, 4, ranks > 1 && k > 0 ? sw::shard_value(0) : sw::reduced_value(), ranks));
    for (int k = 0; k < 2; ++k)
      weights.push_back(leaf(3 + k, channels, channels / groups, 3, 3, sw::reduced_value(), ranks));
    while (b.node_count < graph_nodes - 6) grow(ranks);
    g.finish(b);
    const int outputs = 1 + below(4);
    for (int k = 0; k < outputs; ++k)
      g.outputs[g.output_count++] = images[images.size() - 1 - static_cast<std::size_t>(below(images.size() / 2))];
    if (below(3) == 0) g.outputs[g.output_count++] = one(weights);
    sw::passes::remove_dead(g);
    return g;
  }
};

// Of the operations that are made like users' own.
struct kernels {
  template <class Rank>
  static sw::runtime::kernel_function<Rank> of(const sw::custom_operation* o) {
    if (o == &sw::custom::conv2d) return sw::runtime::custom_entry<sw::custom::conv2d, sw::dtype::f32, Rank>();
    if (o == &sw::custom::conv2d_dx) return sw::runtime::custom_entry<sw::custom::conv2d_dx, sw::dtype::f32, Rank>();
    return sw::runtime::custom_entry<sw::custom::conv2d_dw, sw::dtype::f32, Rank>();
  }
};

}  // namespace random_images
