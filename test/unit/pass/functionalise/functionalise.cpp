// SPDX-License-Identifier: Apache-2.0
// functionalise: random programs of views, redistributions and writes against memory that is really shared, bit for bit, on
// one and two ranks; the same graphs from constants in stages of any size as at run time; worked programs; and what may
// not come before it.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/functionalise/functionalise.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <random_graph.hpp>

#include <memory>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

struct line : sw::axis<1> {};
using mesh = sw::mesh<line>;

// --- random programs -------------------------------------------------------------------------------------------------

template <int N>
struct two_of : sw::axis<N> {};
constexpr int drawn_nodes = 30, room = 380, leaves = 3;
using graph = sw::graph<room, room>;

// Inputs, views and redistributions of anything, some to what it is, kernels, and writes to anything of the extents and
// placement that fit.
constexpr graph draw(std::uint64_t seed, int ranks = 1) {
  test::dice roll{seed};
  graph g;
  sw::builder b = g.edit();
  const sw::placement places[] = {sw::replicate_value(), sw::reduced_value(), sw::shard_value(0), sw::shard_value(1)};
  const std::int32_t sizes[] = {ranks};
  for (int i = 0; i < leaves; ++i) {
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    s.rank = 2;
    s.extent[0] = i == 2 ? 6 : 4;
    s.extent[1] = i == 2 ? 4 : 6;
    sw::make_contiguous(s);
    sw::node n = sw::empty_node;
    n.op = op_code::input;
    n.a.v[0] = i;
    n.spec = b.intern(s);
    b.append(n);
  }
  const op_code unary[] = {op_code::scale, op_code::relu, op_code::abs, op_code::contiguous};
  const op_code binary[] = {op_code::add, op_code::sub, op_code::mul};
  const std::int64_t shapes[][4] = {{24, 0, 0, 1}, {2, 12, 0, 2}, {4, 6, 0, 2}, {6, 4, 0, 2},
                                    {2, 3, 4, 3},  {12, 0, 0, 1}, {3, 4, 0, 2}};
  for (int attempt = 0; attempt < 12 * drawn_nodes && b.node_count < drawn_nodes; ++attempt) {
    sw::node n = sw::empty_node;
    const int recent = roll(2) == 0 && b.node_count > 5 ? b.node_count - 1 - roll(4) : roll(b.node_count);
    n.in[0] = recent;
    n.inputs = 1;
    const sw::spec x = b.specs[b.nodes[recent].spec];
    const int kind = roll(18);
    if (kind < 2) {
      if (x.rank < 2) continue;
      n.op = op_code::permute;
      const int turn = 1 + roll(x.rank - 1);
      for (int d = 0; d < x.rank; ++d) n.a.v[0] |= std::int64_t{(d + turn) % x.rank} << (4 * d);
    } else if (kind < 4) {
      n.op = op_code::reshape;
      const auto& to = shapes[roll(7)];
      n.a = sw::pack_extents(&to[0], static_cast<int>(to[3]));
    } else if (kind < 7) {
      n.op = op_code::slice;
      const int d = roll(x.rank);
      n.a.v[0] = d;
      n.a.v[1] = roll(static_cast<int>(x.extent[d]));
      n.a.v[2] = 1 + roll(static_cast<int>(x.extent[d] - n.a.v[1]));
    } else if (kind == 7 || kind > 15) {
      n.op = kind == 7 && roll(3) == 0 ? op_code::broadcast : op_code::redistribute;
      if (n.op == op_code::redistribute) {
        n.a.v[1] = sw::pack(places[roll(4)]);
        if (ranks > 1 && !sw::is_contiguous(x)) continue;
      } else {
        std::int64_t to[sw::max_rank + 1]{1 + roll(2)};
        for (int d = 0; d < x.rank; ++d) to[d + 1] = x.extent[d];
        n.a = sw::pack_extents(to, x.rank + 1);
      }
    } else if (kind < 9) {
      n.op = unary[roll(4)];
      n.f = 0.75;
    } else if (kind == 9) {
      n.op = binary[roll(3)];
      n.in[1] = roll(b.node_count);
      n.inputs = 2;
    } else if (kind < 13) {  // in place, of what the tensor was
      n.op = unary[roll(3)];
      n.f = 1.25;
      const sw::outcome o = sw::infer(n.op, n.a, &x, 1);
      const sw::spec both[] = {x, o.out};
      if (o.error || sw::infer(op_code::copy_, {}, both, 2).error) continue;
      n.spec = b.intern(o.out);
      const int value = b.append(n);
      n = sw::empty_node;
      n.op = op_code::copy_;
      n.inputs = 2;
      n.in[0] = recent;
      n.in[1] = value;
    } else {  // another tensor over it
      n.op = op_code::copy_;
      n.inputs = 2;
      for (int tries = 0; tries < 8; ++tries) {
        n.in[1] = roll(b.node_count);
        const sw::spec both[] = {x, b.specs[b.nodes[n.in[1]].spec]};
        if (!sw::infer(op_code::copy_, {}, both, 2).error) break;
      }
    }
    sw::spec in[sw::max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) in[k] = b.specs[b.nodes[n.in[k]].spec];
    const sw::outcome o = sw::infer(n.op, n.a, in, n.inputs);
    if (o.error || o.out.rank > 3 || sw::numel(o.out) > 60) continue;
    n.spec = b.intern(o.out);
    b.append(n);
  }
  g.finish(b);
  for (int k = 0; k < 4; ++k) g.outputs[g.output_count++] = k == 0 ? g.node_count - 1 : roll(g.node_count);
  for (int i = 0; i < leaves; ++i) g.outputs[g.output_count++] = i;  // what the caller finds in them afterwards
  return g;
}

// Memory as a program with pointers has it: a view is its storage, an offset and strides.
struct tensor {
  std::shared_ptr<std::vector<float>> storage;
  std::int64_t offset = 0;
  std::vector<std::int64_t> extent, stride;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t e : extent) n *= e;
    return n;
  }
  float& at(std::int64_t i) const {
    std::int64_t where = offset;
    for (std::size_t d = extent.size(); d-- > 0; i /= extent[d]) where += i % extent[d] * stride[d];
    return (*storage)[static_cast<std::size_t>(where)];
  }
  // Element i of a tensor of these extents, this one broadcast to it.
  float broadcast_at(const std::vector<std::int64_t>& to, std::int64_t i) const {
    std::int64_t where = offset;
    for (std::size_t d = to.size(); d-- > 0; i /= to[d]) {
      const std::ptrdiff_t own = static_cast<std::ptrdiff_t>(d) - static_cast<std::ptrdiff_t>(to.size() - extent.size());
      if (own >= 0 && extent[static_cast<std::size_t>(own)] != 1) where += i % to[d] * stride[static_cast<std::size_t>(own)];
    }
    return (*storage)[static_cast<std::size_t>(where)];
  }
};
tensor fresh(const sw::spec& s) {
  tensor t;
  std::int64_t step = 1;
  t.extent.assign(s.extent, s.extent + s.rank);
  t.stride.assign(static_cast<std::size_t>(s.rank), 0);
  for (int d = s.rank - 1; d >= 0; step *= s.extent[d--]) t.stride[static_cast<std::size_t>(d)] = step;
  t.storage = std::make_shared<std::vector<float>>(static_cast<std::size_t>(step));
  return t;
}

tensor seen(const sw::node& n, const tensor& x, const sw::spec& out) {
  tensor t = x;
  if (n.op == op_code::permute) {
    for (std::size_t d = 0; d < x.extent.size(); ++d) {
      const auto from = static_cast<std::size_t>((n.a.v[0] >> (4 * d)) & 15);
      t.extent[d] = x.extent[from];
      t.stride[d] = x.stride[from];
    }
  } else if (n.op == op_code::slice) {
    const auto d = static_cast<std::size_t>(n.a.v[0]);
    t.offset += n.a.v[1] * t.stride[d];
    t.extent[d] = n.a.v[2];
  } else if (n.op == op_code::broadcast) {
    t.extent.assign(out.extent, out.extent + out.rank);
    t.stride.insert(t.stride.begin(), t.extent.size() - t.stride.size(), 0);
  } else if (n.op == op_code::reshape) {
    // the elements stay where they are: one step along a dim goes from the first one to that which is so much further in order
    t.extent.assign(out.extent, out.extent + out.rank);
    t.stride.assign(t.extent.size(), 0);
    std::int64_t below = 1;
    for (std::size_t d = t.extent.size(); d-- > 0; below *= t.extent[d])
      if (t.extent[d] > 1) t.stride[d] = &x.at(below) - &x.at(0);
  }
  return t;
}

using bits = std::vector<std::uint32_t>;

template <class Graph>
std::vector<bits> run_in_memory(const Graph& g) {
  std::vector<tensor> value(static_cast<std::size_t>(g.node_count));
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    const sw::spec& s = g.spec_of(i);
    tensor& t = value[static_cast<std::size_t>(i)];
    const auto in = [&](int k) -> const tensor& { return value[static_cast<std::size_t>(n.in[k])]; };
    if (n.op == op_code::input) {
      t = fresh(s);
      for (std::int64_t e = 0; e < t.count(); ++e) {
        const std::uint32_t w =
            sw::philox(41, static_cast<std::uint32_t>(e), static_cast<std::uint32_t>(n.a.v[0]), 0, 0).w[0];
        t.at(e) = w % 7 == 0 ? -0.0F : w % 7 == 1 ? 0.0F : static_cast<float>(w % 2001) / 500.0F - 2.0F;
      }
    } else if (n.op == op_code::copy_) {
      std::vector<float> now;
      for (std::int64_t e = 0; e < in(1).count(); ++e) now.push_back(in(1).at(e));
      for (std::size_t e = 0; e < now.size(); ++e) in(0).at(static_cast<std::int64_t>(e)) = now[e];
      t = in(0);
    } else if (n.op == op_code::redistribute) {  // whatever it moves
      t = in(0);
      t.storage = std::make_shared<std::vector<float>>(*t.storage);
    } else if (sw::is_view(n, g.spec_of(n.in[0]), s)) {
      t = seen(n, in(0), s);
    } else {
      t = fresh(s);
      for (std::int64_t e = 0; e < t.count(); ++e) {
        const float x = in(0).broadcast_at(t.extent, e), y = n.inputs > 1 ? in(1).broadcast_at(t.extent, e) : 0;
        switch (n.op) {
          case op_code::scale: t.at(e) = x * static_cast<float>(n.f); break;
          case op_code::relu: t.at(e) = x < 0 ? 0 : x; break;  // -0 stays
          case op_code::abs: t.at(e) = x < 0 ? -x : x == 0 ? 0 : x; break;
          case op_code::contiguous: t.at(e) = x; break;
          case op_code::add: t.at(e) = x + y; break;
          case op_code::sub: t.at(e) = x - y; break;
          case op_code::mul: t.at(e) = x * y; break;
          default: FAIL(sw::name_of(n.op));
        }
      }
    }
  }
  std::vector<bits> out;
  for (int k = 0; k < g.output_count; ++k) {
    const tensor& t = value[static_cast<std::size_t>(g.outputs[k])];
    out.emplace_back();
    for (std::int64_t e = 0; e < t.count(); ++e) out.back().push_back(std::bit_cast<std::uint32_t>(t.at(e)));
  }
  return out;
}
// What the rank at this coordinate has of them.
template <class Graph>
std::vector<bits> blocks_of(const Graph& g, const std::vector<bits>& whole, const int* coordinate) {
  std::vector<bits> out;
  for (int k = 0; k < g.output_count; ++k) {
    out.emplace_back();
    const bits& all = whole[static_cast<std::size_t>(k)];
    sw::runtime::each_element(
        sw::runtime::local_layout(g.spec_of(g.outputs[k]), coordinate),
        [&](std::int64_t, std::int64_t at) { out.back().push_back(all[static_cast<std::size_t>(at)]); });
  }
  return out;
}
// Whether `after` computes on every rank what `before` does in memory, and still does when equal nodes have been merged.
template <int N>
bool computes_as(const graph& before, const graph& after) {
  graph merged = after;
  sw::pass_sequence<graph> passes;
  REQUIRE(passes.apply(sw::entry_of<sw::cancel_redistributions, graph>(), merged).text == "");
  REQUIRE(passes.apply(sw::entry_of<sw::merge_common, graph>(), merged).text == "");
  const std::vector<bits> want = run_in_memory(before);
  bool same[N]{};
  sw::launch<sw::mesh<two_of<N>>>([&](auto& rank) {
    sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
    const auto mine = blocks_of(before, want, rank.coordinate().data());
    same[rank.index()] = test::run_graph(e, after) == mine && test::run_graph(e, merged) == mine;
  });
  bool all = true;
  for (const bool s : same) all = all && s;
  return all;
}

template <class Graph>
int count_of(const Graph& g, op_code op) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}

TEST_CASE(
    "functionalise: random programs of views, redistributions and writes compute what shared memory does, bit for bit") {
  constexpr int programs = 400;
  int writes = 0, through_slices = 0, back = 0, refused = 0, still = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 2);
    const graph before = draw(seed, ranks);
    REQUIRE(!sw::verify(before));
    graph after = before;
    sw::pass_sequence<graph> passes;
    const sw::pass_report r = passes.apply(sw::entry_of<sw::functionalise, graph>(), after);
    if (r.what.what == sw::problem::mutation_view) {  // through an expanded tensor
      ++refused;
      continue;
    }
    INFO("seed " << seed << "\n" << sw::to_text(before) << "\n" << sw::to_text(after));
    REQUIRE(r.text == "");
    REQUIRE(!sw::has_mutation(after));
    REQUIRE(!sw::verify(after));
    for (int k = 0; k < before.output_count; ++k) {  // stored as before
      int o = before.outputs[k];
      while (sw::is_seen(before.nodes[o], before.specs, before.nodes)) o = before.nodes[o].in[0];
      const bool own = before.nodes[o].op == op_code::redistribute && !sw::is_contiguous(before.spec_of(o));
      CHECK((own || after.spec_of(after.outputs[k]) == before.spec_of(before.outputs[k])));
    }
    bool last = true;  // a leaf is written once, and behind all but views of it
    int written[leaves]{};
    for (int i = after.node_count - 1; i >= 0; --i) {
      const sw::node& n = after.nodes[i];
      if (n.op == op_code::assign) {
        ++written[after.nodes[n.in[0]].a.v[0]];
        CHECK(last);
      } else if (n.inputs > 0 && !sw::lies_in_operand(n, after.specs, after.nodes)) {
        last = false;
      }
    }
    for (const int w : written) CHECK(w <= 1);
    REQUIRE((ranks == 1 ? computes_as<1>(before, after) : computes_as<2>(before, after)));
    for (int i = 0; i < before.node_count; ++i)
      if (before.nodes[i].op == op_code::redistribute)
        ++(sw::lies_in_operand(before.nodes[i], before.specs, before.nodes) ? still : moved);
    writes += count_of(before, op_code::copy_);
    through_slices += count_of(after, op_code::slice_scatter);
    back += count_of(after, op_code::assign);
  }
  MESSAGE(programs << " programs: " << writes << " writes, " << through_slices << " slices written into what they are of, "
                   << back << " leaves copied back, " << refused << " refused; " << still
                   << " redistributions that move nothing, " << moved << " that move");
  CHECK(still > programs / 2);
  CHECK(moved > programs / 4);
  CHECK(writes > 5 * programs);
  CHECK(through_slices > programs / 2);
  CHECK(back > programs / 2);
  CHECK(refused < programs / 20);
}

template <int Seed>
struct drawn {
  static constexpr graph value = draw(Seed);
};
template <int Seed, int Nodes>
void check_stages() {
  graph at_run_time = drawn<Seed>::value;
  REQUIRE(!sw::functionalise::apply(at_run_time));
  CHECK(sw::to_text(sw::functionalise::in_stages<drawn<Seed>, Nodes>::value) == sw::to_text(at_run_time));
}
TEST_CASE("functionalise: constants become the graphs that run-time graphs do, in stages of any size") {
  check_stages<5, 1>();
  check_stages<5, 64>();
  check_stages<5, 1000>();
  check_stages<6, 40>();
}

// --- worked programs -------------------------------------------------------------------------------------------------

struct write_view {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::view<3, 2>(x);
    sw::mul_(y, 2);
    return y;
  }
};
struct write_base {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::view<3, 2>(x);
    sw::mul_(x, 2);
    return y;
  }
};
using ones = sw::inputs<sw::input_tensor<float, sw::shape<2, 3>>>;
template <class F, class Inputs = ones, class Pipeline = sw::pipeline<>>
using program_of = sw::function_step<F, mesh, Inputs, Pipeline>;

template <class Step>
constexpr int count_of(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}
// An output that is what an input has become.
template <class Step>
constexpr bool is_copied_back(int output) {
  int i = Step::program.outputs[output];
  while (Step::program.nodes[i].op == op_code::reshape) i = Step::program.nodes[i].in[0];
  return Step::program.nodes[i].op == op_code::assign;
}
static_assert(program_of<write_view>::program.node_count == 6 && program_of<write_base>::program.node_count == 4);
static_assert(count_of<program_of<write_view>>(op_code::assign) == 1 && is_copied_back<program_of<write_view>>(0));
static_assert(count_of<program_of<write_base>>(op_code::assign) == 1 && is_copied_back<program_of<write_base>>(0));
static_assert(program_of<write_base>::peak_bytes == 64 + 24);  // the input, and its values before they are copied back

template <class Step>
void run_on_ones(float outputs, float input) {
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> e(rank, sw::executor_checks::poison);
    for (int round = 0; round < 2; ++round) {
      e.set_input(0, std::vector<float>(6, 1.0F));
      e.run({});
      for (const float v : e.output()) CHECK(v == outputs);
      for (const float v : e.template input<float>(0)) CHECK(v == input);
    }
  });
}
TEST_CASE("functionalise: a written view of an input is seen in the input, and the other way round") {
  run_on_ones<program_of<write_view>>(2, 2);
  run_on_ones<program_of<write_base>>(2, 2);
}

// The same of what a linear layer computes: nothing is copied.
struct write_product {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto out = sw::linear_product(x, w);
    const auto y = sw::view<-1>(out);
    sw::mul_(out, 2);
    return y;
  }
};
struct write_view_of_product {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto out = sw::linear_product(x, w);
    const auto y = sw::view<-1>(out);
    sw::mul_(y, 2);
    return out;
  }
};
struct pure_product {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::mul(sw::linear_product(x, w), sw::ones_like(x));
  }
};
using operands = sw::inputs<sw::input_tensor<float, sw::shape<4, 3>>, sw::input_tensor<float, sw::shape<5, 3>>>;
using product = program_of<write_product, operands>;
using view_of_product = program_of<write_view_of_product, operands>;
static_assert(count_of<product>(op_code::assign) == 0 && count_of<product>(op_code::contiguous) == 0);
static_assert(count_of<view_of_product>(op_code::assign) == 0 && count_of<view_of_product>(op_code::contiguous) == 0);
static_assert(product::program.spec_of(product::program.outputs[0]).stride[0] == 1);
static_assert(view_of_product::program.spec_of(view_of_product::program.outputs[0]).stride[0] == 5);
// twice the product is computed where the product is
static_assert(product::peak_bytes == view_of_product::peak_bytes && product::peak_bytes % 64 == 80 % 64);

// What has no way back, blocks that every rank has and a detached tensor, is written through parts of it and read as a whole and
// through other parts: nothing has to go back further.
struct write_parts {
  constexpr auto operator()(const auto& x) const {
    const auto whole = sw::from_local<sw::replicate>(sw::scale(sw::to_local(x), 2));
    const auto left = sw::narrow<1, 0, 2>(whole);
    const auto right = sw::narrow<1, 1, 2>(whole);
    sw::mul_(left, 3);
    sw::add_(right, 1);  // of two parts that are ahead
    const auto seen = sw::scale(left, 1);
    const auto apart = sw::detach(sw::relu(x));
    sw::zero_(sw::narrow<0, 0, 1>(apart));
    return std::tuple{whole, seen, apart};
  }
};
using parts_written = program_of<write_parts>;
static_assert(count_of<parts_written>(op_code::assign) == 0);

TEST_CASE("functionalise: a write goes back to the tensor that is read, not to what that one is a view of") {
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<parts_written> e(rank, sw::executor_checks::poison);
    e.set_input(0, std::vector<float>{1, 2, 3, 4, 5, 6});
    e.run({});
    const auto values = [&](int k) {
      const auto block = e.output(k);
      return std::vector<float>(block.begin(), block.end());
    };
    CHECK(values(0) == std::vector<float>{6, 13, 7, 24, 31, 13});
    CHECK(values(1) == std::vector<float>{6, 13, 24, 31});
    CHECK(values(2) == std::vector<float>{0, 0, 0, 4, 5, 6});
  });
}

// Rows of an expanded tensor are one: a write to one of them is in all, whoever reads.
struct write_row {
  constexpr auto operator()(const auto& x) const {
    const auto wide = sw::expand<3, 2, 3>(sw::relu(x));
    sw::mul_(sw::narrow<0, 1, 1>(wide), 2);
    return sw::scale(wide, 1);
  }
};
static_assert(sw::detail::function_graph<write_row, mesh, ones, sw::pipeline<>>::trace_type::value.error.what ==
              sw::problem::mutation_view);

// Writes through slices that overlap, a permuted view, a view of a view, and reads of others in between.
struct tangle {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::relu(x);
    const auto left = sw::narrow<1, 0, 4>(h);
    const auto right = sw::narrow<1, 2, 4>(h);
    sw::mul_(left, 2);
    sw::add_(right, 1);
    const auto turned = sw::transpose<0, 1>(h);
    const auto row = sw::select<0, 3>(turned);
    sw::copy_(row, sw::select<0, 0>(turned));
    const auto before = sw::scale(left, 1);
    sw::zero_(sw::narrow<0, 0, 1>(turned));
    return std::tuple{h, sw::contiguous(turned), before, left};
  }
};
using tangled = program_of<tangle, sw::inputs<sw::input_tensor<float, sw::shape<2, 6>>>>;
static_assert(count_of<tangled>(op_code::slice_scatter) == 4 && count_of<tangled>(op_code::assign) == 0);

TEST_CASE("functionalise: overlapping slices, permuted views and views of views") {
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<tangled> e(rank, sw::executor_checks::poison);
    std::vector<float> x(12), h(12);
    for (std::size_t i = 0; i < 12; ++i) h[i] = x[i] = static_cast<float>(i) + 1;
    e.set_input(0, x);
    e.run({});
    for (std::size_t r = 0; r < 2; ++r) {
      for (std::size_t c = 0; c < 4; ++c) h[6 * r + c] *= 2;
      for (std::size_t c = 2; c < 6; ++c) h[6 * r + c] += 1;
      h[6 * r + 3] = h[6 * r];
    }
    const auto before = e.output(2);
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t c = 0; c < 4; ++c) CHECK(before(r, c) == h[6 * r + c]);
    h[0] = h[6] = 0;
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t c = 0; c < 6; ++c) {
        CHECK(e.output(0)(r, c) == h[6 * r + c]);
        CHECK(e.output(1)(c, r) == h[6 * r + c]);
        if (c < 4) CHECK(e.output(3)(r, c) == h[6 * r + c]);
      }
    CHECK(e.template input<float>(0)[0] == 1);
  });
}

// Writes that read nothing: to slices that overlap, to a part of a part, over all of that part, and to a part of it again.
struct unread {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::relu(x);
    const auto part = sw::narrow<1, 4, 2>(h);
    sw::fill_(sw::narrow<1, 0, 3>(h), 5);
    sw::fill_(sw::narrow<1, 2, 2>(h), 7);
    sw::fill_(sw::narrow<0, 1, 1>(part), 9);
    sw::fill_(part, 3);
    sw::fill_(sw::narrow<0, 0, 1>(part), 4);
    return h;
  }
};
TEST_CASE("functionalise: writes that are not read before the next") {
  using step = program_of<unread, sw::inputs<sw::input_tensor<float, sw::shape<2, 6>>>>;
  static_assert(count_of<step>(op_code::slice_scatter) == 4);  // what is written over altogether leaves nothing
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> e(rank, sw::executor_checks::poison);
    e.set_input(0, std::vector<float>(12, 1.0F));
    e.run({});
    CHECK(std::vector<float>(e.output().begin(), e.output().end()) ==
          std::vector<float>{5, 5, 7, 7, 4, 4, 5, 5, 7, 7, 3, 3});
  });
}

// Slices of what nothing else reads are written where it lies: the peak is that of one slice.
template <int Writes>
struct steps_along {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::relu(x);
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (sw::mul_(sw::narrow<0, I, 2>(h), 2), ...);
    }(std::make_integer_sequence<int, Writes>{});
    return h;
  }
};
template <int Writes>
using along = program_of<steps_along<Writes>, sw::inputs<sw::input_tensor<float, sw::shape<40, 64>>>>;
static_assert(count_of<along<8>>(op_code::slice_scatter) == 8);
static_assert(along<8>::peak_bytes == along<1>::peak_bytes && along<8>::peak_bytes == (2 * 40 + 2) * 64 * 4);
static_assert(along<32>::program.node_count == 2 + 32 * 3);

// --- a copy of a leaf is a copy --------------------------------------------------------------------------------------

struct swapped {
  constexpr auto operator()(const auto& a, const auto& b) const {
    const auto kept = sw::scale(a, 1);
    sw::copy_(a, b);
    sw::copy_(b, kept);
    const auto c = sw::relu(a);
    sw::copy_(c, a);
    sw::fill_(a, 7);
    return c;
  }
};
TEST_CASE("functionalise: leaves that are written over with leaves") {
  using step = program_of<swapped, sw::inputs<sw::input_tensor<float, sw::shape<3>>, sw::input_tensor<float, sw::shape<3>>>>;
  static_assert(count_of<step>(op_code::assign) == 2);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> e(rank, sw::executor_checks::poison);
    e.set_input(0, std::vector<float>{1, 2, 3});
    e.set_input(1, std::vector<float>{-4, 5, 6});
    e.run({});
    CHECK(std::vector<float>(e.output().begin(), e.output().end()) == std::vector<float>{-4, 5, 6});
    CHECK(e.template input<float>(0)[2] == 7);
    CHECK(e.template input<float>(1)[2] == 3);
  });
}

// --- order -----------------------------------------------------------------------------------------------------------

using raw = sw::detail::traced_function<tangle, mesh, sw::inputs<sw::input_tensor<float, sw::shape<2, 6>>>>;
static_assert(sw::has_mutation(raw::value) && !sw::verify(raw::value));
static_assert(!sw::can_apply<sw::merge_common, raw> && !sw::can_apply<sw::cancel_redistributions, raw>);
static_assert(std::is_same_v<sw::why_not<sw::merge_common, raw>, sw::pass_order::must_follow<sw::functionalise>>);
using made = sw::apply_pass<sw::functionalise, raw>;
static_assert(sw::can_apply<sw::merge_common, made> && !sw::has_mutation(made::value));
// a graph without writes is itself
using square = sw::input_tensor<float, sw::shape<3, 3>>;
using pure = sw::detail::traced_function<pure_product, mesh, sw::inputs<square, square>>;
static_assert(&sw::functionalise::run<pure>::value == &pure::value);
static_assert(std::is_same_v<sw::detail::functional<pure, true>, pure>);

TEST_CASE("functionalise: passes that take nodes for values come after it") {
  graph g = draw(1);
  const std::string text = sw::to_text(g);
  sw::pass_sequence<graph> passes;
  const sw::pass_report r = passes.apply(sw::entry_of<sw::merge_common, graph>(), g);
  CHECK(r.what.what == sw::problem::mutation_left);
  CHECK(r.text.find("apply functionalise to it first") != std::string::npos);
  CHECK(sw::to_text(g) == text);
  REQUIRE(passes.apply(sw::entry_of<sw::functionalise, graph>(), g).text == "");
  CHECK(passes.apply(sw::entry_of<sw::merge_common, graph>(), g).text == "");
}

TEST_CASE("functionalise: a graph that has no room, and one that an optimizer updates") {
  using tight = sw::graph<drawn_nodes + 1, drawn_nodes + 1>;
  int full = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    tight g;
    sw::copy_into(g, draw(seed));
    const std::string text = sw::to_text(g);
    const sw::finding f = sw::functionalise::apply(g);
    full += f.what == sw::problem::graph_full ? 1 : 0;
    if (f) CHECK(sw::to_text(g) == text);
  }
  CHECK(full > 0);
  graph g = draw(2);
  sw::node n = sw::empty_node;
  int target = -1;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::copy_) target = g.nodes[i].in[0];
  REQUIRE(target >= 0);
  n.op = op_code::advance;
  n.inputs = 1;
  n.in[0] = target;
  n.spec = g.nodes[target].spec;
  g.nodes[g.node_count++] = n;
  CHECK(sw::functionalise::apply(g).what == sw::problem::mutation_updates);
}

}  // namespace
